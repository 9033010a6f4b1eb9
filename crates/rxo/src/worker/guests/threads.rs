//! The hub while each guest has a [`thread`](super::thread) of its own.
//!
//! Contract: the hub never waits for a guest's thread, not even at the end: a thread that hangs is left
//! behind after [`LONGEST_END`]. The workers of guests answer questions themselves, between two of their
//! turns ([`answers`](super::answers)).

use std::cell::Cell;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use rxo_device::{Descriptors, DeviceError, FrameSink, FrameSource};
use rxo_frame::Instant;

use super::bell::{Bell, Door};
use super::gather::Gathering;
use super::hub::Hub;
use super::lane::PortBuffer;
use super::port::{PortSink, PortSource, add};
use super::thread::{Common, OnThread};
use super::watch::{GuestState, HANGS, LATE};
use super::{GuestWorker, Guests};
use crate::worker::balance::Balance;
use crate::worker::looped::{self, Looped};
use crate::worker::next::Turn;
use crate::worker::reading::{Due, Times};
use crate::worker::waiter::{timed, wait};
use crate::worker::{Awake, Question, Report, Waiter, Wanted, WantedHost, WorkerConfig};

/// The functions with which the threads of guests use the system. `GW` is the waiter of a guest's thread,
/// `HO` the sink of its device.
#[derive(Debug)]
pub struct Threads<GW, HO> {
    /// Creates the waiter of a guest's thread; called on that thread.
    pub waiter: fn() -> GW,
    /// Creates a bell, by which the hub and a guest's thread wake each other.
    pub bell: fn() -> io::Result<Arc<dyn Bell>>,
    /// Takes the next notice for the user from a guest's device; `None` if there is none.
    pub notice: fn(&mut HO) -> Option<String>,
}

/// The hub's wake-up, as the source for which the hub waits in addition to its nic.
pub struct HubDoor(Arc<Door>);

impl Descriptors for HubDoor {
    fn visit_descriptors<'f>(&'f self, visit: &mut dyn FnMut(BorrowedFd<'f>)) {
        self.0.visit_descriptors(visit);
    }
}

/// Maximum number of lines for the user that wait for the next report. Further lines are dropped, so that
/// guests cannot fill memory.
const MOST_LINES: usize = 64;
/// Maximum time for which the hub waits for the guests' threads at the end. A guest's worker needs a few
/// turns to end.
const LONGEST_END: Duration = Duration::from_millis(500);
/// Time between two checks of the guests' threads while frames wait for them.
const BETWEEN_LOOKS: Duration = LATE;
/// Maximum time between two checks of a guest's device for lines, so that the next report includes them.
const BETWEEN_LINES: Duration = Duration::from_millis(250);
/// Time between two checks for answers, or for threads that have ended.
const BETWEEN_ANSWERS: Duration = Duration::from_micros(200);

impl<NI, NO, HI, HO> Guests<NI, NO, HI, HO>
where
    NI: FrameSource<Buffer: PortBuffer>,
    NO: FrameSink,
    HI: FrameSource<Buffer: Send> + Send + 'static,
    HO: FrameSink + Send + 'static,
{
    /// Runs as [`Guests::run`] does, with each guest's worker on a thread of its own and the hub on this one.
    /// Observers receive the lines of the guests' devices instead of the guests' sinks.
    ///
    /// # Errors
    /// The first failure of a device, or of the system to start a thread.
    pub fn run_on_threads<W, GW>(
        &mut self,
        waiter: &mut W,
        stop: &AtomicBool,
        threads: &Threads<GW, HO>,
        observe: impl FnMut(Report<'_, NO, HO>),
    ) -> Result<(), DeviceError>
    where
        W: Waiter<NI, NO, HubDoor, HubDoor>,
        GW: Waiter<PortSource<NI::Buffer>, PortSink, HI, HO> + 'static,
    {
        let Self { hub, workers, lost, lines, config, times, balance } = self;
        let stop_guests = Arc::<AtomicBool>::default();
        let (say, heard) = sync_channel(MOST_LINES);
        let mut all = Threaded {
            door: HubDoor(Arc::clone(&hub.door)),
            hub,
            config,
            times,
            balance,
            guests: Vec::new(),
            stop_guests,
            heard,
            lines: Vec::new(),
            due: None,
            question: None,
            gathering: None,
            next_look: Instant::ZERO,
            is_armed: Cell::new(false),
            observe,
        };
        let begun = all.begin(std::mem::take(workers), threads, say);
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
                None => lost.push((n, guest.last)),
            }
        }
        *lines = all.take_lines();
        self.check_balance();
        ended
    }
}

