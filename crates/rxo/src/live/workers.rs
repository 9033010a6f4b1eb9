//! Workers: several workers between two devices, each on a thread of its own.
//!
//! ```text
//!  nic, queue 0 ── worker 0 ── host, queue 0        The devices choose the queue of a flow alike, and both
//!  nic, queue 1 ── worker 1 ── host, queue 1        directions of a connection meet in one worker.
//! ```
//!
//! On the path of a frame, workers share nothing. The calling thread carries no frames: it collects the reports
//! of the workers, and checks that all of them run. Contract: either all workers begin, or none. When a worker
//! fails or panics, all other workers end in order: each of them delivers all packets that it holds. The totals
//! include all workers. For a worker that has panicked, the totals include its last report.

use std::any::Any;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use rxo_device::DeviceError;
use rxo_driver::{Bell, Device, bind_to_cpu};

use super::middleware::ends;
use super::notices::{Notices, of_devices};
use super::reports::{TurnCounts, WorkerReports};
use super::station::{Event, NOTICES_EVERY, Observer, Outcome, Remains};
use super::waiter::WaiterWithBell;
use super::{FileLog, SystemWaiter};
use crate::worker::{Crew, Misfit, Reading, Report, Worker, WorkerConfig};

/// The queues of two devices, and the workers between them.
pub struct Workers {
    setups: Vec<WorkerSetup>,
    /// The counter of turns that another process watches; `None` if no process does. The counter grows only
    /// when all workers have made a turn.
    heartbeat: Option<&'static AtomicU64>,
}

/// One worker before its start: its devices and its settings.
struct WorkerSetup {
    nic: Device,
    host: Device,
    config: WorkerConfig,
    logs: [Option<FileLog>; 2],
    cpu: Option<u16>,
}

/// A message of a worker to the thread that watches it.
enum Message {
    /// The worker's devices fit its configuration.
    Fits,
    Misfit(Misfit),
    /// The worker's counters; `true` if the interval between two reports has passed; and the notices for the user.
    Report(Box<Reading>, bool, Vec<String>),
    /// The worker's counters at its end, the notices for the user, and the worker's first failure.
    Ended(Box<Reading>, Vec<String>, Result<(), DeviceError>),
    /// The worker itself, which has left its devices. Freeing the worker on its own thread would delay the end
    /// of that thread.
    Left(Box<dyn Any + Send>),
}

