//! Hubs beyond the first one: each has a thread, a queue of the nic, and lanes to and from all guests.
//!
//! Separate from [`threads`](super::threads), where the first hub answers questions for all and ends the run. Contract:
//! a further hub only carries frames. It is asked for its counters, and ends in two steps: when it has received what its
//! queue of the nic had, it is quiet; and when the guests have ended, it passes on their last frames and ends too.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::SyncSender;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rxo_device::{DeviceError, FrameSink, FrameSource};
use rxo_frame::Instant;

use super::gather::Place;
use super::hub::Hub;
use super::hub_turns::HubWakeUp;
use super::threads::{BETWEEN_ANSWERS, Bind, LONGEST_END};
use super::wake_up::WakeUp;
use crate::desk::{Desk, Reply};
use crate::worker::balance::Balance;
use crate::worker::looped::{self, Looped};
use crate::worker::next::Turn;
use crate::worker::reading::Times;
use crate::worker::{Awake, Question, Readings, Waiter, WorkerConfig};

/// A hub beyond the first one, and its counters.
pub(super) struct Further<NI: FrameSource, NO> {
    pub(super) hub: Hub<NI, NO>,
    config: WorkerConfig,
    times: Times,
    balance: Balance,
}

/// The steps to the end of a run with several hubs.
#[derive(Default)]
pub(super) struct Ending {
    /// `true` if all hubs are to receive what their queues of the nic still have, and no more.
    pub(super) stop: AtomicBool,
    /// `true` once no guest puts a frame into a lane any more.
    pub(super) guests_have_ended: AtomicBool,
}

/// The numbers that a further hub shares with the first one.
#[derive(Default)]
struct Shared {
    turns: AtomicU64,
    /// `true` once the hub receives no more from the nic.
    is_quiet: AtomicBool,
}

/// A further hub whose thread has ended, and its first failure.
type Ended<NI, NO> = (Further<NI, NO>, Result<(), DeviceError>);

/// A further hub on its thread, as the first hub sees it.
pub(super) struct OnHubThread<NI: FrameSource, NO> {
    thread: Option<JoinHandle<Ended<NI, NO>>>,
    /// The hub, once its thread has ended; `None` before.
    pub(super) ended: Option<Further<NI, NO>>,
    desk: Desk<Question>,
    wake_up: Arc<WakeUp>,
    shared: Arc<Shared>,
    /// The number of turns at the last check that found all hubs running.
    turns: u64,
    /// The last counters that the hub reported.
    pub(super) last: Readings,
}

impl<NI: FrameSource, NO: FrameSink> Further<NI, NO> {
    pub(super) fn new(hub: Hub<NI, NO>, config: &WorkerConfig) -> Self {
        // The first hub reports and answers for all.
        let (report_every, look_every, turns) = (None, None, None);
        let desk = Some(Desk::new());
        let config = WorkerConfig { report_every, look_every, turns, desk, ..config.clone() };
        Self { hub, config, times: Times::default(), balance: Balance::default() }
    }

    /// Returns the counters of this hub.
    pub(super) fn reading(&mut self) -> Readings {
        let times = (self.times.elapsed(), self.times.cpu());
        self.hub.readings(times, self.balance.found())
    }

    /// Compares the counters of this hub's stages.
    pub(super) fn check_balance(&mut self) {
        let snapshot = self.hub.snapshot();
        self.balance.check(snapshot);
    }
}

/// A further hub while it runs.
struct Running<NI: FrameSource, NO> {
    further: Further<NI, NO>,
    ending: Arc<Ending>,
    shared: Arc<Shared>,
    /// The sending end of the channel for lines about guests.
    notice_sender: SyncSender<String>,
}

impl<NI: FrameSource, NO> Running<NI, NO> {
    fn count_turn(&self) {
        self.shared.turns.fetch_add(1, Ordering::Relaxed);
    }
}

impl<NI: FrameSource, NO: FrameSink> Looped<NI, NO, HubWakeUp, HubWakeUp> for Running<NI, NO> {
    fn config(&self) -> &WorkerConfig {
        &self.further.config
    }

    fn times(&mut self) -> &mut Times {
        &mut self.further.times
    }

    fn take_turn<W: Waiter<NI, NO, HubWakeUp, HubWakeUp>>(
        &mut self,
        waiter: &mut W,
        awake: Awake,
    ) -> Result<Turn, DeviceError> {
        self.count_turn();
        let turn = self.further.hub.take_turn(waiter, awake)?;
        // A line for which there is no space is one of very many.
        let lines = self.further.hub.watch().into_iter().flatten();
        lines.for_each(|line| _ = self.notice_sender.try_send(line));
        Ok(turn)
    }

    fn deadline(&self) -> Option<Instant> {
        // The bell that rang for the end may have been silenced since.
        let ends = self.ending.stop.load(Ordering::Relaxed).then_some(Instant::ZERO);
        self.further.hub.next_turn().into_iter().chain(ends).min()
    }

    fn wait<W: Waiter<NI, NO, HubWakeUp, HubWakeUp>>(
        &self,
        waiter: &mut W,
        timeout: Duration,
    ) -> Result<Awake, DeviceError> {
        self.further.hub.wait(waiter, timeout)
    }

