//! Channel: the messages between the keeper and the worker of a run. A message is one byte for its kind and a
//! 64-bit number.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use rxo_device::DeviceError;
use rxo_frame::Instant;

use super::Custody;
use super::held::Held;
use super::reload::{Reload, ReloadAsker};
use crate::lock::InterfaceLock;
use crate::{clock, descriptors, fault};

/// A message from the keeper to the worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// The interfaces are prepared: the worker may begin.
    Begin(Begun),
    /// The interfaces could not be prepared. The keeper prints the reason.
    Quit,
    /// The user asked the run to end.
    Stop,
    /// The worker must read the file of the run's flags again. The open file comes with the order. If it
    /// could not be opened, `refused` is the system's error number, otherwise 0. `is_asked` is `true` if the
    /// worker requested it.
    Reload { is_asked: bool, refused: u32 },
    /// The keeper has restored everything that the run had changed.
    PutBack,
    /// To the worker: a successor waits at the other end of the socket that comes with the order.
    HandOver,
    /// To a successor: the worker is told to hand over. The memory of the pulse comes with the order, if there is one.
    Welcome,
}

/// The facts that the keeper sends to the worker when a run's interfaces are prepared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Begun {
    /// Every frame that arrived before this instant went to the kernel.
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
    /// The devices are open. The number is the interface index of the TAP, or 0 if there is no TAP.
    Opened(u32),
    /// The nic of the run was deleted.
    NicIsGone,
    /// The nic was deleted, an interface with the same name has appeared, and it is open now. The number is
    /// its index.
    NicIsBack(u32),
    /// The user has confirmed the run. The keeper does not reply.
    Confirmed,
    /// The user has requested that the file of the run's flags is read again. The keeper answers with
    /// [`Order::Reload`].
    Reload,
    /// The devices are closed, and the run is over.
    Closed,
    /// From a successor of the worker: it asks the keeper to let the worker hand over. `version` is that of the
    /// [estate](crate::succession::Estate). A handle on the process comes with the report, and the end of a socket for the
    /// worker.
    Succeeds { version: u32, process: u32 },
}

const BYTES: usize = 9;

impl Order {
    pub(super) fn send(self, to: &UnixStream) -> io::Result<()> {
        self.send_with(to, &[])
    }

    /// Sends the order together with the open descriptors `files`.
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
            _ => return Err(io::ErrorKind::InvalidData.into()),
        };
        Ok((report, files))
    }
}

/// The worker's side of a run in two processes. Reports to the keeper, and restores the interfaces if the
/// keeper is gone, unless another process restores them. During the run a thread [listens](Self::listen) to
/// the keeper, so that the worker is told to stop even while it is busy.
#[derive(Debug)]
pub struct Control {
    channel: UnixStream,
    stop: Arc<AtomicBool>,
    /// Orders that the listening thread forwards; `None` before [`listen`](Self::listen) starts it.
    orders: Option<Receiver<Order>>,
    /// The receiver of reload requests; `None` once [`reloads`](Self::reloads) has returned it.
    reloads: Option<Receiver<Reload>>,
    custody: Custody,
    restores: bool,
    asides: Asides,
}

/// A successor that waits for the devices.
#[derive(Debug)]
pub struct Heir {
    /// The socket for the [`Estate`](crate::succession::Estate).
    pub socket: UnixStream,
    /// The instant at which the worker was told to stop.
    pub asked_at: Instant,
}

/// Orders beside the answers to reports.
#[derive(Clone, Debug)]
struct Asides {
    reload: Sender<Reload>,
    stop: Arc<AtomicBool>,
    /// `true` once the keeper has ordered the end of the run.
    is_over: Arc<AtomicBool>,
    /// The successor that waits, if there is one.
    heir: Arc<Mutex<Option<Heir>>>,
}

impl Control {
    /// Creates the worker's side without its listening thread. `stop` is set when the user asks the run to
    /// end, and when the keeper is gone.
    #[must_use]
    pub fn new(channel: UnixStream, custody: Custody, stop: Arc<AtomicBool>) -> Self {
        let (reload, reloads) = self::channel();
        let (is_over, heir) = (Arc::default(), Arc::default());
        let asides = Asides { reload, stop: Arc::clone(&stop), is_over, heir };
        Self {
            channel,
            stop,
            orders: None,
            reloads: Some(reloads),
            custody,
            restores: true,
            asides,
        }
    }

    /// Returns a successor that waits for the devices; `None` if the run goes on or ends.
    #[must_use]
    pub fn heir(&self) -> Option<Heir> {
        let mut heir = self.asides.heir.lock().unwrap_or_else(PoisonError::into_inner);
        heir.take().filter(|_| !self.asides.is_over.load(Ordering::Relaxed))
    }

    /// Withdraws the order to stop that came with a successor, because it has failed. The end of the run stays.
    pub fn go_on(&self) {
        let is_over = self.asides.is_over.load(Ordering::Relaxed);
        self.stop.store(is_over, Ordering::Relaxed);
    }

