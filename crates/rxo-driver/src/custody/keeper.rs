//! The keeper: a process that waits beside the worker and restores the interfaces when the worker has
//! ended, for whatever reason.

use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use rxo_device::DeviceError;
use rxo_frame::Instant;

use super::Custody;
use super::channel::{Order, Report};
use super::following::Following;
use crate::guard::Worker;
use crate::wait::{Interest, WaitList};
use crate::{clock, fault};

/// The side of a run in two processes that only waits and restores.
#[derive(Debug)]
pub struct Keeper {
    custody: Custody,
    worker: Worker,
    requests: Requests,
    /// How often the user has asked for an end.
    asked: usize,
    /// Follows the host while something was changed that is not given back yet.
    following: Option<Following>,
    confirmation: Confirmation,
    /// Why the run cannot begin or go on, if this process found that out.
    refused: Option<DeviceError>,
}

/// A confirmation by the user, without which the run ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Confirmation {
    /// None is needed, or it has come.
    Enough,
    /// It must come within this time of the first change.
    Within(Duration),
    /// It must come before this instant.
    Before(Instant),
    /// It has not come. The worker has until this instant to end by itself.
    Missed { kill_at: Instant },
    /// It has not come, and the worker was killed.
    Killed,
}

/// How long a worker may take to end by itself when no confirmation has come.
const GRACE: Duration = Duration::from_secs(3);

impl Confirmation {
    /// The state at `now`, if it changes by itself.
    fn at(self, now: Instant) -> Option<Self> {
        match self {
            Self::Before(end) if now >= end => Some(Self::Missed { kill_at: now + GRACE }),
            Self::Missed { kill_at } if now >= kill_at => Some(Self::Killed),
            _ => None,
        }
    }

    /// Whether it came too late, or not at all.
    const fn is_missing(self) -> bool {
        matches!(self, Self::Missed { .. } | Self::Killed)
    }
}

/// The user's requests to end; `None` after the last.
#[derive(Debug)]
struct Requests(Option<UnixStream>);

/// How often is looked for what the kernel does not report.
const BETWEEN_LOOKS: Duration = Duration::from_millis(500);

impl Requests {
    fn new(stream: UnixStream) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        Ok(Self(Some(stream)))
    }

    /// How many came since the last call. After the last there is nothing to wait for.
    fn count(&mut self) -> usize {
        let Some(mut stream) = self.0.as_ref() else { return 0 };
        // Nobody types more than 16.
        match stream.read(&mut [0; 16]) {
            Ok(0) => {
                self.0 = None;
                0
            }
            Ok(new) => new,
            // There is none.
            Err(_) => 0,
        }
    }
}

impl Keeper {
    /// Keeps `custody` for `worker`. Each byte that `requests` yields is a request of the user to end: the first
    /// lets the worker end by itself, the second kills it.
    ///
    /// # Errors
    /// If `requests` cannot be read without waiting.
    pub fn new(custody: Custody, worker: Worker, requests: UnixStream) -> io::Result<Self> {
        let requests = Requests::new(requests)?;
        let (following, confirmation) = (None, Confirmation::Enough);
        let (asked, refused) = (0, None);
        Ok(Self { custody, worker, requests, asked, following, confirmation, refused })
    }

    /// Ends the run unless a [`Confirmer`](super::Confirmer) confirms it within this time of the first change. A worker
    /// that does not end by itself is killed. The exit code is then 1.
    #[must_use]
    pub fn confirm_within(mut self, time: Duration) -> Self {
        self.confirmation = Confirmation::Within(time);
        self
    }

    /// Waits for the end of the worker and gives back what was changed. `note` gets a line for each thing that
    /// the user should know. Returns the worker's exit code; `None` if a signal ended it.
    ///
    /// # Errors
    /// Why the interfaces could not be prepared.
    pub fn keep(mut self, mut note: impl FnMut(&str)) -> Result<Option<i32>, DeviceError> {
        while self.wait(&mut note).is_some() {}
        self.give_back(&mut note);
        let Self { worker, asked, refused, confirmation, .. } = self;
        let status = worker.wait();
        let status = status.map_err(|error| fault::system("cannot wait for the worker", error))?;
        if let Some(refused) = refused {
            return Err(refused);
        }
        if confirmation.is_missing() {
            note("no confirmation has come; everything is given back");
            return Ok(Some(UNCONFIRMED));
        }
        if status.code().is_none() && asked < 2 {
            note(&format!("the worker was ended ({status}); the interfaces are put back"));
        }
        Ok(status.code())
    }

