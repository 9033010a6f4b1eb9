//! Keeper: the process that waits while the worker runs, and restores the interfaces once the worker has
//! ended, for whatever reason.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use rxo_device::DeviceError;
use rxo_frame::Instant;

use super::Custody;
use super::activity::Activity;
use super::channel::{Begun, Order, Report};
use super::confirmation::Confirmation;
use super::following::Following;
use super::lifeline::Lifeline;
use super::reload::{Hangup, Reloads};
use super::requests::Requests;
use super::successors::{KeeperTask, Successors};
use super::watch::Watch;
use crate::guard::{self, Worker};
use crate::heartbeat::{Duty, Heartbeat};
use crate::listener::Listener;
use crate::service::{Notice, Service};
use crate::wait::{Interest, WaitList};
use crate::{clock, fault};

/// The keeper process of a run: makes the changes to interfaces, waits for the worker, and restores them.
#[derive(Debug)]
pub struct Keeper {
    custody: Custody,
    worker: Worker,
    requests: Requests,
    /// The sender of the file of the run's flags to the worker; `None` if the run has no such file.
    reloads: Option<Reloads>,
    /// The number of requests of the user so far to end the run.
    asked: usize,
    /// Follows the host's network while the run's changes are made; `None` at other times.
    following: Option<Following>,
    confirmation: Confirmation,
    /// The counter that the worker increments as a sign of life, and the longest permitted time without an
    /// increment; `None` if the worker is not watched.
    heartbeat: Option<(Heartbeat, Duration)>,
    /// Measures the silence of the worker; `None` unless the host depends on the worker.
    watch: Option<Watch>,
    /// The instant until which the keeper waits until the devices of a killed worker are closed; `None` unless a
    /// silent worker was killed.
    hung: Option<Instant>,
    lifeline: Option<Lifeline>,
    service: Service,
    /// The instant at which the service manager was last notified that the run works.
    notified_at: Instant,
    /// The instant of the last check for changes that the kernel does not report.
    checked_at: Instant,
    /// The reason why the run cannot begin or continue; `None` unless the keeper has detected such a reason.
    refused: Option<DeviceError>,
    /// The successors of the worker; `None` if the run permits no successor.
    successors: Option<Successors>,
    /// `true` once the worker has reported that its devices are closed.
    is_closed: bool,
}

/// Maximum time for which the keeper waits until a killed worker's devices are closed: a call that hangs in
/// the kernel may last longer.
const CLOSE_TIMEOUT: Duration = Duration::from_millis(200);

/// The interval between checks for changes that the kernel does not report.
const CHECK_INTERVAL: Duration = Duration::from_millis(500);

impl Keeper {
    /// Creates the keeper of `custody` for `worker`. Each byte that `requests` yields is a request of the
    /// user to end the run: the first request lets the worker end by itself, the second request kills the
    /// worker.
    ///
    /// # Errors
    /// If `requests` cannot be made non-blocking.
    pub fn new(custody: Custody, worker: Worker, requests: UnixStream) -> io::Result<Self> {
        let requests = Requests::new(requests)?;
        let (following, confirmation) = (None, Confirmation::Enough);
        guard::protect();
        Ok(Self {
            custody,
            worker,
            requests,
            reloads: None,
            asked: 0,
            following,
            confirmation,
            heartbeat: None,
            watch: None,
            hung: None,
            lifeline: None,
            service: Service::default(),
            notified_at: clock::now(),
            checked_at: clock::now(),
            refused: None,
            successors: None,
            is_closed: false,
        })
    }

    /// Permits a process that connects to `listener` to replace the worker; see [`Successor`](super::Successor).
    #[must_use]
    pub fn with_successors(mut self, listener: Listener) -> Self {
        self.successors = Some(Successors::new(listener));
        self
    }

    /// Opens the file at `path` and sends it to the worker whenever the worker asks, and after each SIGHUP.
    /// The stream `hangups` yields one byte for each SIGHUP. A SIGHUP after the process has lost its terminal
    /// is a request to end the run.
    ///
    /// # Errors
    /// If `hangups` cannot be made non-blocking.
    pub fn reloads_from(mut self, path: &Path, hangups: Option<UnixStream>) -> io::Result<Self> {
        self.reloads = Some(Reloads::new(path, hangups)?);
        Ok(self)
    }

