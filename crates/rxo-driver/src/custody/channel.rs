//! Channel: the messages between the keeper and the worker of a run. A message is one byte for its kind and a
//! 64-bit number.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

use rxo_frame::Instant;

use super::reload::Reload;
use crate::descriptors;

/// A message from the keeper to the worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// The interfaces are prepared: the worker may begin.
    Begin(Begun),
    /// The interfaces could not be prepared. The keeper prints the reason.
    Quit,
    /// The user asked the run to end.
    Stop,
    /// The worker must read the file of the run's flags again. The open file comes with the order. If it could
    /// not be opened, `refused` is the system's error number, otherwise 0. `is_asked` is `true` if the worker
    /// requested the reload.
    Reload { is_asked: bool, refused: u32 },
    /// The keeper has restored everything that the run had changed.
    PutBack,
    /// The worker must offer its devices to a successor, a process that replaces it. The order carries a
    /// socket to the successor.
    HandOver,
    /// Sent to a successor: its request was accepted, and the worker was ordered to hand over its devices. The
    /// order carries the memory of the run's heartbeat, its counter of signs of life, if there is one.
    Welcome,
}

/// The facts that the keeper sends to the worker when a run's interfaces are prepared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Begun {
    /// The kernel's own stack received every frame that arrived before this instant.
    pub closed_at: Instant,
    /// `true` if all changes are in the record, so that a process that did not make them can restore them.
    pub is_recorded: bool,
}

impl Begun {
    pub(super) const fn recorded(closed_at: Instant) -> Self {
        Self { closed_at, is_recorded: true }
    }
}

/// A message from the worker to the keeper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Report {
    /// The devices are open. The value is the interface index of the TAP; 0 if there is no TAP.
    Opened(u32),
    /// The nic of the run was deleted.
    NicIsGone,
    /// The nic was deleted, an interface with the same name has appeared, and it is open now. The value is the
    /// index of the new interface.
    NicIsBack(u32),
    /// The user has confirmed the run. The keeper does not reply.
    Confirmed,
    /// The user has requested that the file of the run's flags is read again. The keeper answers with
    /// [`Order::Reload`].
    Reload,
    /// The devices are closed, and the run is over.
    Closed,
    /// Sent by a successor of the worker: the successor asks the keeper to order the worker's handover. `version`
    /// is the version of the [handover](crate::succession::Handover), and `process` the successor's process
    /// number. Two descriptors come with the report: a handle on the successor, and one end of a socket for the
    /// worker.
    Succeeds { version: u32, process: u32 },
    /// Sent by a successor: the successor uses the devices, and is the worker from now on. The keeper does
    /// not reply.
    Succeeded,
}

const BYTES: usize = 9;

impl Order {
    pub(super) fn send(self, to: &UnixStream) -> io::Result<()> {
        self.send_with(to, &[])
    }

