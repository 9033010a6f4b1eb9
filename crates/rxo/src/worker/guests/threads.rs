//! A thread for each guest, beside that of the hub.
//!
//! Contract: the hub never waits for a guest's thread, not even at the end: a thread that hangs is left behind after
//! [`LONGEST_END`]. What the workers of guests are asked is answered by themselves, between two of their turns; the hub
//! gathers that. A guest that is silent shows its last reading.

use std::cell::Cell;
use std::collections::VecDeque;
use std::io;
use std::iter::from_fn;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rxo_coalesce::Policy;
use rxo_device::{Descriptors, DeviceError, FrameSink, FrameSource, SinkCapabilities};
use rxo_frame::Instant;

use super::bell::{Bell, Door};
use super::gather::{Asked, Gathering, Place};
use super::hub::Hub;
use super::lane::PortBuffer;
use super::port::{PortSink, PortSource, PortState, add};
use super::watch::{Found, HANGS, LATE, Watch};
use super::{GuestWorker, Guests};
use crate::desk::{Desk, Reply};
use crate::worker::balance::Balance;
use crate::worker::fit::carried;
use crate::worker::looped::{self, Looped};
use crate::worker::next::Turn;
use crate::worker::reading::{Due, Times};
use crate::worker::waiter::{timed, wait};
use crate::worker::{
    Awake, Misfit, Moment, PolicyInForce, Question, Reading, Readings, Report, Waiter, Wanted,
    WantedHost, WorkerConfig,
};

/// What threads need of the system. `GW` is the clock of a guest's thread, `HO` the sink of its device.
#[derive(Debug)]
pub struct Threads<GW, HO> {
    /// Makes the clock of a thread, on that thread.
    pub waiter: fn() -> GW,
    /// Makes a bell.
    pub bell: fn() -> io::Result<Arc<dyn Bell>>,
    /// Takes a line for the user from a guest's device.
    pub notice: fn(&mut HO) -> Option<String>,
}

/// What the hub waits for beside its nic.
pub struct HubDoor(Arc<Door>);

impl Descriptors for HubDoor {
    fn visit_descriptors<'f>(&'f self, visit: &mut dyn FnMut(BorrowedFd<'f>)) {
        self.0.visit_descriptors(visit);
    }
}

/// Lines for the user that wait to be seen. More are dropped: guests cannot fill memory.
const MOST_LINES: usize = 64;
/// How long the hub waits for the guests' threads at the end. A guest's worker needs a few turns.
const LONGEST_END: Duration = Duration::from_millis(500);
/// Time between two looks at the guests' threads while frames wait for them.
const BETWEEN_LOOKS: Duration = LATE;
/// Time between two looks for lines of a guest's device, at most, so that the next report has them.
const BETWEEN_LINES: Duration = Duration::from_millis(250);
/// Time between two looks for answers, or for the ends of threads.
const BETWEEN_ANSWERS: Duration = Duration::from_micros(200);
/// Changes that a silent guest will be told of later.
const MOST_OWED: usize = 8;