    /// Ends the run unless a [`Confirmer`](super::Confirmer) confirms it within `time` after the first
    /// change. A worker that does not end by itself is killed. The exit code of a run that was not confirmed
    /// is 1.
    #[must_use]
    pub fn confirm_within(mut self, time: Duration) -> Self {
        self.confirmation = Confirmation::Within(time);
        self
    }

    /// Kills the worker and restores everything if the counter in `heartbeat` stays unchanged for `limit` while
    /// the host depends on the worker. Time during which the keeper itself does not run, for example while the
    /// machine is suspended, does not count.
    #[must_use]
    pub const fn watch(mut self, heartbeat: Heartbeat, limit: Duration) -> Self {
        self.heartbeat = Some((heartbeat, limit));
        self
    }

    /// Makes the process at the other end of `lifeline` restore everything if worker and keeper are killed at
    /// once.
    #[must_use]
    pub fn with_lifeline(mut self, lifeline: Lifeline) -> Self {
        lifeline.name_worker(&self.worker);
        self.lifeline = Some(lifeline);
        self
    }

    /// Notifies the service manager when the run is ready, at intervals while it works, and when it ends.
    #[must_use]
    pub fn with_service(mut self, service: Service) -> Self {
        self.service = service;
        self
    }

    /// Waits until the worker ends, and restores what the run has changed. Calls `note` with a line for each
    /// fact that concerns the user. Returns the worker's exit code; `None` if a signal ended the worker.
    ///
    /// # Errors
    /// If the interfaces could not be prepared: the reason.
    pub fn keep(mut self, mut note: impl FnMut(&str)) -> Result<Option<i32>, DeviceError> {
        while self.wait(&mut note).is_some() {}
        self.service.notify(Notice::Stopping);
        self.restore(&mut note);
        let Self {
            worker,
            asked,
            refused,
            confirmation,
            hung,
            lifeline,
            is_closed,
            successors,
            ..
        } = self;
        lifeline.into_iter().for_each(Lifeline::dismiss);
        successors.into_iter().for_each(Successors::end);
        let status = worker.wait();
        let status = status.map_err(|error| fault::system("cannot wait for the worker", error))?;
        if let Some(refused) = refused {
            return Err(refused);
        }
        if confirmation.is_missing() {
            note("no confirmation has come; everything is given back");
            return Ok(Some(UNCONFIRMED));
        }
        let Some(status) = status else {
            // A worker that this process has not forked has no exit code for it.
            if !is_closed && asked < 2 && hung.is_none() {
                note("the worker was ended; the interfaces are put back");
            }
            return Ok(is_closed.then_some(0));
        };
        if status.code().is_none() && asked < 2 && hung.is_none() {
            note(&format!("the worker was ended ({status}); the interfaces are put back"));
        }
        Ok(status.code())
    }

    /// Waits for one event and handles it: a report of the worker, a request of the user, a signal or a
    /// notice of the kernel. `None` if the worker has ended.
    fn wait(&mut self, note: &mut impl FnMut(&str)) -> Option<()> {
        let (channel, requests) =
            (self.worker.channel.as_fd(), self.requests.0.as_ref().map(AsFd::as_fd));
        let mut list = WaitList::new();
        list.add(Some(&channel), Interest::Readable);
        list.add(requests.as_ref(), Interest::Readable);
        let notices = self.following.as_ref().map(AsFd::as_fd);
        list.add(notices.as_ref(), Interest::Readable);
        let hangups = self.reloads.as_ref().and_then(Reloads::stream);
        list.add(hangups.as_ref(), Interest::Readable);
        let successors = self.successors.as_ref().map(Successors::streams).unwrap_or_default();
        let of_successors =
            successors.each_ref().map(|it| list.add(it.as_ref(), Interest::Readable));
        let ready = list.wait(Some(self.max_wait())).ok()?;
        self.handle_hangups();
        self.handle_requests();
        self.check_confirmation();
        self.check_worker(note)?;
        let now = clock::now();
        let looks = now.since(self.checked_at) >= CHECK_INTERVAL;
        if let Some(following) = &mut self.following {
            if looks {
                self.checked_at = now;
                self.custody.follow_names();
                following.follow_groups(&mut self.custody);
            }
            following.turn(&mut self.custody, note);
        }
        let number = self.worker.number();
        self.serve_successors(of_successors.map(|places| ready.has_any(places)), note);
        // What was ready may be the channel of a worker that has just handed over.
        if ready.has(0) && self.worker.number() == number {
            let Ok((report, files)) = Report::receive(&self.worker.channel) else {
                return self.follow_successor(note);
            };
            match report {
                Report::Confirmed => self.confirm(),
                Report::Reload => self.reload(true),
                report => {
                    let order = self.answer(report, files, note);
                    // If the worker is gone, the next `receive` returns an error.
                    _ = order.send(&self.worker.channel);
                }
            }
        }
        Some(())
    }