    /// Sends this order together with the open descriptors `files`.
    pub(super) fn send_with(self, to: &UnixStream, files: &[BorrowedFd<'_>]) -> io::Result<()> {
        let (kind, number) = match self {
            Self::Begin(Begun { closed_at, is_recorded }) => {
                (if is_recorded { b'b' } else { b'u' }, closed_at.as_nanos())
            }
            Self::Quit => (b'q', 0),
            Self::Stop => (b's', 0),
            Self::Reload { is_asked: true, refused } => (b'a', refused.into()),
            Self::Reload { is_asked: false, refused } => (b'r', refused.into()),
            Self::PutBack => (b'p', 0),
            Self::HandOver => (b'h', 0),
            Self::Welcome => (b'w', 0),
        };
        descriptors::send(to.as_fd(), &message(kind, number), files)
    }

    /// Receives the next order, and the descriptors that came with it. Blocks.
    ///
    /// # Errors
    /// If the keeper has ended, or the message is invalid.
    pub(super) fn receive(from: &UnixStream) -> io::Result<(Self, Vec<OwnedFd>)> {
        let (kind, number, files) = receive(from)?;
        let order = match kind {
            b'b' | b'u' => {
                let closed_at = Instant::from_nanos(number);
                Self::Begin(Begun { closed_at, is_recorded: kind == b'b' })
            }
            b'q' => Self::Quit,
            b's' => Self::Stop,
            b'a' | b'r' => {
                let refused = u32::try_from(number).map_err(io::Error::other)?;
                Self::Reload { is_asked: kind == b'a', refused }
            }
            b'p' => Self::PutBack,
            b'h' => Self::HandOver,
            b'w' => Self::Welcome,
            _ => return Err(io::ErrorKind::InvalidData.into()),
        };
        Ok((order, files))
    }

    /// Converts this order, with the open file that came with it, to a reload request. `None` if the order is
    /// not `Reload`.
    pub(super) fn reload(self, files: Vec<OwnedFd>) -> Option<Reload> {
        let Self::Reload { is_asked, refused } = self else { return None };
        let error = || io::Error::from_raw_os_error(refused.cast_signed());
        let file = files.into_iter().next().map(File::from).ok_or_else(error);
        Some(Reload { file, is_asked })
    }
}

impl Report {
    pub(super) fn send(self, to: &UnixStream, files: &[BorrowedFd<'_>]) -> io::Result<()> {
        let (kind, number) = match self {
            Self::Succeeds { version, process } => {
                let number = u64::from(version) << 32 | u64::from(process);
                return descriptors::send(to.as_fd(), &message(b'v', number), files);
            }
            Self::Opened(tap) => (b'o', tap),
            Self::NicIsGone => (b'g', 0),
            Self::NicIsBack(nic) => (b'n', nic),
            Self::Confirmed => (b'y', 0),
            Self::Reload => (b'r', 0),
            Self::Closed => (b'c', 0),
            Self::Succeeded => (b's', 0),
        };
        descriptors::send(to.as_fd(), &message(kind, number.into()), files)
    }

    /// Receives the next report, and the descriptors that came with it. Blocks.
    ///
    /// # Errors
    /// If the worker has ended, or the message is invalid.
    pub(super) fn receive(from: &UnixStream) -> io::Result<(Self, Vec<OwnedFd>)> {
        let (kind, number, files) = receive(from)?;
        if kind == b'v' {
            let (version, process) = ((number >> 32) as u32, number as u32);
            return Ok((Self::Succeeds { version, process }, files));
        }
        let index = u32::try_from(number).map_err(io::Error::other)?;
        let report = match kind {
            b'o' => Self::Opened(index),
            b'g' => Self::NicIsGone,
            b'n' => Self::NicIsBack(index),
            b'y' => Self::Confirmed,
            b'r' => Self::Reload,
            b'c' => Self::Closed,
            b's' => Self::Succeeded,
            _ => return Err(io::ErrorKind::InvalidData.into()),
        };
        Ok((report, files))
    }
}

fn message(kind: u8, number: u64) -> [u8; BYTES] {
    let mut message = [kind; BYTES];
    message[1..].copy_from_slice(&number.to_ne_bytes());
    message
}

/// Receives a whole message. Returns its kind, its number, and the descriptors that came with it.
fn receive(from: &UnixStream) -> io::Result<(u8, u64, Vec<OwnedFd>)> {
    let mut bytes = [0; BYTES];
    let received = loop {
        match descriptors::receive(from.as_fd(), &mut bytes, libc::MSG_WAITALL) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => break other?,
        }
    };
    if received.count < BYTES {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let [kind, number @ ..] = bytes;
    Ok((kind, u64::from_ne_bytes(number), received.files))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_is_understood() {
        let (keeper, worker) = UnixStream::pair().unwrap();
        let begun = [true, false]
            .map(|is_recorded| Begun { closed_at: Instant::from_nanos(77), is_recorded });
        let reload = Order::Reload { is_asked: true, refused: 2 };
        let of_successors = [Order::HandOver, Order::Welcome];
        let others = [Order::Quit, Order::PutBack, Order::Stop, reload];
        let others = others.into_iter().chain(of_successors);
        for order in begun.map(Order::Begin).into_iter().chain(others) {
            order.send(&keeper).unwrap();
            assert_eq!(Order::receive(&worker).unwrap().0, order);
        }
        let nic = [Report::NicIsGone, Report::NicIsBack(9)];
        let succeeds = Report::Succeeds { version: 3, process: u32::MAX };
        let others =
            [Report::Opened(7), Report::Confirmed, Report::Reload, Report::Closed, succeeds];
        let others = others.into_iter().chain([Report::Succeeded]);
        for report in nic.into_iter().chain(others) {
            report.send(&worker, &[]).unwrap();
            let (received, files) = Report::receive(&keeper).unwrap();
            assert_eq!((received, files.len()), (report, 0));
        }
        Report::Opened(7).send(&worker, &[worker.as_fd(); 2]).unwrap();
        assert_eq!(Report::receive(&keeper).unwrap().1.len(), 2);
    }
}