impl<NI, NO, HI, HO> Guests<NI, NO, HI, HO>
where
    NI: FrameSource<Buffer: PortBuffer>,
    NO: FrameSink,
    HI: FrameSource<Buffer: Send> + Send + 'static,
    HO: FrameSink + Send + 'static,
{
    /// Runs as [`Guests::run`] does, each guest on a thread of its own and the hub on this one. Observers get no sinks of
    /// guests, but the lines of their devices.
    ///
    /// # Errors
    /// The first failure of a device, or of the system when a thread is made.
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
        let begun = all.begin(std::mem::take(workers), threads, &say);
        let ended = begun.and_then(|()| {
            looped::run(&mut all, waiter, stop, |all, due| {
                // A look is part of a report.
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

/// A guest as the hub sees it. `T` is its worker.
struct OnThread<T> {
    thread: Option<JoinHandle<(T, Result<(), DeviceError>)>>,
    /// Its worker, once its thread has ended.
    ended: Option<T>,
    desk: Desk<Question>,
    state: Arc<PortState>,
    watch: Watch,
    /// The last that it told.
    last: Reading,
    policy: PolicyInForce,
    /// What its device takes.
    takes: SinkCapabilities,
    /// Questions for which its desk had no room.
    owed: VecDeque<Question>,
}

impl<T> OnThread<T> {
    /// Asks the guest's worker, unless it has not taken the question before.
    fn ask<A>(&mut self, question: impl FnOnce(Reply<A>) -> Question) -> Place<A> {
        let (reply, answer) = Reply::new();
        if self.owed.is_empty() && self.desk.post(question(reply)).is_none() {
            self.state.door.ring();
            Place::Awaited(answer)
        } else {
            Place::Silent
        }
    }

    /// Tells the guest's worker of a change, at the latest when it goes on.
    fn change<A>(&mut self, question: impl Fn(Reply<A>) -> Question) -> Place<A> {
        let place = self.ask(&question);
        if matches!(place, Place::Silent) {
            if self.owed.len() == MOST_OWED {
                self.owed.pop_front();
            }
            self.owed.push_back(question(Reply::new().0));
        }
        place
    }

    /// Tells it what it was not told, as far as it takes that now.
    fn settle(&mut self) {
        if let Some(question) = self.owed.pop_front()
            && let Some(question) = self.desk.post(question)
        {
            self.owed.push_front(question);
        }
    }

    fn has_ended(&self) -> bool {
        self.thread.as_ref().is_some_and(JoinHandle::is_finished)
    }

    /// Takes the worker back, if its thread has ended.
    ///
    /// # Errors
    /// That of its device, once.
    fn join(&mut self) -> Result<(), DeviceError> {
        let Some(thread) = self.thread.take_if(|thread| thread.is_finished()) else {
            return Ok(());
        };
        match thread.join() {
            Ok((worker, result)) => {
                self.ended = Some(worker);
                result
            }
            // A fault of rxo, as on any other thread.
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
}

/// The hub and the threads of its guests. `F` is the observer.
struct Threaded<'g, NI: FrameSource<Buffer: PortBuffer>, NO, HI: FrameSource, HO, F> {
    hub: &'g mut Hub<NI, NO>,
    door: HubDoor,
    config: &'g mut WorkerConfig,
    times: &'g mut Times,
    balance: &'g mut Balance,
    guests: Vec<OnThread<GuestWorker<NI::Buffer, HI, HO>>>,
    stop_guests: Arc<AtomicBool>,
    heard: Receiver<String>,
    lines: Vec<String>,
    /// What the observer is to be called for.
    due: Option<Due>,
    question: Option<Question>,
    gathering: Option<Gathering>,
    next_look: Instant,
    /// Whether guests are to knock.
    is_armed: Cell<bool>,
    observe: F,
}

impl<NI, NO, HI, HO, F> Threaded<'_, NI, NO, HI, HO, F>
where
    NI: FrameSource<Buffer: PortBuffer>,
    NO: FrameSink,
    HI: FrameSource<Buffer: Send> + Send + 'static,
    HO: FrameSink + Send + 'static,
    F: FnMut(Report<'_, NO, HO>),
{
    /// Gives each worker a thread.
    ///
    /// # Errors
    /// If the system refuses one. Those that were made end.
    fn begin<GW>(
        &mut self,
        workers: Vec<GuestWorker<NI::Buffer, HI, HO>>,
        threads: &Threads<GW, HO>,
        say: &SyncSender<String>,
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
        for (n, mut worker) in workers.into_iter().enumerate() {
            let state = Arc::clone(&self.hub.sides[n].state);
            state.door.hang((threads.bell)().map_err(refused)?);
            let desk = Desk::new();
            worker.config.desk = Some(desk.clone());
            worker.config.look_every = self.config.look_every.map(|every| every.min(BETWEEN_LINES));
            let (last, policy) = (worker.reading(), worker.policy());
            let takes = worker.to_host.outlet.sink.capabilities();
            let (waiter, notice) = (threads.waiter, threads.notice);
            let (stop, say) = (Arc::clone(&self.stop_guests), say.clone());
            let (door, gone) = (Arc::clone(&self.hub.door), Arc::clone(&state));
            let work = move || {
                let result = worker.run(&mut waiter(), &stop, |report| {
                    gone.note_gone(report.peers_gone);
                    let sinks = report.host_sinks.into_iter();
                    let lines = sinks.flat_map(|sink| from_fn(move || notice(sink)));
                    // A line that finds no room is one of very many.
                    lines.for_each(|line| _ = say.try_send(line));
                });
                door.ring();
                (worker, result)
            };
            let name = format!("rxo-guest-{}", n + 1);
            let thread = thread::Builder::new().name(name).spawn(work).map_err(refused);
            let thread = thread.inspect_err(|_| self.stop_all())?;
            self.guests.push(OnThread {
                thread: Some(thread),
                ended: None,
                desk,
                state,
                watch: Watch::default(),
                last,
                policy,
                takes,
                owed: VecDeque::new(),
            });
        }
        Ok(())
    }

    fn stop_all(&self) {
        self.stop_guests.store(true, Ordering::Relaxed);
        self.guests.iter().for_each(|guest| guest.state.door.ring());
    }

    /// Looks at the guests' threads, and at what is asked.
    fn oversee(&mut self) {
        let now = self.hub.now();
        if now >= self.next_look {
            self.next_look = now + BETWEEN_LOOKS;
            (0..self.guests.len()).for_each(|n| self.watch(n, now));
            self.guests.iter_mut().for_each(OnThread::settle);
        }
        if self.gathering.is_none() {
            if let Some(question) = self.question.take() {
                self.gathering = self.ask(question, now);
            } else if let Some(due) = self.due.take() {
                self.gathering = Some(Gathering::Report(due, self.asked(Question::Counters, now)));
            }
        }
        if let Some(gathering) = self.gathering.take_if(|it| it.is_complete(now)) {
            self.finish(gathering);
        }
    }

    fn watch(&mut self, n: usize, now: Instant) {
        let (guest, side) = (&mut self.guests[n], &mut self.hub.sides[n]);
        let turns = guest.state.turns.load(Ordering::Relaxed);
        let said = match guest.watch.look(turns, !side.to_guest.is_empty(), now) {
            Found::Nothing => return,
            Found::IsLate => return add(&guest.state.stalls, 1),
            Found::Hangs => format!(
                "hangs: its thread has made no turn for {HANGS:?}; what is for it is dropped"
            ),
            Found::GoesOn => "goes on".to_owned(),
        };
        side.is_cut_off = !side.is_cut_off;
        self.lines.push(format!("guest {} of {} {said}", n + 1, self.guests.len()));
    }

    /// Asks each guest, which may be silent.
    fn asked<A>(&mut self, question: impl Fn(Reply<A>) -> Question, now: Instant) -> Asked<A> {
        Asked::new(self.guests.iter_mut().map(|guest| guest.ask(&question)).collect(), now)
    }

    /// Begins to answer a question.
    fn ask(&mut self, question: Question, now: Instant) -> Option<Gathering> {
        match question {
            Question::Counters(reply) => {
                Some(Gathering::Counters(reply, self.asked(Question::Counters, now)))
            }
            Question::Policies(reply) => {
                Some(Gathering::Policies(reply, self.asked(Question::Policies, now)))
            }
            Question::ChangePolicy(policy, reply) => {
                if let Err(misfit) = self.check(policy) {
                    reply.give(Err(misfit));
                    return None;
                }
                self.config.engine.policy = policy;
                let change = |reply| Question::ChangePolicy(policy, reply);
                let places = self.guests.iter_mut().map(|guest| guest.change(change)).collect();
                Some(Gathering::Change(reply, Asked::new(places, now)))
            }
            Question::Coalesce(when, reply) => {
                let change = |reply| Question::Coalesce(when, reply);
                let places = self.guests.iter_mut().map(|guest| match when {
                    Some(_) => guest.change(change),
                    None => guest.ask(change),
                });
                Some(Gathering::Coalesce(reply, Asked::new(places.collect(), now)))
            }
            Question::ReportEvery(time, reply) => {
                reply.give(self.times.report_every(time));
                None
            }
        }
    }

    /// Whether each guest's device carries a policy.
    fn check(&self, policy: Policy) -> Result<(), Misfit> {
        for guest in &self.guests {
            let policy = carried(policy, guest.takes)?;
            rxo_coalesce::Config { policy, ..self.config.engine.clone() }.check()?;
        }
        Ok(())
    }

    fn finish(&mut self, gathering: Gathering) {
        match gathering {
            Gathering::Report(due, asked) => {
                self.note(asked);
                self.report(due);
            }
            Gathering::Counters(reply, asked) => {
                self.note(asked);
                reply.give(self.readings());
            }
            Gathering::Policies(reply, asked) => {
                for (guest, told) in self.guests.iter_mut().zip(asked.into_answers()) {
                    guest.policy =
                        told.and_then(|told| told.first().copied()).unwrap_or(guest.policy);
                }
                reply.give(self.guests.iter().map(|guest| guest.policy).collect());
            }
            Gathering::Change(reply, asked) => {
                // What the devices carry was checked before. A silent guest changes when it goes on.
                let moments = asked.into_answers().map(|told| told.and_then(Result::ok));
                reply.give(Ok(Moment::together(moments.map(or_later))));
            }
            Gathering::Coalesce(reply, asked) => {
                reply.give(Moment::together(asked.into_answers().map(or_later)));
            }
        }
    }

    fn note(&mut self, asked: Asked<Readings>) {
        for (guest, told) in self.guests.iter_mut().zip(asked.into_answers()) {
            guest.last = told.map_or_else(|| std::mem::take(&mut guest.last), |told| told.all);
        }
    }

    fn report(&mut self, due: Due) {
        self.hub.look(self.times.now());
        self.check_balance();
        let reading = self.readings();
        let lines = self.take_lines();
        (self.observe)(Report {
            reading: &reading,
            is_due: due == Due::Report,
            nic_sink: &mut self.hub.outlet.sink,
            host_sinks: Vec::new(),
            lines,
            peers_gone: self.hub.sides.iter().map(|side| side.state.gone()).sum(),
        });
    }

    /// All counters, with what each guest told last.
    fn readings(&mut self) -> Readings {
        let guests = self.guests.iter().map(|guest| guest.last.clone()).collect();
        let times = (self.times.elapsed(), self.times.cpu());
        self.hub.readings(times, self.balance.found(), guests)
    }

    fn take_lines(&mut self) -> Vec<String> {
        let mut lines = std::mem::take(&mut self.lines);
        lines.extend(self.heard.try_iter());
        lines
    }

    /// Takes the workers back whose threads have ended. Returns whether all have.
    ///
    /// # Errors
    /// The first of their devices'.
    fn join(&mut self) -> Result<bool, DeviceError> {
        let joined = super::all(self.guests.iter_mut().map(OnThread::join));
        joined.map(|()| self.guests.iter().all(|guest| guest.ended.is_some()))
    }
}

/// A guest that is silent follows when it goes on.
fn or_later(moment: Option<Moment>) -> Moment {
    moment.unwrap_or(Moment::WhenThereIsRoom(1))
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

    /// Takes a batch of the nic, and passes on what guests sent.
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
        self.oversee();
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

    /// Waits for the nic and for guests.
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

    /// Each worker judges for itself.
    fn judge(&mut self, _now: Instant, _cpu: Duration) {}

    /// Ends the guests' threads, and passes on what they send meanwhile.
    fn empty_queues<W: Waiter<NI, NO, HubDoor, HubDoor>>(
        &mut self,
        waiter: &mut W,
    ) -> Result<(), DeviceError> {
        self.stop_all();
        let (begun, mut result) = (waiter.now(), Ok(()));
        loop {
            // Waiting for a guest is no hang of the hub.
            self.config.count_turn();
            let now = waiter.now();
            let have_ended = self.join();
            // The last of it after they have ended.
            result = result.and(self.hub.serve(now).map(|_| ()));
            match have_ended {
                Ok(true) if self.hub.is_served() => break,
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