    /// Handles what successors have sent: connections, and messages.
    fn serve_successors(&mut self, [connects, says]: [bool; 2], note: &mut impl FnMut(&str)) {
        let Some(successors) = &mut self.successors else { return };
        successors.forget_ended();
        // Messages are handled before connections, because a message comes from the successor that is already
        // connected.
        let wanted = if says {
            successors.listen(self.heartbeat.map(|(heartbeat, _)| heartbeat))
        } else {
            KeeperTask::Nothing
        };
        if connects {
            successors.accept();
        }
        match wanted {
            KeeperTask::Nothing => {}
            KeeperTask::HandOver(end) => {
                _ = Order::HandOver.send_with(&self.worker.channel, &[end.as_fd()])
            }
            KeeperTask::Failed => note("another rxo did not succeed; the run goes on"),
            KeeperTask::Succeeded(worker) => {
                // A successor must complete each message in time; a worker may send a report at any time.
                _ = worker.channel.set_read_timeout(None);
                let before = std::mem::replace(&mut self.worker, *worker);
                successors.retire(before);
                self.lifeline.iter().for_each(|lifeline| lifeline.name_worker(&self.worker));
            }
        }
    }

    /// Continues with the successor to which the worker has handed over before it ended. Returns `None` if
    /// there is no such successor.
    fn follow_successor(&mut self, note: &mut impl FnMut(&str)) -> Option<()> {
        self.successors.as_ref().filter(|successors| successors.is_asked())?;
        // The successor reports once it knows that its devices are open. The wait is bounded by the time
        // limit of its messages.
        let before = self.worker.number();
        self.serve_successors([false, true], note);
        (self.worker.number() != before).then_some(())
    }

    /// Returns the maximum time to wait for an event.
    fn max_wait(&self) -> Duration {
        let watch = self.watch.as_ref().map_or(CHECK_INTERVAL, Watch::pause);
        let most = self.service.period().map_or(watch, |period| period.min(watch));
        self.following.as_ref().map_or(most, |following| following.max_wait(most))
    }

    /// Kills a worker that is silent. Returns `None` once the time limit for closing the devices of a killed
    /// worker has passed.
    fn check_worker(&mut self, note: &mut impl FnMut(&str)) -> Option<()> {
        let now = clock::now();
        if let Some(until) = self.hung {
            return (now < until).then_some(());
        }
        if let (Some((heartbeat, limit)), Some(watch)) = (self.heartbeat, &mut self.watch)
            && watch.check(heartbeat.count(), now, || Activity::of(self.worker.number()))
        {
            self.worker.kill();
            self.hung = Some(now + CLOSE_TIMEOUT);
            let (ms, does) = (limit.as_millis(), watch.words());
            note(&format!(
                "the worker did nothing for {ms} ms ({does}) and is ended; the interfaces are put back"
            ));
        } else if self.service.period().is_some_and(|period| now.since(self.notified_at) >= period)
        {
            self.notified_at = now;
            self.service.notify(Notice::Alive);
        }
        Some(())
    }

    /// Sets the process that the host depends on from now on.
    fn set_duty(&mut self, duty: Duty) {
        let Some((heartbeat, limit)) = self.heartbeat else { return };
        let watched = duty == Duty::Worker;
        self.watch = watched.then(|| Watch::new(limit, heartbeat.count(), clock::now()));
        heartbeat.set_duty(duty);
    }

