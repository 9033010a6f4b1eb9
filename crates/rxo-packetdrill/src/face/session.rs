//! A host that two threads share: one gives packets and time, one may block in a call.
//!
//! The clock moves in [`Session::sleep`] and [`Session::receive`], and by a microsecond each time
//! that somebody asks for it: packetdrill waits for the last microseconds by asking. When a blocked
//! call ends, its thread reads the clock; until it has, the clock stands still, so that a script's
//! outcome does not depend on how the system runs the threads.

use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::ThreadId;
use std::time::Duration as RealDuration;

use rxo_frame::{Duration, Instant};

use super::sysctls::Sysctls;
use crate::abi::Errno;
use crate::host::{Answer, Call, Fd, Outcome, Packet, Progress, Settings, VirtualHost, Waiting};

/// What `userdata` points to.
#[derive(Debug)]
pub(super) struct Session {
    shared: Mutex<Shared>,
    /// Something happened that another thread may wait for.
    changed: Condvar,
}

#[derive(Debug)]
struct Shared {
    host: VirtualHost,
    /// Every call fails: something could not be set.
    is_refusing: bool,
    /// What stands for `/proc/sys`.
    sysctls: Option<Sysctls>,
    /// The host's descriptors by the process's, which hold their place.
    descriptors: BTreeMap<i32, Fd>,
    blocked: Vec<Blocked>,
    /// Threads whose blocked call has ended and that have not read the clock yet.
    returned: Vec<ThreadId>,
}

#[derive(Debug)]
struct Blocked {
    thread: ThreadId,
    waiting: Option<Waiting>,
    outcome: Option<Outcome>,
}

impl Session {
    /// A session with these flags, or one that refuses everything after it has said why.
    pub(super) fn of_flags(flags: &str) -> Self {
        match Settings::of_flags(flags) {
            Ok(settings) => Self::new(settings, false),
            Err(error) => {
                eprintln!("rxo-packetdrill: --so_flags: {error}");
                Self::refusing()
            }
        }
    }

    /// One in which every call fails.
    pub(super) fn refusing() -> Self {
        Self::new(Settings::default(), true)
    }

    fn new(settings: Settings, is_refusing: bool) -> Self {
        let shared = Shared {
            host: VirtualHost::new(settings, START),
            is_refusing,
            sysctls: Sysctls::of_environment(),
            descriptors: BTreeMap::new(),
            blocked: Vec::new(),
            returned: Vec::new(),
        };
        Self { shared: Mutex::new(shared), changed: Condvar::new() }
    }