/// The hub and the threads of its guests while they run. `F` is the observer.
pub(super) struct Threaded<'g, NI: FrameSource<Buffer: PortBuffer>, NO, HI: FrameSource, HO, F> {
    pub(super) hub: &'g mut Hub<NI, NO>,
    door: HubDoor,
    pub(super) config: &'g mut WorkerConfig,
    pub(super) times: &'g mut Times,
    pub(super) balance: &'g mut Balance,
    pub(super) guests: Vec<OnThread<GuestWorker<NI::Buffer, HI, HO>>>,
    stop_guests: Arc<AtomicBool>,
    heard: Receiver<String>,
    lines: Vec<String>,
    /// The reason for which the observer must be called; `None` if no call is due.
    pub(super) due: Option<Due>,
    pub(super) question: Option<Question>,
    pub(super) gathering: Option<Gathering>,
    next_look: Instant,
    /// `true` after the hub has announced that it may wait, so that a guest wakes it after queuing a frame.
    is_armed: Cell<bool>,
    pub(super) observe: F,
}

impl<NI, NO, HI, HO, F> Threaded<'_, NI, NO, HI, HO, F>
where
    NI: FrameSource<Buffer: PortBuffer>,
    NO: FrameSink,
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
        say: SyncSender<String>,
    ) -> Result<(), DeviceError>
    where
        GW: Waiter<PortSource<NI::Buffer>, PortSink, HI, HO> + 'static,
    {
        let refused = |source| DeviceError::System {
            message: "cannot give each guest a thread; raise `ulimit -u` and `ulimit -n`"
                .to_owned(),
            source,
        };
        self.hub.door.hang((threads.bell)().map_err(refused)?);
        let (hub, stop) = (Arc::clone(&self.hub.door), Arc::clone(&self.stop_guests));
        let common = Common { hub, stop, say };
        for (n, mut worker) in workers.into_iter().enumerate() {
            worker.config.look_every = self.config.look_every.map(|every| every.min(BETWEEN_LINES));
            let state = Arc::clone(&self.hub.sides[n].state);
            state.door.hang((threads.bell)().map_err(refused)?);
            let known_as = (format!("rxo-guest-{}", n + 1), state);
            let guest = OnThread::start(worker, known_as, threads, common.clone());
            self.guests.push(guest.map_err(refused).inspect_err(|_| self.stop_all())?);
        }
        Ok(())
    }

    fn stop_all(&self) {
        self.stop_guests.store(true, Ordering::Relaxed);
        self.guests.iter().for_each(|guest| guest.state.door.ring());
    }

    /// Checks the guests' threads, and processes questions and answers.
    fn supervise(&mut self) {
        let now = self.hub.now();
        if now >= self.next_look {
            self.next_look = now + BETWEEN_LOOKS;
            (0..self.guests.len()).for_each(|n| self.watch(n, now));
            self.guests.iter_mut().for_each(OnThread::send_pending);
        }
        self.attend_questions(now);
    }

    fn watch(&mut self, n: usize, now: Instant) {
        let (guest, side) = (&mut self.guests[n], &mut self.hub.sides[n]);
        let turns = guest.state.turns.load(Ordering::Relaxed);
        let said = match guest.watch.check(turns, !side.to_guest.is_empty(), now) {
            GuestState::Nothing => return,
            GuestState::IsLate => return add(&guest.state.stalls, 1),
            GuestState::Hangs => format!(
                "hangs: its thread has made no turn for {HANGS:?}; what is for it is dropped"
            ),
            GuestState::GoesOn => "goes on".to_owned(),
        };
        side.is_cut_off = !side.is_cut_off;
        self.lines.push(format!("guest {} of {} {said}", n + 1, self.guests.len()));
    }

    pub(super) fn take_lines(&mut self) -> Vec<String> {
        let mut lines = std::mem::take(&mut self.lines);
        lines.extend(self.heard.try_iter());
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
}