impl Workers {
    /// Creates a worker for each pair of queues, configured by `config`; the workers use the desks of `crew`.
    /// Each device must have at least as many queues as the crew has workers; further queues are not used.
    ///
    /// # Examples
    /// ```no_run
    /// use std::sync::atomic::AtomicBool;
    ///
    /// use rxo::driver::DeviceOptions;
    /// use rxo::live::Workers;
    /// use rxo::worker::Crew;
    /// use rxo::{Policy, WorkerConfig};
    ///
    /// let nic = "packet:eth1".parse::<rxo::driver::DeviceName>()?.attach_queues(4)?;
    /// let host = "tap:rxo0".parse::<rxo::driver::DeviceName>()?.attach_queues(4)?;
    /// let options = DeviceOptions { bring_up: true, ..DeviceOptions::default() };
    /// let queues = (nic.open_queues(options)?, host.open_queues(options)?);
    /// let config = WorkerConfig::new(Policy::linux_gro());
    /// let workers = Workers::new(queues, config, &Crew::new(4));
    /// workers.run(&AtomicBool::new(false), |_event| {})?.result?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn new((nic, host): (Vec<Device>, Vec<Device>), config: WorkerConfig, crew: &Crew) -> Self {
        let heartbeat = config.turns;
        let config = WorkerConfig { look_every: Some(NOTICES_EVERY), ..config };
        let configs = crew.configs(&config).into_iter();
        let setups = nic.into_iter().zip(host).zip(configs).map(|((nic, host), config)| {
            let (logs, cpu) = ([None, None], None);
            WorkerSetup { nic, host, config, logs, cpu }
        });
        Self { setups: setups.collect(), heartbeat }
    }

    /// Binds each worker to a processor: the first worker to the first of `cpus`, and so on. Workers beyond
    /// the last of `cpus` are not bound.
    #[must_use]
    pub fn on_cpus(mut self, cpus: &[u16]) -> Self {
        self.setups.iter_mut().zip(cpus).for_each(|(setup, cpu)| setup.cpu = Some(*cpu));
        self
    }

    /// Logs the packets of the nic and of the host's device to two logs that all workers share.
    #[must_use]
    pub fn logged(mut self, nic: &FileLog, host: &FileLog) -> Self {
        for setup in &mut self.setups {
            setup.logs = [Some(nic.clone()), Some(host.clone())];
        }
        self
    }

    /// Runs the workers until `stop` is set or a device fails.
    ///
    /// # Errors
    /// [`Misfit`] before the first frame is received. A later failure is in the [`Outcome`], together with the
    /// totals. It is the failure of a device, or of the system to start a thread or to bind one to a processor.
    pub fn run(self, stop: &AtomicBool, observe: impl FnMut(Event<'_>)) -> Result<Outcome, Misfit> {
        self.run_keeping(stop, observe).map(|(outcome, _)| outcome)
    }

    /// Runs as [`Workers::run`] does, and returns the memory of the workers too, as
    /// [`Station::run_keeping`](super::Station::run_keeping) does.
    ///
    /// # Errors
    /// Returns the errors of [`Workers::run`].
    pub fn run_keeping(
        self,
        stop: &AtomicBool,
        mut observe: impl FnMut(Event<'_>),
    ) -> Result<(Outcome, Remains), Misfit> {
        self.run_observed(stop, &mut observe)
    }

    fn run_observed(
        self,
        stop: &AtomicBool,
        observe: Observer<'_>,
    ) -> Result<(Outcome, Remains), Misfit> {
        let Self { setups, heartbeat } = self;
        let turns: Vec<_> = setups.iter().filter_map(|setup| setup.config.turns).collect();
        let (halt, (sender, messages)) = (AtomicBool::new(false), channel());
        // Without a bell an idle worker notices the end a little later.
        let bell = Bell::new().ok();
        let mut watch = Watch::new(turns, heartbeat, messages);
        thread::scope(|scope| {
            let (mut starts, mut threads) = (Vec::new(), Vec::new());
            for (n, setup) in setups.into_iter().enumerate() {
                let (start, started) = channel();
                let sender = WorkerSender { n, sender: sender.clone() };
                let end = (&halt, bell.as_ref());
                let name = format!("rxo-worker-{}", n + 1);
                let thread = thread::Builder::new().name(name);
                match thread.spawn_scoped(scope, move || setup.work(&sender, end, &started)) {
                    Ok(thread) => {
                        starts.push(start);
                        threads.push(thread);
                    }
                    Err(error) => {
                        watch.note(Err(cannot_start(error)));
                        break;
                    }
                }
            }
            drop(sender);
            if watch.all_fit(starts.len()) {
                observe(Event::Ready);
                starts.iter().for_each(|start| _ = start.send(()));
            }
            // Threads that still wait for the start end now.
            drop(starts);
            watch.until_all_have_ended((stop, &halt, bell.as_ref()), observe);
            for thread in threads {
                watch.note(thread.join().map_err(|_| panicked()));
            }
        });
        watch.outcome(observe)
    }
}

/// The state of the thread that watches the workers.
struct Watch {
    turns: Vec<&'static AtomicU64>,
    heartbeat: Option<&'static AtomicU64>,
    messages: Receiver<(usize, Message)>,
    reports: WorkerReports,
    call: TurnCounts,
    notices: Notices,
    /// The notices about devices that were reported so far, each with the number of the worker that reported
    /// it first.
    reported: Vec<(usize, String)>,
    misfit: Option<Misfit>,
    result: Result<(), DeviceError>,
    remains: Remains,
}

impl Watch {
    fn new(
        turns: Vec<&'static AtomicU64>,
        heartbeat: Option<&'static AtomicU64>,
        messages: Receiver<(usize, Message)>,
    ) -> Self {
        let (reports, call) = (WorkerReports::new(turns.len()), TurnCounts::new(turns.len()));
        Self {
            turns,
            heartbeat,
            messages,
            reports,
            call,
            notices: Notices::default(),
            reported: Vec::new(),
            misfit: None,
            result: Ok(()),
            remains: Remains::default(),
        }
    }

    /// Records `result` if it is the first failure.
    fn note(&mut self, result: Result<(), DeviceError>) {
        if self.result.is_ok() {
            self.result = result;
        }
    }

    /// Waits until `workers` workers have reported whether their devices fit the configuration. Returns `true`
    /// if all devices fit.
    fn all_fit(&mut self, workers: usize) -> bool {
        for _ in 0..workers {
            match self.messages.recv() {
                Ok((_, Message::Fits)) => {}
                Ok((_, Message::Misfit(misfit))) => self.misfit = Some(misfit),
                Ok((_, Message::Ended(.., result))) => self.note(result),
                Ok((_, Message::Report(..) | Message::Left(_))) | Err(_) => return false,
            }
        }
        self.misfit.is_none() && self.result.is_ok()
    }

    /// Passes on the reports of the workers, until the last worker has ended. Workers end when `stop` is set,
    /// or when one of them has ended.
    fn until_all_have_ended(
        &mut self,
        (stop, halt, bell): (&AtomicBool, &AtomicBool, Option<&Bell>),
        observe: Observer<'_>,
    ) {
        loop {
            match self.messages.recv_timeout(CHECK_INTERVAL) {
                Ok((n, message)) => self.receive(n, message, observe),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            if stop.load(Ordering::Relaxed) {
                halt.store(true, Ordering::Relaxed);
            }
            if halt.load(Ordering::Relaxed) {
                // Two workers that end one after the other interrupt the traffic of the first.
                bell.into_iter().for_each(Bell::ring);
            }
            let turns = self.turns.iter().map(|turns| turns.load(Ordering::Relaxed));
            if self.call.is_complete(turns)
                && let Some(heartbeat) = self.heartbeat
            {
                // Only this thread writes the counter.
                heartbeat
                    .store(heartbeat.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
            }
        }
    }

    fn receive(&mut self, n: usize, message: Message, observe: Observer<'_>) {
        let (reading, is_report, lines) = match message {
            Message::Report(reading, is_report, lines) => (reading, is_report, lines),
            Message::Ended(reading, lines, result) => {
                self.note(result);
                (reading, false, lines)
            }
            Message::Left(worker) => return self.remains.0.push(worker),
            Message::Fits | Message::Misfit(_) => return,
        };
        for line in lines {
            if self.is_new(n, &line) {
                observe(Event::Notice(line));
            }
        }
        let is_complete = self.reports.record(n, *reading, is_report);
        // Adding up takes time, so it is done once for all workers.
        if !is_complete && n > 0 {
            return;
        }
        let readings = self.reports.readings();
        self.notices.of_counters(&readings, observe);
        if is_complete {
            observe(Event::Reading(&readings));
        }
    }

    /// Returns `true` unless another worker has already reported `line`: all workers have the same devices, so
    /// several workers may report one event.
    fn is_new(&mut self, n: usize, line: &str) -> bool {
        let reported_by =
            self.reported.iter().find(|(_, reported)| reported == line).map(|(worker, _)| *worker);
        if reported_by.is_none() && self.reported.len() < MOST_NOTICES {
            self.reported.push((n, line.to_owned()));
        }
        reported_by.is_none_or(|worker| worker == n)
    }

    fn outcome(mut self, observe: Observer<'_>) -> Result<(Outcome, Remains), Misfit> {
        if let Some(misfit) = self.misfit {
            return Err(misfit);
        }
        let totals = self.reports.readings();
        self.notices.last_of_counters(&totals, observe);
        Ok((Outcome { totals, result: self.result }, self.remains))
    }
}

/// The sending end of the channel on which worker `n` reports.
struct WorkerSender {
    n: usize,
    sender: Sender<(usize, Message)>,
}

impl WorkerSender {
    fn send(&self, message: Message) {
        // If nobody listens any more, the run is ending.
        _ = self.sender.send((self.n, message));
    }
}

/// Ends all workers when the worker that holds this value ends, even by a panic.
pub(super) struct EndsAll<'a>(pub(super) &'a AtomicBool);

impl Drop for EndsAll<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl WorkerSetup {
    /// Waits until `started` reports that all workers fit, then runs the worker on this thread until `halt` is
    /// set. Another thread that sets `halt` can ring `bell` to wake the worker.
    fn work(
        self,
        voice: &WorkerSender,
        (halt, bell): (&AtomicBool, Option<&Bell>),
        started: &Receiver<()>,
    ) {
        let _ends_all = EndsAll(halt);
        let Self { nic, host, config, logs: [nic_log, host_log], cpu } = self;
        if let Some((cpu, Err(error))) = cpu.map(|cpu| (cpu, bind_to_cpu(cpu))) {
            let ended = Err(cannot_bind(cpu, error));
            return voice.send(Message::Ended(Box::default(), Vec::new(), ended));
        }
        let (nic, host) = (ends(nic, nic_log), ends(host, host_log));
        let mut worker = match Worker::new(nic, host, config) {
            Ok(worker) => Box::new(worker),
            Err(misfit) => return voice.send(Message::Misfit(misfit)),
        };
        voice.send(Message::Fits);
        if started.recv().is_err() {
            return;
        }
        let mut waiter = WaiterWithBell { waiter: SystemWaiter::new(), bell };
        let result = worker.run(&mut waiter, halt, |report| {
            let Report { reading, is_due, nic_sink, host_sinks, .. } = report;
            let lines = lines(|observe| of_devices(nic_sink, host_sinks, observe));
            voice.send(Message::Report(Box::new(reading.all.clone()), is_due, lines));
        });
        let totals = Box::new(worker.reading());
        let (nic, host) = worker.devices();
        let lines = lines(|observe| of_devices(nic.sink, [host.sink], observe));
        [nic.source, host.source].into_iter().for_each(|source| source.leave());
        voice.send(Message::Ended(totals, lines, result));
        voice.send(Message::Left(worker));
    }
}

/// Collects the notices that `report` passes to its observer.
fn lines(report: impl FnOnce(Observer<'_>)) -> Vec<String> {
    let mut lines = Vec::new();
    report(&mut |event| {
        if let Event::Notice(line) = event {
            lines.push(line);
        }
    });
    lines
}

impl fmt::Debug for Workers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Workers({})", self.setups.len())
    }
}

fn cannot_start(source: std::io::Error) -> DeviceError {
    let message = "cannot start a thread for each worker; use fewer workers".to_owned();
    DeviceError::System { message, source }
}

pub(super) fn cannot_bind(cpu: u16, source: std::io::Error) -> DeviceError {
    let message =
        format!("cannot bind a worker to processor {cpu}; `nproc` counts those that may be used");
    DeviceError::System { message, source }
}

/// Returns the error of a worker whose thread has panicked.
pub(super) fn panicked() -> DeviceError {
    let source = std::io::Error::other("it has panicked, and printed why");
    DeviceError::System { message: "a worker's thread has ended".to_owned(), source }
}

/// The maximum number of remembered lines about devices. Few different lines occur.
const MOST_NOTICES: usize = 64;
/// Time between two checks of the workers, which make at least ten turns per second.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);