    /// Starts the listening thread. Give up privileges before this call, because a running thread keeps its
    /// own.
    ///
    /// # Errors
    /// If the thread cannot be started.
    pub fn listen(&mut self) -> Result<(), DeviceError> {
        let (sender, orders) = self::channel();
        let asides = self.asides.clone();
        let started = self.channel.try_clone().and_then(|from| {
            let thread = thread::Builder::new().name("rxo-control".to_owned());
            thread.spawn(move || pass_on(&from, &sender, &asides))
        });
        started.map_err(|error| fault::system("cannot start a thread that takes orders", error))?;
        self.orders = Some(orders);
        Ok(())
    }

    /// Leaves the restoring of interfaces to the [`Restorer`](super::Restorer) if the keeper is gone, because
    /// this process may have given up the privileges for it.
    pub const fn leave_to_restorer(&mut self) {
        self.restores = false;
    }

    /// Reports that the devices are open, and waits until the keeper has prepared the interfaces. `tap` is
    /// the index of the host's TAP, if there is one, and the descriptor that keeps it alive. Returns `None`
    /// if the keeper is gone or refuses the run; a keeper that refuses it prints the reason.
    ///
    /// # Errors
    /// If the TAP was deleted, or the system has no descriptors left.
    pub fn opened(
        &mut self,
        tap: Option<(u32, BorrowedFd<'_>)>,
    ) -> Result<Option<Begun>, DeviceError> {
        let Some((index, file)) = tap else { return Ok(self.begin(Report::Opened(0), &[])) };
        if !self.custody.takes_over {
            self.custody.note_tap(index, Vec::new())?;
            return Ok(self.begin(Report::Opened(index), &[]));
        }
        // The TAP gets the name of the nic, and a second rxo on this name must be refused.
        let lock = InterfaceLock::take(&self.custody.host, index)?;
        // The keeper gets both descriptors too: if the worker dies, the TAP must live until its addresses
        // have moved back.
        let files = [file, lock.as_fd()];
        let kept = files.into_iter().map(|file| file.try_clone_to_owned());
        let kept = kept.collect::<io::Result<Vec<_>>>();
        let kept = kept.map_err(|error| fault::system("cannot keep the host's TAP", error))?;
        self.custody.note_tap(index, kept)?;
        Ok(self.begin(Report::Opened(index), &files))
    }

    /// Returns the receiver of requests to read the file of the run's flags again, and a handle that makes
    /// such a request. The receiver also yields earlier requests; after the first call it yields nothing.
    ///
    /// # Errors
    /// If the system has no descriptors left.
    pub fn reloads(&mut self) -> Result<(Receiver<Reload>, ReloadAsker), DeviceError> {
        let asker = self.channel.try_clone();
        let asker = asker.map_err(|error| fault::system("cannot ask for a file again", error))?;
        Ok((self.reloads.take().unwrap_or_else(|| self::channel().1), ReloadAsker(asker)))
    }

    /// Returns a handle by which another thread confirms the run.
    ///
    /// # Errors
    /// If the system has no descriptors left.
    pub fn confirmer(&self) -> Result<Confirmer, DeviceError> {
        let channel = self.channel.try_clone();
        channel.map(Confirmer).map_err(|error| fault::system("cannot take a confirmation", error))
    }

    /// Returns `true` if the nic was deleted.
    #[must_use]
    pub fn has_lost_nic(&self) -> bool {
        self.custody.has_lost_nic()
    }

    /// Reports that the interface with this index has replaced the nic and is open. Returns the instant
    /// before which every frame went to the kernel; `None` in the same cases as [`opened`](Self::opened).
    ///
    /// # Errors
    /// If that interface was deleted as well.
    pub fn nic_is_back(&mut self, index: u32) -> Result<Option<Instant>, DeviceError> {
        self.custody.succeed(index)?;
        Ok(self.begin(Report::NicIsBack(index), &[]).map(|begun| begun.closed_at))
    }

    /// Reports that the nic was deleted, and waits until its name is free for a new interface. Returns
    /// `false` if the keeper is gone or cannot free the name; a keeper that cannot free it prints the reason.
    pub fn nic_is_gone(&self) -> bool {
        matches!(self.report(Report::NicIsGone, &[]), Some(Order::Begin(_)))
    }

    /// Reports that the devices are closed, and waits until the keeper has restored everything. If the keeper
    /// is gone, restores everything itself, unless that is [left](Self::leave_to_restorer) to another
    /// process. Returns a line for each change that this process could not undo.
    pub fn closed(&mut self) -> Vec<String> {
        match self.report(Report::Closed, &[]) {
            None if self.restores => self.custody.give_back(),
            _ => Vec::new(),
        }
    }

    fn begin(&mut self, report: Report, files: &[BorrowedFd<'_>]) -> Option<Begun> {
        match self.report(report, files)? {
            Order::Begin(begun) => {
                self.custody.held.iter_mut().for_each(Held::has_lent);
                Some(begun)
            }
            _ => None,
        }
    }

    /// Sends `report` to the keeper and waits for its next order. `None` if the keeper is gone.
    fn report(&self, report: Report, files: &[BorrowedFd<'_>]) -> Option<Order> {
        if report.send(&self.channel, files).is_err() {
            self.stop.store(true, Ordering::Relaxed);
            return None;
        }
        match &self.orders {
            Some(orders) => orders.recv().ok(),
            None => next_answer(&self.channel, &self.asides),
        }
    }
}

/// Confirms a run that otherwise ends after a timeout; see
/// [`Keeper::confirm_within`](super::Keeper::confirm_within).
#[derive(Debug)]
pub struct Confirmer(UnixStream);

impl Confirmer {
    /// Confirms the run. Further calls change nothing.
    ///
    /// # Errors
    /// If the keeper is gone.
    pub fn confirm(&self) -> io::Result<()> {
        Report::Confirmed.send(&self.0, &[])
    }
}

/// Returns the next order that answers a report; `None`, after setting `stop`, if the keeper is gone.
/// Meanwhile follows all other orders.
fn next_answer(from: &UnixStream, asides: &Asides) -> Option<Order> {
    loop {
        match Order::receive(from) {
            Ok((Order::Stop, _)) => {
                asides.is_over.store(true, Ordering::Relaxed);
                asides.stop.store(true, Ordering::Relaxed);
            }
            Ok((order @ Order::Reload { .. }, files)) => {
                // The receiver may be dropped already; then the request has no effect.
                _ = order.reload(files).map(|it| asides.reload.send(it));
            }
            Ok((Order::HandOver, files)) => {
                let asked_at = clock::now();
                let socket = files.into_iter().next().map(UnixStream::from);
                let heir = socket.map(|socket| Heir { socket, asked_at });
                *asides.heir.lock().unwrap_or_else(PoisonError::into_inner) = heir;
                asides.stop.store(true, Ordering::Relaxed);
            }
            Ok((order, _)) => return Some(order),
            Err(_) => {
                asides.is_over.store(true, Ordering::Relaxed);
                asides.stop.store(true, Ordering::Relaxed);
                return None;
            }
        }
    }
}

fn pass_on(from: &UnixStream, to: &Sender<Order>, asides: &Asides) {
    while let Some(order) = next_answer(from, asides) {
        if to.send(order).is_err() {
            return;
        }
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
    use super::super::Claim;
    use super::*;

    #[test]
    fn what_is_told_is_understood() {
        let (keeper, worker) = UnixStream::pair().unwrap();
        let begun = [true, false]
            .map(|is_recorded| Begun { closed_at: Instant::from_nanos(77), is_recorded });
        let reload = Order::Reload { is_asked: true, refused: 2 };
        let of_heirs = [Order::HandOver, Order::Welcome];
        let others = [Order::Quit, Order::PutBack, Order::Stop, reload];
        let others = others.into_iter().chain(of_heirs);
        for order in begun.map(Order::Begin).into_iter().chain(others) {
            order.send(&keeper).unwrap();
            assert_eq!(Order::receive(&worker).unwrap().0, order);
        }
        let nic = [Report::NicIsGone, Report::NicIsBack(9)];
        let succeeds = Report::Succeeds { version: 3, process: u32::MAX };
        let others =
            [Report::Opened(7), Report::Confirmed, Report::Reload, Report::Closed, succeeds];
        for report in nic.into_iter().chain(others) {
            report.send(&worker, &[]).unwrap();
            let (received, files) = Report::receive(&keeper).unwrap();
            assert_eq!((received, files.len()), (report, 0));
        }
        Report::Opened(7).send(&worker, &[worker.as_fd(); 2]).unwrap();
        assert_eq!(Report::receive(&keeper).unwrap().1.len(), 2);
    }

    #[test]
    fn a_keeper_that_is_gone_is_an_order_to_stop() {
        let (keeper, worker) = UnixStream::pair().unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let (nic, host) = ("tap:a".parse().unwrap(), "tap:b".parse().unwrap());
        let (nic, host) = (("--nic", &nic), ("--host", &host));
        let claim = Claim { nic, host, takes_over: false, isolates: false, makes_host: true };
        let custody = Custody::examine(claim).unwrap();
        let mut control = Control::new(worker, custody, Arc::clone(&stop));
        drop(keeper);
        assert_eq!(control.opened(None).unwrap(), None);
        assert_eq!(control.closed(), Vec::<String>::new());
        assert!(stop.swap(false, Ordering::Relaxed));
        control.listen().unwrap();
        while !stop.load(Ordering::Relaxed) {
            thread::yield_now();
        }
    }
}