    /// Waits for a report or a signal and handles it. `None` if the worker has ended.
    fn wait(&mut self, note: &mut impl FnMut(&str)) -> Option<()> {
        let (channel, requests) =
            (self.worker.channel.as_fd(), self.requests.0.as_ref().map(AsFd::as_fd));
        let mut list = WaitList::new();
        list.add(Some(&channel), Interest::Readable);
        list.add(requests.as_ref(), Interest::Readable);
        let notices = self.following.as_ref().map(AsFd::as_fd);
        list.add(notices.as_ref(), Interest::Readable);
        let following = self.following.as_ref();
        let patience = following.map_or(BETWEEN_LOOKS, |one| one.patience(BETWEEN_LOOKS));
        let ready = list.wait(Some(patience)).ok()?;
        self.count_requests();
        self.look_for_confirmation();
        if let Some(following) = &mut self.following {
            if ready.is_none() {
                self.custody.follow_names();
                following.follow_groups(&mut self.custody);
            }
            following.turn(&mut self.custody, note);
        }
        if ready.has(0) {
            let (report, files) = Report::receive(&self.worker.channel).ok()?;
            if report == Report::Confirmed {
                self.confirm();
            } else {
                let order = self.answer(report, files, note);
                // If the worker is gone, the next receive says so.
                _ = order.send(&self.worker.channel);
            }
        }
        Some(())
    }

    fn count_requests(&mut self) {
        let new = self.requests.count();
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

    /// Ends the worker if no confirmation has come in time.
    fn look_for_confirmation(&mut self) {
        let Some(next) = self.confirmation.at(clock::now()) else { return };
        self.confirmation = next;
        match next {
            Confirmation::Killed => self.worker.kill(),
            _ => _ = Order::Stop.send(&self.worker.channel),
        }
    }

    /// One that comes too late changes nothing.
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
            Report::Opened(tap) => self.begin(tap, files, note),
            Report::NicIsGone => self.wait_for_nic(),
            Report::NicIsBack(nic) => self.begin_again(nic),
            Report::Confirmed | Report::Closed => {
                self.give_back(note);
                return Order::PutBack;
            }
        };
        match begun {
            Ok(closed_at) => Order::Begin(closed_at),
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
    ) -> Result<Instant, DeviceError> {
        if tap > 0 {
            self.custody.note_tap(tap, files)?;
        }
        // Before the first change, so that none of others is missed.
        let following = self.following.insert(Following::start()?);
        let (closed_at, notices) = self.custody.begin()?;
        following.begin(&mut self.custody);
        if let Confirmation::Within(time) = self.confirmation {
            self.confirmation = Confirmation::Before(clock::now() + time);
        }
        notices.iter().for_each(|notice| note(notice));
        Ok(closed_at)
    }

    fn begin_again(&mut self, nic: u32) -> Result<Instant, DeviceError> {
        self.custody.succeed(nic)?;
        let closed_at = self.custody.begin_again()?;
        self.following.iter_mut().for_each(|following| following.begin(&mut self.custody));
        Ok(closed_at)
    }

    /// The nic was deleted, and its name must be free for another.
    fn wait_for_nic(&mut self) -> Result<Instant, DeviceError> {
        self.custody.show_carrier(false);
        self.custody.release_names()?;
        Ok(clock::now())
    }

    fn give_back(&mut self, note: &mut impl FnMut(&str)) {
        if self.following.take().is_some() {
            self.custody.give_back().iter().for_each(|line| note(line));
        }
    }
}

/// The exit code of a run that was not confirmed.
const UNCONFIRMED: i32 = 1;

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn a_run_that_nobody_confirms_is_ended_and_then_killed() {
        let at = |seconds: u64| Instant::from_nanos(seconds * 1_000_000_000);
        let waits = Confirmation::Before(at(10));
        assert_eq!(waits.at(at(9)), None);
        let missed = waits.at(at(10)).unwrap();
        assert_eq!(missed, Confirmation::Missed { kill_at: at(10) + GRACE });
        assert_eq!(missed.at(at(10)), None);
        assert_eq!(missed.at(at(10) + GRACE), Some(Confirmation::Killed));
        assert!(missed.is_missing() && Confirmation::Killed.is_missing());
        for enough in [Confirmation::Enough, Confirmation::Within(GRACE), Confirmation::Killed] {
            assert_eq!(enough.at(at(1_000)), None);
        }
    }

    #[test]
    fn after_the_last_request_there_is_nothing_to_wait_for() {
        let (requests, mut ask) = UnixStream::pair().unwrap();
        let mut requests = Requests::new(requests).unwrap();
        assert_eq!(requests.count(), 0);
        ask.write_all(&[0; 2]).unwrap();
        assert_eq!(requests.count(), 2);
        drop(ask);
        assert_eq!((requests.count(), requests.0.is_none()), (0, true));
        assert_eq!(requests.count(), 0);
    }
}