impl<NI, NO, HI, HO, F> Looped<NI, NO, HubDoor, HubDoor> for Threaded<'_, NI, NO, HI, HO, F>
where
    NI: FrameSource<Buffer: PortBuffer>,
    NO: FrameSink,
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

    /// Receives a batch from the nic, and passes on the frames that the guests sent.
    fn take_turn<W: Waiter<NI, NO, HubDoor, HubDoor>>(
        &mut self,
        waiter: &mut W,
        awake: Awake,
    ) -> Result<Turn, DeviceError> {
        if self.is_armed.take() {
            self.hub.door.disarm();
        }
        let received = self.hub.receive(awake.nic, |work| timed(waiter, work));
        let now = self.hub.now();
        let served = self.hub.serve(now);
        self.supervise();
        if self.guests.iter().any(OnThread::has_ended) {
            self.join()?;
        }
        Ok(Turn { from_nic: received?, from_host: served?, now })
    }

    fn deadline(&self) -> Option<Instant> {
        let is_asked = self.gathering.is_some() || self.question.is_some() || self.due.is_some();
        let answers = is_asked.then(|| self.hub.now() + BETWEEN_ANSWERS);
        let mut sides = self.hub.sides.iter();
        let is_awaited = sides.any(|side| !side.is_cut_off && !side.to_guest.is_empty());
        let looks = is_awaited.then_some(self.next_look);
        self.hub.deadline().into_iter().chain(answers).chain(looks).min()
    }

    /// Waits for the nic, and for frames from guests.
    fn wait<W: Waiter<NI, NO, HubDoor, HubDoor>>(
        &self,
        waiter: &mut W,
        timeout: Duration,
    ) -> Result<Awake, DeviceError> {
        let hub = &*self.hub;
        hub.door.arm();
        self.is_armed.set(true);
        if hub.deadline().is_some_and(|at| at <= hub.now()) {
            return Ok(Awake::ALL);
        }
        let is_starved = hub.source.is_starved();
        let wanted = Wanted {
            nic_source: (!is_starved).then_some(&hub.source),
            nic_sink: hub.outlet.wanted(),
            hosts: &[WantedHost { source: Some(&self.door), sink: None }],
        };
        let mut awake = wait(waiter, wanted, timeout, is_starved || hub.outlet.is_blocked())?;
        awake.nic |= is_starved;
        Ok(awake)
    }

    /// Does nothing, because each guest's worker decides about coalescing itself.
    fn judge(&mut self, _now: Instant, _cpu: Duration) {}

    /// Ends the guests' threads, and passes on the frames that the guests still send.
    fn empty_queues<W: Waiter<NI, NO, HubDoor, HubDoor>>(
        &mut self,
        waiter: &mut W,
    ) -> Result<(), DeviceError> {
        self.stop_all();
        let (begun, mut result) = (waiter.now(), Ok(()));
        loop {
            // Waiting for a guest must not count as a hang of the hub.
            self.config.count_turn();
            let now = waiter.now();
            let have_ended = self.join();
            // Passes on the last frames of the guests after their threads have ended.
            result = result.and(self.hub.serve(now).map(|_| ()));
            match have_ended {
                Ok(true) if self.hub.is_drained() => break,
                Ok(_) if now.since(begun) >= LONGEST_END => break,
                Ok(_) => waiter.pause(BETWEEN_ANSWERS),
                Err(error) => result = result.and(Err(error)),
            }
        }
        let count = self.guests.len();
        for (n, guest) in self.guests.iter_mut().enumerate() {
            match &mut guest.ended {
                Some(worker) => worker.to_host.source.clear(),
                None => self
                    .lines
                    .push(format!("guest {} of {count} hangs; rxo ends without it", n + 1)),
            }
        }
        self.hub.abandon();
        result
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
