//! The hub while each guest has a [`thread`](super::thread) of its own, and so has each [`further`](super::further) hub.
//!
//! The first hub answers questions for all, and ends the run in order: all hubs become quiet, then the guests end, then
//! the further hubs. A hub that fails ends the run.
//!
//! Contract: the hub never waits for a guest's thread, not even at the end: a thread that hangs is left
//! behind after [`LONGEST_END`]. The workers of guests answer questions themselves, between two of their
//! turns ([`answers`](super::answers)).

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use rxo_device::{DeviceError, FrameSink, FrameSource};
use rxo_frame::Instant;

use super::further::{Ending, Further, OnHubThread};
use super::gather::Gathering;
use super::hub::Hub;
use super::hub_turns::HubWakeUp;
use super::lane::PortBuffer;
use super::port::{PortSink, PortSource};
use super::thread::{Common, OnThread};
use super::wake_up::Bell;
use super::{GuestWorker, Guests};
use crate::worker::balance::Balance;
use crate::worker::looped::{self, Looped};
use crate::worker::next::Turn;
use crate::worker::reading::{Due, Times};
use crate::worker::{Awake, Question, Report, Waiter, WorkerConfig};

/// The functions with which the threads of guests and hubs use the system. `GW` is the waiter of these threads,
/// `HO` the sink of a guest's device.
#[derive(Debug)]
pub struct Threads<GW, HO> {
    /// Creates the waiter of a guest's thread, or of a hub beyond the first; called on that thread.
    pub waiter: fn() -> GW,
    /// Binds the calling thread, that of a hub, to a processor ([`Guests::on_cpus`]).
    pub bind: fn(u16) -> Result<(), DeviceError>,
    /// Creates a bell, by which a hub and a guest's thread wake each other.
    pub bell: fn() -> io::Result<Arc<dyn Bell>>,
    /// Takes the next notice for the user from a guest's device; `None` if there is none.
    pub notice: fn(&mut HO) -> Option<String>,
}

/// The function that binds the calling thread to a processor, and the processor.
pub(super) type Bind = (fn(u16) -> Result<(), DeviceError>, u16);

/// Maximum number of lines for the user that wait for the next report. Further lines are dropped, so that
/// guests cannot fill memory.
const MOST_LINES: usize = 64;
/// Maximum time for which the first hub waits at the end: for the other hubs to become quiet, for the guests'
/// threads, and for those of the hubs. A guest's worker needs a few turns to end.
pub(super) const LONGEST_END: Duration = Duration::from_millis(500);
/// Maximum time between two checks of a guest's device for lines, so that the next report has them.
const BETWEEN_LINES: Duration = Duration::from_millis(250);
/// Time between two checks for answers, or for threads that have ended.
pub(super) const BETWEEN_ANSWERS: Duration = Duration::from_micros(200);