    /// A panic in another thread has been told there; the host is as good as it was.
    fn lock(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes a call, and blocks as long as it does. `call` gets what finds the host's descriptor.
    pub(super) fn call(
        &self,
        call: impl FnOnce(&dyn Fn(i32) -> Fd) -> Call,
    ) -> Result<Answer, Errno> {
        let mut shared = self.lock();
        shared.follow_sysctls();
        if shared.is_refusing {
            return Err(Errno::EINVAL);
        }
        let call = call(&|fd| shared.descriptors.get(&fd).copied().unwrap_or(NO_DESCRIPTOR));
        let progress = shared.host.start(call);
        shared.resume_blocked();
        match progress {
            Progress::Done(outcome) => outcome,
            Progress::Waits(waiting) => self.block(shared, waiting),
        }
    }

    fn block(&self, mut shared: MutexGuard<'_, Shared>, waiting: Waiting) -> Outcome {
        let thread = std::thread::current().id();
        shared.blocked.push(Blocked { thread, waiting: Some(waiting), outcome: None });
        loop {
            shared = self.changed.wait(shared).unwrap_or_else(PoisonError::into_inner);
            if let Some(outcome) = shared.take_outcome(thread) {
                return outcome;
            }
        }
    }

    /// Lets `descriptor` of the process stand for `fd` of the host.
    pub(super) fn name(&self, descriptor: i32, fd: Fd) {
        self.lock().descriptors.insert(descriptor, fd);
    }

    /// Forgets it.
    pub(super) fn forget(&self, descriptor: i32) {
        self.lock().descriptors.remove(&descriptor);
    }

    /// Whether `descriptor` stands for one of the host.
    pub(super) fn has(&self, descriptor: i32) -> bool {
        self.lock().descriptors.contains_key(&descriptor)
    }

    /// Whether its addresses are IPv6.
    pub(super) fn is_v6(&self, descriptor: i32) -> bool {
        let shared = self.lock();
        shared.descriptors.get(&descriptor).is_some_and(|fd| shared.host.is_v6(*fd))
    }

    /// A packet comes in.
    pub(super) fn send(&self, packet: &[u8]) {
        let mut shared = self.lock();
        shared.follow_sysctls();
        shared.host.deliver(packet);
        shared.resume_blocked();
        self.changed.notify_all();
    }

    /// The next packet that leaves; time moves on to it. `None` when none will.
    pub(super) fn receive(&self) -> Option<Packet> {
        let mut shared = self.when_clock_may_move(self.lock());
        let latest = shared.host.now() + LONGEST_WAIT;
        loop {
            if let Some(packet) = shared.host.take_packet() {
                return Some(packet);
            }
            if !shared.step(latest) {
                return None;
            }
            self.changed.notify_all();
            shared = self.when_clock_may_move(shared);
        }
    }

    /// Time moves on.
    pub(super) fn sleep(&self, time: Duration) {
        let mut shared = self.when_clock_may_move(self.lock());
        let until = shared.host.now() + time;
        while shared.step(until) {
            self.changed.notify_all();
            shared = self.when_clock_may_move(shared);
        }
    }

    /// The time; it moves on by a microsecond for the next that asks.
    pub(super) fn time(&self) -> Instant {
        let mut shared = self.lock();
        let now = shared.host.now();
        let thread = std::thread::current().id();
        if let Some(at) = shared.returned.iter().position(|returned| *returned == thread) {
            shared.returned.remove(at);
        } else if shared.returned.is_empty() {
            while shared.step(now + MICROSECOND) {}
        }
        self.changed.notify_all();
        now
    }

    /// Waits until every thread whose call has ended has read the clock; not for ever, because a
    /// thread may be gone.
    fn when_clock_may_move<'a>(
        &'a self,
        mut shared: MutexGuard<'a, Shared>,
    ) -> MutexGuard<'a, Shared> {
        while !shared.returned.is_empty() {
            let waited = self.changed.wait_timeout(shared, PATIENCE);
            let (next, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
            shared = next;
            if timeout.timed_out() {
                shared.returned.clear();
            }
        }
        shared
    }
}

impl Shared {
    /// Sets what a script has set since the last call; what cannot be set is told on standard error, and
    /// then every call fails: the script is not for this host.
    fn follow_sysctls(&mut self) {
        for (name, value) in self.sysctls.iter_mut().flat_map(Sysctls::changes) {
            if let Err(error) = self.host.set_sysctl(&name, &value) {
                eprintln!("rxo-packetdrill: {error}");
                self.is_refusing = true;
            }
        }
    }

    /// The next thing before `limit` happens; false when there was none and it is `limit`.
    fn step(&mut self, limit: Instant) -> bool {
        let waiting = self.blocked.iter().filter_map(|blocked| blocked.waiting.as_ref());
        let deadline = waiting.filter_map(Waiting::deadline).min();
        let stop = deadline.filter(|at| *at <= limit);
        let has_fired = self.host.step(stop.unwrap_or(limit));
        self.resume_blocked();
        has_fired || stop.is_some()
    }

    fn resume_blocked(&mut self) {
        for blocked in &mut self.blocked {
            let Some(waiting) = blocked.waiting.take() else { continue };
            match self.host.resume(waiting) {
                Progress::Waits(waiting) => blocked.waiting = Some(waiting),
                Progress::Done(outcome) => {
                    blocked.outcome = Some(outcome);
                    self.returned.push(blocked.thread);
                }
            }
        }
    }

    fn take_outcome(&mut self, thread: ThreadId) -> Option<Outcome> {
        let at = self
            .blocked
            .iter()
            .position(|blocked| blocked.thread == thread && blocked.outcome.is_some())?;
        self.blocked.remove(at).outcome
    }
}

/// Far from zero, so that earlier times can be said.
const START: Instant = Instant::from_micros(1_000_000_000);
const MICROSECOND: Duration = Duration::from_micros(1);
/// No script waits longer for a packet.
const LONGEST_WAIT: Duration = Duration::from_secs(24 * 3600);
/// Real time that a thread has to read the clock.
const PATIENCE: RealDuration = RealDuration::from_secs(1);
const NO_DESCRIPTOR: Fd = -1;
