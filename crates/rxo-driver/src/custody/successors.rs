//! Successors: the keeper's replacement of its worker by a successor, such as a new version of rxo.
//!
//! The successor connects to a socket of the keeper and sends its request: a handle on its process, and one end
//! of a socket. The keeper passes that end to the worker. The worker offers its devices, hands them over once the
//! successor is prepared ([`succession`](crate::succession)), and ends. Once the successor reports that it uses
//! the devices, the keeper treats it as the worker. The changes of interfaces stay in place during the handover.
//!
//! Contract: one successor at a time. If the successor ends before that report, the worker continues.

use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use super::channel::{Order, Report};
use crate::guard::{Process, Worker};
use crate::heartbeat::Heartbeat;
use crate::listener::Listener;
use crate::succession::VERSION;
use crate::vhost_user::connect;

/// The keeper's side of a handover: the socket for successors, the current successor, and former workers.
#[derive(Debug)]
pub(super) struct Successors {
    listener: Listener,
    successor: Option<SuccessorState>,
    /// The former workers that have handed over their devices, and may not have ended yet.
    retired: Vec<Worker>,
}

/// The successor, a process that has connected to replace the worker, in one of two phases.
#[derive(Debug)]
enum SuccessorState {
    /// The process has not sent its request yet.
    Silent(UnixStream),
    /// The process has requested the handover, but has not reported yet that it uses the devices.
    Asks(Worker),
}

/// The keeper's next task after a message of a successor.
#[derive(Debug)]
pub(super) enum KeeperTask {
    Nothing,
    /// The worker must hand over its devices through this end of a socket.
    HandOver(OwnedFd),
    /// The successor has reported that it uses the devices, so it replaces the worker.
    Succeeded(Box<Worker>),
    /// The successor has failed, so the worker continues.
    Failed,
}

impl Successors {
    pub(super) const fn new(listener: Listener) -> Self {
        Self { listener, successor: None, retired: Vec::new() }
    }

    /// Returns the descriptors to wait for: the socket for connections, and the channel to the successor, if
    /// there is one.
    pub(super) fn streams(&self) -> [Option<BorrowedFd<'_>>; 2] {
        let successor = self.successor.as_ref().map(|successor| successor.channel().as_fd());
        [Some(self.listener.as_fd()), successor]
    }

    /// Accepts the connection of a successor. Drops further connections while there is a successor.
    pub(super) fn accept(&mut self) {
        while let Ok(Some(stream)) = self.listener.accept() {
            let is_prepared = stream.set_nonblocking(false).is_ok()
                && stream.set_read_timeout(Some(MESSAGE_TIMEOUT)).is_ok();
            if self.successor.is_none() && is_prepared {
                self.successor = Some(SuccessorState::Silent(stream));
            }
        }
    }

    /// Handles a message of the successor. `heartbeat` is the counter that the successor increments once it is
    /// the worker.
    pub(super) fn listen(&mut self, heartbeat: Option<Heartbeat>) -> KeeperTask {
        let Some(successor) = self.successor.take() else { return KeeperTask::Nothing };
        match (Report::receive(successor.channel()), successor) {
            (
                Ok((Report::Succeeds { version, process }, files)),
                SuccessorState::Silent(channel),
            ) => self.ask(channel, (version, process), (files, heartbeat)),
            (Ok((Report::Succeeded, _)), SuccessorState::Asks(worker)) => {
                KeeperTask::Succeeded(Box::new(worker))
            }
            _ => KeeperTask::Failed,
        }
    }

    fn ask(
        &mut self,
        channel: UnixStream,
        (version, process): (u32, u32),
        (files, heartbeat): (Vec<OwnedFd>, Option<Heartbeat>),
    ) -> KeeperTask {
        let (Ok([handle, end]), VERSION) = (<[OwnedFd; 2]>::try_from(files), version) else {
            _ = Order::Quit.send(&channel);
            return KeeperTask::Failed;
        };
        let heartbeat: Vec<_> = heartbeat.and_then(Heartbeat::file).into_iter().collect();
        if Order::Welcome.send_with(&channel, &heartbeat).is_err() {
            return KeeperTask::Failed;
        }
        self.successor =
            Some(SuccessorState::Asks(Worker::adopt(channel, Process::from(handle), process)));
        KeeperTask::HandOver(end)
    }

    /// Returns `true` if a successor has requested the handover.
    pub(super) const fn is_asked(&self) -> bool {
        matches!(self.successor, Some(SuccessorState::Asks(_)))
    }

    /// Keeps a former worker, which has handed over its devices, in a list until that process has ended.
    pub(super) fn retire(&mut self, worker: Worker) {
        self.retired.push(worker);
    }

    /// Kills the former workers that have not ended.
    pub(super) fn end(mut self) {
        self.forget_ended();
        self.retired.iter().for_each(Worker::kill);
    }

    /// Removes former workers that have ended from the list.
    pub(super) fn forget_ended(&mut self) {
        self.retired.retain(|worker| !worker.has_ended());
    }
}

impl SuccessorState {
    const fn channel(&self) -> &UnixStream {
        match self {
            Self::Silent(channel) => channel,
            Self::Asks(worker) => &worker.channel,
        }
    }
}

/// The maximum time that a successor may take to send a complete message.
const MESSAGE_TIMEOUT: Duration = Duration::from_secs(3);

/// A successor that has connected to the keeper of a run, and may ask for the handover.
#[derive(Debug)]
pub struct Successor {
    channel: UnixStream,
}

/// A successor whose request was accepted, and which will receive the devices.
#[derive(Debug)]
pub struct Succeeding {
    /// The channel to the keeper, to be passed to [`Control::new`](super::Control::new).
    pub channel: UnixStream,
    /// The end of a socket from which the [`Handover`](crate::succession::Handover) comes.
    pub handover: UnixStream,
    /// The heartbeat of the run; `None` if the worker is not watched.
    pub heartbeat: Option<Heartbeat>,
}

impl Successor {
    /// Finds the keeper that listens at `path`. Returns `None` if no process listens there.
    ///
    /// # Errors
    /// If the system refuses the connection for another reason.
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

    /// Asks the keeper to replace its worker by this process. The worker offers its devices soon afterwards.
    ///
    /// # Errors
    /// If the keeper refuses: another process is about to succeed the worker, or the keeper has another
    /// version.
    pub fn ask(self) -> io::Result<Succeeding> {
        let Self { channel } = self;
        let (handover, end) = UnixStream::pair()?;
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
        let heartbeat = files.into_iter().next().map(Heartbeat::inherit).transpose()?;
        Ok(Succeeding { channel, handover, heartbeat })
    }
}

/// The maximum time to wait for the keeper's answer.
const ANSWER: Duration = Duration::from_secs(5);