impl<NI, NO, HI, HO> Guests<NI, NO, HI, HO>
where
    NI: FrameSource<Buffer: PortBuffer> + Send + 'static,
    NO: FrameSink + Send + 'static,
    HI: FrameSource<Buffer: Send> + Send + 'static,
    HO: FrameSink + Send + 'static,
{
    /// Runs as [`Guests::run`] does, with each guest's worker on a thread of its own, the first hub on this one, and each
    /// further hub on one of its own. Observers get no sinks of guests, but the lines of the guests' devices.
    ///
    /// # Errors
    /// The first failure of a device, or of the system to start a thread or to bind it.
    pub fn run_on_threads<W, GW>(
        &mut self,
        waiter: &mut W,
        stop: &AtomicBool,
        threads: &Threads<GW, HO>,
        observe: impl FnMut(Report<'_, NO, HO>),
    ) -> Result<(), DeviceError>
    where
        W: Waiter<NI, NO, HubWakeUp, HubWakeUp>,
        GW: Waiter<PortSource<NI::Buffer>, PortSink, HI, HO>
            + Waiter<NI, NO, HubWakeUp, HubWakeUp>
            + 'static,
    {
        let Self { hub, further, lost_hubs, cpus, workers, lost, lines, config, times, balance } =
            self;
        let (notice_sender, notices) = sync_channel(MOST_LINES);
        // The turns of several hubs count as one.
        let turns = if further.is_empty() { None } else { config.turns.take() };
        let mut all = Threaded {
            hub,
            hubs: Vec::new(),
            turns,
            stop,
            ending: Arc::default(),
            config,
            times,
            balance,
            guests: Vec::new(),
            stop_guests: Arc::default(),
            notices,
            lines: Vec::new(),
            due: None,
            question: None,
            gathering: None,
            observe,
        };
        let begun = all.begin(std::mem::take(workers), threads, notice_sender.clone());
        let begun = begun
            .and_then(|()| all.begin_hubs(std::mem::take(further), cpus, threads, notice_sender));
        let ending = Arc::clone(&all.ending);
        // Several hubs also end because one of them does.
        let stop = if all.hubs.is_empty() { stop } else { &ending.stop };
        let ended = begun.and_then(|()| {
            looped::run(&mut all, waiter, stop, |all, due| {
                // A check for notices is part of a report.
                if all.due != Some(Due::Report) {
                    all.due = Some(due);
                }
            })
        });
        for (n, guest) in std::mem::take(&mut all.guests).into_iter().enumerate() {
            match guest.ended {
                Some(worker) => workers.push(worker),
                None => lost.push((n, guest.last.all)),
            }
        }
        for hub in std::mem::take(&mut all.hubs) {
            match hub.ended {
                Some(hub) => further.push(hub),
                None => lost_hubs.push(hub.last),
            }
        }
        *lines = all.take_lines();
        if let Some(turns) = all.turns.take() {
            self.config.turns = Some(turns);
        }
        self.check_balance();
        ended
    }
}

/// The hub and the threads of its guests while they run. `F` is the observer.
pub(super) struct Threaded<'g, NI: FrameSource<Buffer: PortBuffer>, NO, HI: FrameSource, HO, F> {
    pub(super) hub: &'g mut Hub<NI, NO>,
    /// The hubs beyond the first.
    pub(super) hubs: Vec<OnHubThread<NI, NO>>,
    /// The counter of turns that another process watches, if there are several hubs; `None` if none does, or the first hub
    /// is the only one.
    turns: Option<&'static AtomicU64>,
    /// `true` if the caller ends the run.
    stop: &'g AtomicBool,
    ending: Arc<Ending>,
    pub(super) config: &'g mut WorkerConfig,
    pub(super) times: &'g mut Times,
    pub(super) balance: &'g mut Balance,
    pub(super) guests: Vec<OnThread<GuestWorker<NI::Buffer, HI, HO>>>,
    stop_guests: Arc<AtomicBool>,
    notices: Receiver<String>,
    lines: Vec<String>,
    /// The reason for which the observer must be called; `None` if no call is due.
    pub(super) due: Option<Due>,
    pub(super) question: Option<Question>,
    pub(super) gathering: Option<Gathering>,
    pub(super) observe: F,
}

