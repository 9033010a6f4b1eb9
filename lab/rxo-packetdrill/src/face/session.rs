//! A host shared by two threads: one provides packets and time, the other may block in a call.
//!
//! The clock advances in [`Session::sleep`] and [`Session::receive`], and by a microsecond whenever
//! it is read, because packetdrill waits for the last microseconds by reading it. After a blocked
//! call has returned, its thread reads the clock. Until then the clock stands still, so that the
//! outcome of a script does not depend on thread scheduling.

use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::ThreadId;
use std::time::Duration as RealDuration;

use rxo_frame::{Duration, Instant};

use super::sysctls::Sysctls;
use crate::abi::Errno;
use crate::host::{Answer, Call, Fd, Outcome, Packet, Progress, Settings, VirtualHost, Waiting};

/// The object behind `userdata`.
#[derive(Debug)]
pub(super) struct Session {
    shared: Mutex<Shared>,
    /// Notified when something happens that another thread may wait for.
    changed: Condvar,
}

#[derive(Debug)]
struct Shared {
    host: VirtualHost,
    /// Whether every call fails because a setting was refused.
    is_refusing: bool,
    /// The replacement of `/proc/sys`.
    sysctls: Option<Sysctls>,
    /// Maps descriptors of the process to the host's.
    descriptors: BTreeMap<i32, Fd>,
    blocked: Vec<Blocked>,
    /// Threads whose blocked call has returned and that have not read the clock yet.
    returned: Vec<ThreadId>,
}

#[derive(Debug)]
struct Blocked {
    thread: ThreadId,
    waiting: Option<Waiting>,
    outcome: Option<Outcome>,
}

impl Session {
    /// Makes a session with these flags. If they are invalid, reports it and makes one that refuses
    /// every call.
    pub(super) fn of_flags(flags: &str) -> Self {
        match Settings::of_flags(flags) {
            Ok(settings) => Self::new(settings, false),
            Err(error) => {
                eprintln!("rxo-packetdrill: --so_flags: {error}");
                Self::refusing()
            }
        }
    }

    /// Makes a session in which every call fails.
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

    /// Locks the session. A panic in another thread was reported there and left the host intact.
    fn lock(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes a call, and blocks as long as it does. `call` gets a function that finds the host's
    /// descriptor.
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

    /// Maps `descriptor` of the process to `fd` of the host.
    pub(super) fn name(&self, descriptor: i32, fd: Fd) {
        self.lock().descriptors.insert(descriptor, fd);
    }

    /// Removes the mapping of `descriptor`.
    pub(super) fn forget(&self, descriptor: i32) {
        self.lock().descriptors.remove(&descriptor);
    }

    /// Whether `descriptor` maps to a descriptor of the host.
    pub(super) fn has(&self, descriptor: i32) -> bool {
        self.lock().descriptors.contains_key(&descriptor)
    }

    /// Whether the socket's addresses are IPv6.
    pub(super) fn is_v6(&self, descriptor: i32) -> bool {
        let shared = self.lock();
        shared.descriptors.get(&descriptor).is_some_and(|fd| shared.host.is_v6(*fd))
    }

    /// Delivers a packet to the host.
    pub(super) fn send(&self, packet: &[u8]) {
        let mut shared = self.lock();
        shared.follow_sysctls();
        shared.host.deliver(packet);
        shared.resume_blocked();
        self.changed.notify_all();
    }

    /// Advances time to the next packet that leaves, and returns it; `None` if none will.
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

    /// Advances time by `time`.
    pub(super) fn sleep(&self, time: Duration) {
        let mut shared = self.when_clock_may_move(self.lock());
        let until = shared.host.now() + time;
        while shared.step(until) {
            self.changed.notify_all();
            shared = self.when_clock_may_move(shared);
        }
    }

    /// Returns the time, and advances it by a microsecond for the next reader.
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

    /// Waits until every thread whose call has returned has read the clock. Gives up after a while,
    /// because a thread may have ended.
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
    /// Applies the sysctls that a script has changed since the last call. If one is refused,
    /// reports it, and every call fails from then on, because the script is not for this host.
    fn follow_sysctls(&mut self) {
        for (name, value) in self.sysctls.iter_mut().flat_map(Sysctls::changes) {
            if let Err(error) = self.host.set_sysctl(&name, &value) {
                eprintln!("rxo-packetdrill: {error}");
                self.is_refusing = true;
            }
        }
    }

    /// Advances to the next event before `limit`. Returns false if there is none and the time is
    /// now `limit`.
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

/// Far from zero, so that earlier times can be expressed.
const START: Instant = Instant::from_micros(1_000_000_000);
const MICROSECOND: Duration = Duration::from_micros(1);
/// Longest wait for a packet.
const LONGEST_WAIT: Duration = Duration::from_secs(24 * 3600);
/// Real time that a thread has for reading the clock.
const PATIENCE: RealDuration = RealDuration::from_secs(1);
const NO_DESCRIPTOR: Fd = -1;