    /// Does nothing, because each guest's worker decides about coalescing itself.
    fn judge(&mut self, _now: Instant, _cpu: Duration) {}

    /// Passes on the frames that the guests still send, until they have ended.
    fn empty_queues<W: Waiter<NI, NO, HubWakeUp, HubWakeUp>>(
        &mut self,
        waiter: &mut W,
    ) -> Result<(), DeviceError> {
        self.shared.is_quiet.store(true, Ordering::Release);
        let (begun, mut result, mut ends_at) = (waiter.now(), Ok(()), None);
        loop {
            self.count_turn();
            let have_ended = self.ending.guests_have_ended.load(Ordering::Acquire);
            let now = waiter.now();
            result = result.and(self.further.hub.serve(now).map(|_| ()));
            if have_ended {
                // Half of the time for which the first hub waits for this one. Frames of a guest with a rate may wait longer.
                ends_at.get_or_insert(now + LONGEST_END / 2);
            }
            // The first hub waits for the others first, and then for the guests.
            let is_late =
                now.since(begun) >= 3 * LONGEST_END || ends_at.is_some_and(|at| at <= now);
            if is_late || have_ended && self.further.hub.is_drained() {
                break;
            }
            waiter.pause(BETWEEN_ANSWERS);
        }
        self.further.hub.abandon();
        result
    }

    fn flush(&mut self, _now: Instant) -> Result<(), DeviceError> {
        self.further.hub.outlet.finish()
    }

    fn check_balance(&mut self) {
        self.further.check_balance();
    }

    /// Answers a question for the counters, the only one that the first hub asks.
    fn answer(&mut self, question: Question) {
        if let Question::Counters(reply) = question {
            let now = self.further.times.now();
            self.further.hub.read_counts(now);
            self.further.check_balance();
            reply.give(self.further.reading());
        }
    }
}

impl<NI, NO> OnHubThread<NI, NO>
where
    NI: FrameSource<Buffer: Send> + Send + 'static,
    NO: FrameSink + Send + 'static,
{
    /// Starts a thread with this name for a hub, which is bound to the processor of `bind`.
    ///
    /// # Errors
    /// If the system cannot start a thread.
    pub(super) fn start<W: Waiter<NI, NO, HubWakeUp, HubWakeUp> + 'static>(
        further: Further<NI, NO>,
        name: String,
        (ending, notice_sender): (Arc<Ending>, SyncSender<String>),
        (waiter, bind): (fn() -> W, Option<Bind>),
    ) -> io::Result<Self> {
        let (shared, wake_up) = (Arc::<Shared>::default(), Arc::clone(&further.hub.wake_up.0));
        let desk = further.config.desk.clone().unwrap_or_default();
        let seen = Arc::clone(&shared);
        let work = move || {
            let stop = Arc::clone(&ending);
            let mut running = Running { further, ending, shared: Arc::clone(&seen), notice_sender };
            let bound = bind.map_or(Ok(()), |(bind, cpu)| bind(cpu));
            let ended = bound
                .and_then(|()| looped::run(&mut running, &mut waiter(), &stop.stop, |_, _| {}));
            seen.is_quiet.store(true, Ordering::Release);
            (running.further, ended)
        };
        let thread = Some(thread::Builder::new().name(name).spawn(work)?);
        let (ended, turns, last) = (None, 0, Readings::default());
        Ok(Self { thread, ended, desk, wake_up, shared, turns, last })
    }
}

impl<NI: FrameSource, NO> OnHubThread<NI, NO> {
    /// Asks the hub for its counters. If it has not answered the last question, counts it as silent.
    pub(super) fn ask(&self) -> Place<Readings> {
        let (reply, answer) = Reply::new();
        if self.desk.post(Question::Counters(reply)).is_some() {
            return Place::Silent;
        }
        self.wake_up.ring();
        Place::Awaited(answer)
    }

    /// Wakes the hub, so that it sees that the run ends.
    pub(super) fn ring(&self) {
        self.wake_up.ring();
    }

    /// Returns `true` if the hub receives no more from the nic: it was stopped, or has failed.
    pub(super) fn is_quiet(&self) -> bool {
        let has_ended = self.thread.as_ref().is_none_or(JoinHandle::is_finished);
        has_ended || self.shared.is_quiet.load(Ordering::Acquire)
    }

    /// Returns `true` if the hub has made a turn since [`note_turns`](Self::note_turns).
    pub(super) fn has_turned(&self) -> bool {
        self.shared.turns.load(Ordering::Relaxed) != self.turns || self.ended.is_some()
    }

    pub(super) fn note_turns(&mut self) {
        self.turns = self.shared.turns.load(Ordering::Relaxed);
    }

    /// Takes the hub back from its thread, if the thread has ended.
    ///
    /// # Errors
    /// The failure of the hub's queue of the nic, returned once.
    pub(super) fn join(&mut self) -> Result<(), DeviceError> {
        let Some(thread) = self.thread.take_if(|thread| thread.is_finished()) else {
            return Ok(());
        };
        match thread.join() {
            Ok((further, result)) => {
                self.ended = Some(further);
                result
            }
            // A panic is a fault of rxo, as on any other thread.
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
}
