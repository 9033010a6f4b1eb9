//! Heirs: the successor of a worker, such as a new version of rxo, asks the keeper, which goes on with it.
//!
//! The successor connects to a socket of the keeper and opens what it can. Then it asks: it sends a handle on itself, and one end
//! of a socket. The keeper passes that end to the worker, which hands its devices over ([`succession`](crate::succession)) and
//! ends. The successor reports that its devices are open, and is the worker from then on. The keeper keeps all changes of
//! interfaces meanwhile.
//!
//! Contract: one successor at a time. If it ends before it has reported, the worker goes on.

use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use super::channel::{Order, Report};
use crate::guard::{Process, Worker};
use crate::listener::Listener;
use crate::pulse::Pulse;
use crate::succession::VERSION;
use crate::vhost_user::connect;

/// The keeper's side.
#[derive(Debug)]
pub(super) struct Heirs {
    listener: Listener,
    heir: Option<Heir>,
    /// Workers that have handed over, and may not have ended yet.
    retired: Vec<Worker>,
}

/// A process that has connected.
#[derive(Debug)]
enum Heir {
    /// It has not asked yet.
    Silent(UnixStream),
    /// It has asked, and has not reported that its devices are open.
    Asks(Worker),
}

/// The keeper's next task after a message of a successor.
#[derive(Debug)]
pub(super) enum KeeperTask {
    Nothing,
    /// The worker must hand over through this end of a socket.
    HandOver(OwnedFd),
    /// The heir is the worker from now on: it has reported that its devices are open.
    Succeeded(Box<Worker>),
    /// The heir has failed.
    Failed,
}

impl Heirs {
    pub(super) const fn new(listener: Listener) -> Self {
        Self { listener, heir: None, retired: Vec::new() }
    }

    /// Returns what to wait for.
    pub(super) fn streams(&self) -> [Option<BorrowedFd<'_>>; 2] {
        let heir = self.heir.as_ref().map(|heir| heir.channel().as_fd());
        [Some(self.listener.as_fd()), heir]
    }

    /// Accepts an heir that has connected. A second one is refused.
    pub(super) fn accept(&mut self) {
        while let Ok(Some(stream)) = self.listener.accept() {
            let is_prepared = stream.set_nonblocking(false).is_ok()
                && stream.set_read_timeout(Some(PATIENCE)).is_ok();
            if self.heir.is_none() && is_prepared {
                self.heir = Some(Heir::Silent(stream));
            }
        }
    }

    /// Handles a message of the heir. `pulse` is the counter that it increments from then on.
    pub(super) fn listen(&mut self, pulse: Option<Pulse>) -> KeeperTask {
        let Some(heir) = self.heir.take() else { return KeeperTask::Nothing };
        match (Report::receive(heir.channel()), heir) {
            (Ok((Report::Succeeds { version, process }, files)), Heir::Silent(channel)) => {
                self.ask(channel, (version, process), (files, pulse))
            }
            (Ok((Report::Opened(_), _)), Heir::Asks(worker)) => {
                KeeperTask::Succeeded(Box::new(worker))
            }
            _ => KeeperTask::Failed,
        }
    }

    fn ask(
        &mut self,
        channel: UnixStream,
        (version, process): (u32, u32),
        (files, pulse): (Vec<OwnedFd>, Option<Pulse>),
    ) -> KeeperTask {
        let (Ok([handle, end]), VERSION) = (<[OwnedFd; 2]>::try_from(files), version) else {
            _ = Order::Quit.send(&channel);
            return KeeperTask::Failed;
        };
        let pulse: Vec<_> = pulse.and_then(Pulse::file).into_iter().collect();
        if Order::Welcome.send_with(&channel, &pulse).is_err() {
            return KeeperTask::Failed;
        }
        self.heir = Some(Heir::Asks(Worker::adopt(channel, Process::from(handle), process)));
        KeeperTask::HandOver(end)
    }

    /// Returns `true` if a successor has asked the worker to hand over.
    pub(super) const fn is_asked(&self) -> bool {
        matches!(self.heir, Some(Heir::Asks(_)))
    }

    /// Keeps a worker that has handed over until it has ended.
    pub(super) fn retire(&mut self, worker: Worker) {
        self.retired.push(worker);
    }

    /// Kills workers that have handed over and hang.
    pub(super) fn end(mut self) {
        self.forget_ended();
        self.retired.iter().for_each(Worker::kill);
    }

    /// Forgets workers that have ended.
    pub(super) fn forget_ended(&mut self) {
        self.retired.retain(|worker| !worker.has_ended());
    }
}

impl Heir {
    const fn channel(&self) -> &UnixStream {
        match self {
            Self::Silent(channel) => channel,
            Self::Asks(worker) => &worker.channel,
        }
    }
}

/// The time for which an heir may interrupt a message, and for which it may keep the devices before it reports.
const PATIENCE: Duration = Duration::from_secs(3);

/// A successor that has found the keeper of a run, and may ask it to hand over.
#[derive(Debug)]
pub struct Successor {
    channel: UnixStream,
}

/// A successor whose predecessor hands over.
#[derive(Debug)]
pub struct Succeeding {
    /// The channel to the keeper, for [`Control::new`](super::Control::new).
    pub channel: UnixStream,
    /// The end of a socket from which the [`Estate`](crate::succession::Estate) comes.
    pub estate: UnixStream,
    /// The pulse of the run; `None` if the worker is not watched.
    pub pulse: Option<Pulse>,
}

impl Successor {
    /// Finds the keeper that listens at `path`; `None` if nobody does.
    ///
    /// # Errors
    /// As the system refuses.
    pub fn find(path: &Path) -> io::Result<Option<Self>> {
        match connect(path) {
            Ok(channel) => {
                channel.set_nonblocking(false)?;
                channel.set_read_timeout(Some(ANSWER))?;
                Ok(Some(Self { channel }))
            }
            Err(error) => match error.kind() {
                ErrorKind::NotFound | ErrorKind::ConnectionRefused => Ok(None),
                _ => Err(error),
            },
        }
    }

    /// Asks the keeper to let this process succeed its worker. The worker stops soon after.
    ///
    /// # Errors
    /// If the keeper refuses: another process is about to succeed, or it is of another version.
    pub fn ask(self) -> io::Result<Succeeding> {
        let Self { channel } = self;
        let (estate, end) = UnixStream::pair()?;
        let handle = Process::own().ok_or(ErrorKind::Unsupported)?;
        let report = Report::Succeeds { version: VERSION, process: std::process::id() };
        report.send(&channel, &[handle.as_fd(), end.as_fd()])?;
        let refused = || {
            io::Error::other(
                "the running rxo refuses: it is of another version, or is being replaced",
            )
        };
        let (order, files) = Order::receive(&channel).map_err(|_| refused())?;
        if order != Order::Welcome {
            return Err(refused());
        }
        channel.set_read_timeout(None)?;
        let pulse = files.into_iter().next().map(Pulse::inherit).transpose()?;
        Ok(Succeeding { channel, estate, pulse })
    }
}

/// The time for which a keeper may be busy.
const ANSWER: Duration = Duration::from_secs(5);