impl<NI, NO, HI, HO, F> Threaded<'_, NI, NO, HI, HO, F>
where
    NI: FrameSource<Buffer: PortBuffer> + Send + 'static,
    NO: FrameSink + Send + 'static,
    HI: FrameSource<Buffer: Send> + Send + 'static,
    HO: FrameSink + Send + 'static,
    F: FnMut(Report<'_, NO, HO>),
{
    /// Starts a thread for each worker.
    ///
    /// # Errors
    /// If the system cannot start a thread. The threads that were started end.
    fn begin<GW>(
        &mut self,
        workers: Vec<GuestWorker<NI::Buffer, HI, HO>>,
        threads: &Threads<GW, HO>,
        notice_sender: SyncSender<String>,
    ) -> Result<(), DeviceError>
    where
        GW: Waiter<PortSource<NI::Buffer>, PortSink, HI, HO> + 'static,
    {
        let refused = |source| DeviceError::System {
            message: "cannot give each guest a thread; raise `ulimit -u` and `ulimit -n`"
                .to_owned(),
            source,
        };
        self.hub.wake_up.0.set_bell((threads.bell)().map_err(refused)?);
        let (hub, stop) = (Arc::clone(&self.hub.wake_up.0), Arc::clone(&self.stop_guests));
        let common = Common { hub, stop, notice_sender };
        for (n, mut worker) in workers.into_iter().enumerate() {
            worker.config.look_every = self.config.look_every.map(|every| every.min(BETWEEN_LINES));
            let state = Arc::clone(&self.hub.sides[n].state);
            state.wake_up.set_bell((threads.bell)().map_err(refused)?);
            let known_as = (format!("rxo-guest-{}", n + 1), state);
            let guest = OnThread::start(worker, known_as, threads, common.clone());
            self.guests.push(guest.map_err(refused).inspect_err(|_| self.stop_all())?);
        }
        Ok(())
    }

    /// Starts a thread for each further hub, and binds all hubs to their processors: this thread too, after the others
    /// were started, which would inherit its processor.
    ///
    /// # Errors
    /// If the system cannot start a thread, or bind this one. The threads that were started end.
    fn begin_hubs<GW>(
        &mut self,
        further: Vec<Further<NI, NO>>,
        cpus: &[u16],
        threads: &Threads<GW, HO>,
        notice_sender: SyncSender<String>,
    ) -> Result<(), DeviceError>
    where
        GW: Waiter<NI, NO, HubWakeUp, HubWakeUp> + 'static,
    {
        let refused = |source| DeviceError::System {
            message: "cannot start a thread for each worker; use fewer workers".to_owned(),
            source,
        };
        let begun = further.into_iter().enumerate().try_for_each(|(n, further)| {
            further.hub.wake_up.0.set_bell((threads.bell)().map_err(refused)?);
            let (name, with) =
                (format!("rxo-worker-{}", n + 2), (self.ending.clone(), notice_sender.clone()));
            let bind = cpus.get(n + 1).map(|cpu| (threads.bind, *cpu));
            let hub = OnHubThread::start(further, name, with, (threads.waiter, bind));
            self.hubs.push(hub.map_err(refused)?);
            Ok(())
        });
        let bound = begun.and_then(|()| cpus.first().map_or(Ok(()), |cpu| (threads.bind)(*cpu)));
        bound.inspect_err(|_| {
            self.stop_all();
            self.ending.guests_have_ended.store(true, Ordering::Release);
            self.quiet_hubs();
        })
    }

    /// Makes all guests end.
    fn stop_all(&self) {
        self.stop_guests.store(true, Ordering::Relaxed);
        self.guests.iter().for_each(|guest| guest.state.wake_up.ring());
    }

    /// Makes all hubs receive what they have, and no more.
    fn quiet_hubs(&self) {
        self.ending.stop.store(true, Ordering::Relaxed);
        self.hubs.iter().for_each(OnHubThread::ring);
    }

    /// Ends the run if the caller or a further hub ends it, and counts a turn if all hubs have made one.
    fn attend_hubs(&mut self) {
        if self.hubs.is_empty() {
            return;
        }
        if self.stop.load(Ordering::Relaxed) || self.hubs.iter().any(OnHubThread::is_quiet) {
            self.quiet_hubs();
        }
        self.count_turn();
    }

    fn count_turn(&mut self) {
        if let Some(turns) = self.turns
            && self.hubs.iter().all(OnHubThread::has_turned)
        {
            self.hubs.iter_mut().for_each(OnHubThread::note_turns);
            // Only this thread writes the counter.
            turns.store(turns.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
        }
    }

    /// Checks the guests' threads, and processes questions and answers.
    fn supervise(&mut self) {
        if let Some(lines) = self.hub.watch() {
            self.lines.extend(lines);
            self.guests.iter_mut().for_each(OnThread::send_pending);
        }
        self.attend_questions(self.hub.now());
    }

    pub(super) fn take_lines(&mut self) -> Vec<String> {
        let mut lines = std::mem::take(&mut self.lines);
        lines.extend(self.notices.try_iter());
        lines
    }

    /// Takes back the workers whose threads have ended. Returns `true` if all threads have ended.
    ///
    /// # Errors
    /// The first failure of a guest's device.
    fn join(&mut self) -> Result<bool, DeviceError> {
        let joined = super::all(self.guests.iter_mut().map(OnThread::join));
        joined.map(|()| self.guests.iter().all(|guest| guest.ended.is_some()))
    }

    /// Passes on frames of guests until `is_over` returns `true` and, if `drains`, no frame waits; for [`LONGEST_END`] at
    /// most.
    ///
    /// # Errors
    /// The first failure of the nic, or that `is_over` returns.
    fn serve_until<W: Waiter<NI, NO, HubWakeUp, HubWakeUp>>(
        &mut self,
        waiter: &mut W,
        drains: bool,
        mut is_over: impl FnMut(&mut Self) -> Result<bool, DeviceError>,
    ) -> Result<(), DeviceError> {
        let (begun, mut result) = (waiter.now(), Ok(()));
        loop {
            // Waiting for others must not count as a hang of the hub.
            self.config.count_turn();
            self.count_turn();
            let now = waiter.now();
            let are_over = is_over(self);
            // Passes on the last frames of the others after they have ended.
            result = result.and(self.hub.serve(now).map(|_| ()));
            match are_over {
                Ok(true) if !drains || self.hub.is_drained() => return result,
                Ok(_) if now.since(begun) >= LONGEST_END => return result,
                Ok(_) => waiter.pause(BETWEEN_ANSWERS),
                Err(error) => result = result.and(Err(error)),
            }
        }
    }
}

impl<NI, NO, HI, HO, F> Looped<NI, NO, HubWakeUp, HubWakeUp> for Threaded<'_, NI, NO, HI, HO, F>
where
    NI: FrameSource<Buffer: PortBuffer> + Send + 'static,
    NO: FrameSink + Send + 'static,
    HI: FrameSource<Buffer: Send> + Send + 'static,
    HO: FrameSink + Send + 'static,
    F: FnMut(Report<'_, NO, HO>),
{
    fn config(&self) -> &WorkerConfig {
        self.config
    }

    fn times(&mut self) -> &mut Times {
        self.times
    }

    fn take_turn<W: Waiter<NI, NO, HubWakeUp, HubWakeUp>>(
        &mut self,
        waiter: &mut W,
        awake: Awake,
    ) -> Result<Turn, DeviceError> {
        let turn = self.hub.take_turn(waiter, awake);
        self.supervise();
        self.attend_hubs();
        if self.guests.iter().any(OnThread::has_ended) {
            self.join()?;
        }
        turn
    }

    fn deadline(&self) -> Option<Instant> {
        let is_asked = self.gathering.is_some() || self.question.is_some() || self.due.is_some();
        let answers = is_asked.then(|| self.hub.now() + BETWEEN_ANSWERS);
        let ends = self.ending.stop.load(Ordering::Relaxed).then_some(Instant::ZERO);
        self.hub.next_turn().into_iter().chain(answers).chain(ends).min()
    }

    fn wait<W: Waiter<NI, NO, HubWakeUp, HubWakeUp>>(
        &self,
        waiter: &mut W,
        timeout: Duration,
    ) -> Result<Awake, DeviceError> {
        self.hub.wait(waiter, timeout)
    }

    /// Does nothing, because each guest's worker decides about coalescing itself.
    fn judge(&mut self, _now: Instant, _cpu: Duration) {}

    /// Ends the further hubs and the guests' threads, and passes on the frames that the guests still send.
    fn empty_queues<W: Waiter<NI, NO, HubWakeUp, HubWakeUp>>(
        &mut self,
        waiter: &mut W,
    ) -> Result<(), DeviceError> {
        let mut result = Ok(());
        if !self.hubs.is_empty() {
            self.quiet_hubs();
            let are_quiet = |all: &mut Self| Ok(all.hubs.iter().all(OnHubThread::is_quiet));
            // The guests still send.
            result = self.serve_until(waiter, false, are_quiet);
        }
        self.stop_all();
        result = result.and(self.serve_until(waiter, true, Self::join));
        self.ending.guests_have_ended.store(true, Ordering::Release);
        if !self.hubs.is_empty() {
            let joined = |all: &mut Self| {
                let joined = super::all(all.hubs.iter_mut().map(OnHubThread::join));
                joined.map(|()| all.hubs.iter().all(|hub| hub.ended.is_some()))
            };
            result = result.and(self.serve_until(waiter, true, joined));
        }
        let (count, hubs) = (self.guests.len(), self.hubs.len() + 1);
        for (n, guest) in self.guests.iter_mut().enumerate() {
            match &mut guest.ended {
                Some(worker) => worker.to_host.source.clear(),
                None => self
                    .lines
                    .push(format!("guest {} of {count} hangs; rxo ends without it", n + 1)),
            }
        }
        self.hub.abandon();
        // No other process could continue where a queue was left.
        match self.hubs.iter().position(|hub| hub.ended.is_none()) {
            None => result,
            Some(n) => result.and(Err(DeviceError::System {
                message: format!("worker {} of {hubs} hangs; rxo ends without it", n + 2),
                source: io::ErrorKind::TimedOut.into(),
            })),
        }
    }

    fn flush(&mut self, _now: Instant) -> Result<(), DeviceError> {
        self.hub.outlet.finish()
    }

    fn check_balance(&mut self) {
        let snapshot = self.hub.snapshot();
        self.balance.check(snapshot);
    }

    fn answer(&mut self, question: Question) {
        self.question = Some(question);
    }
}