    fn handle_hangups(&mut self) {
        match self.reloads.as_mut().and_then(Reloads::hangup) {
            Some(Hangup::Reload) => self.reload(false),
            Some(Hangup::Closed) => self.end(1),
            None => {}
        }
    }

    fn reload(&self, is_asked: bool) {
        if let Some(reloads) = &self.reloads {
            reloads.send(&self.worker.channel, is_asked);
        }
    }

    fn handle_requests(&mut self) {
        let new = self.requests.count();
        self.end(new);
    }

    /// Handles `new` more requests to end the run: the first stops the worker, any further one kills it.
    fn end(&mut self, new: usize) {
        if new == 0 {
            return;
        }
        if self.asked == 0 {
            _ = Order::Stop.send(&self.worker.channel);
        }
        self.asked += new;
        if self.asked > 1 {
            self.worker.kill();
        }
    }

    /// Ends the worker if the user has not confirmed the run in time.
    fn check_confirmation(&mut self) {
        let Some(next) = self.confirmation.at(clock::now()) else { return };
        self.confirmation = next;
        match next {
            Confirmation::Killed => self.worker.kill(),
            _ => _ = Order::Stop.send(&self.worker.channel),
        }
    }

    /// Accepts a confirmation of the run. A confirmation that comes too late changes nothing.
    fn confirm(&mut self) {
        if !self.confirmation.is_missing() {
            self.confirmation = Confirmation::Enough;
        }
    }

    fn answer(
        &mut self,
        report: Report,
        files: Vec<OwnedFd>,
        note: &mut impl FnMut(&str),
    ) -> Order {
        let begun = match report {
            Report::Opened(tap) => {
                let begun = self.begin(tap, files, note);
                begun.inspect(|_| self.service.notify(Notice::Ready))
            }
            Report::NicIsGone => self.wait_for_nic().map(Begun::recorded),
            Report::NicIsBack(nic) => self.begin_again(nic).map(Begun::recorded),
            Report::Confirmed
            | Report::Reload
            | Report::Closed
            | Report::Succeeds { .. }
            | Report::Succeeded => {
                self.is_closed = true;
                self.service.notify(Notice::Stopping);
                self.restore(note);
                return Order::PutBack;
            }
        };
        match begun {
            Ok(begun) => {
                // While there is no nic, the host does not depend on the worker.
                let is_needed = report != Report::NicIsGone;
                self.set_duty(if is_needed { Duty::Worker } else { Duty::None });
                Order::Begin(begun)
            }
            Err(error) => {
                self.refused = Some(error);
                Order::Quit
            }
        }
    }

    fn begin(
        &mut self,
        tap: u32,
        files: Vec<OwnedFd>,
        note: &mut impl FnMut(&str),
    ) -> Result<Begun, DeviceError> {
        if tap > 0 {
            self.custody.note_tap(tap, files)?;
        }
        self.set_duty(Duty::Keeper);
        // Must precede the first change, so that no change by another program is missed.
        let following = self.following.insert(Following::start()?);
        let (begun, notices) = self.custody.begin()?;
        following.begin(&mut self.custody);
        if let Confirmation::Within(time) = self.confirmation {
            self.confirmation = Confirmation::Before(clock::now() + time);
        }
        notices.iter().for_each(|notice| note(notice));
        Ok(begun)
    }

    fn begin_again(&mut self, nic: u32) -> Result<Instant, DeviceError> {
        self.set_duty(Duty::Keeper);
        self.custody.succeed(nic)?;
        let closed_at = self.custody.begin_again()?;
        self.following.iter_mut().for_each(|following| following.begin(&mut self.custody));
        Ok(closed_at)
    }

    /// Handles a deleted nic: switches the TAP's carrier off, and frees the nic's name for a new interface.
    fn wait_for_nic(&mut self) -> Result<Instant, DeviceError> {
        self.custody.show_carrier(false);
        self.custody.release_names()?;
        Ok(clock::now())
    }

    fn restore(&mut self, note: &mut impl FnMut(&str)) {
        if self.following.take().is_some() {
            self.set_duty(Duty::Keeper);
            self.custody.restore().iter().for_each(|line| note(line));
        }
        self.set_duty(Duty::None);
    }
}

/// The exit code of a run that was not confirmed.
const UNCONFIRMED: i32 = 1;
