//! Messages between keeper and worker: a byte for the kind, and a number.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use rxo_device::DeviceError;
use rxo_frame::Instant;

use super::Custody;
use super::held::Held;
use super::reload::{Reload, ReloadAsker};
use crate::lock::InterfaceLock;
use crate::{descriptors, fault};

/// A message from the keeper to the worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// The interfaces are prepared.
    Begin(Begun),
    /// The interfaces could not be prepared. The keeper prints the reason.
    Quit,
    /// The user asked for an end.
    Stop,
    /// The worker is to read the file of the run's flags again, which comes with the order. `refused` is the system's error
    /// if it could not be opened, otherwise 0.
    Reload { is_asked: bool, refused: u32 },
    /// Everything that was changed is restored.
    PutBack,
}

/// A run for which the interfaces are prepared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Begun {
    /// The kernel got every frame that arrived before this instant.
    pub closed_at: Instant,
    /// Whether everything that is owed is recorded, so that a process can restore it which has not made the changes.
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
    /// The devices are open. The TAP has this index; 0 if there is no TAP.
    Opened(u32),
    /// The nic was deleted.
    NicIsGone,
    /// An interface of its name is open now. This is its index.
    NicIsBack(u32),
    /// The user has confirmed the run. The keeper does not answer.
    Confirmed,
    /// The user asks to read the file of the run's flags again. The keeper answers with [`Order::Reload`].
    Reload,
    /// The devices are closed. The run is over.
    Closed,
}

const BYTES: usize = 9;

impl Order {
    pub(super) fn send(self, to: &UnixStream) -> io::Result<()> {
        self.send_with(to, &[])
    }

    /// Sends the order with `files`.
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
        };
        descriptors::send(to.as_fd(), &message(kind, number), files)
    }

    /// Receives the next order, and the files that came with it.
    ///
    /// # Errors
    /// If the keeper has ended.
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
            _ => return Err(io::ErrorKind::InvalidData.into()),
        };
        Ok((order, files))
    }

    /// The request to reload with the file that came with it; `None` if this is another order.
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
            Self::Opened(tap) => (b'o', tap),
            Self::NicIsGone => (b'g', 0),
            Self::NicIsBack(nic) => (b'n', nic),
            Self::Confirmed => (b'y', 0),
            Self::Reload => (b'r', 0),
            Self::Closed => (b'c', 0),
        };
        descriptors::send(to.as_fd(), &message(kind, number.into()), files)
    }

    /// Receives the next report, and the descriptors that came with it.
    ///
    /// # Errors
    /// If the worker has ended.
    pub(super) fn receive(from: &UnixStream) -> io::Result<(Self, Vec<OwnedFd>)> {
        let (kind, number, files) = receive(from)?;
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

/// The worker's side of a run in two processes: reports to the keeper, and restores the interfaces if the
/// keeper is gone, unless another process does. While it carries, a thread [listens](Self::listen) to the keeper, so
/// that a request to end is noticed whatever the worker does.
#[derive(Debug)]
pub struct Control {
    channel: UnixStream,
    stop: Arc<AtomicBool>,
    /// What the thread passes on; `None` while there is no thread.
    orders: Option<Receiver<Order>>,
    reload: Sender<Reload>,
    /// Requests to reload; `None` once somebody takes them.
    reloads: Option<Receiver<Reload>>,
    custody: Custody,
    restores: bool,
}

impl Control {
    /// A worker without a thread yet. `stop` is set when the user asks for an end, and when the keeper is gone.
    #[must_use]
    pub fn new(channel: UnixStream, custody: Custody, stop: Arc<AtomicBool>) -> Self {
        let (reload, reloads) = self::channel();
        Self {
            channel,
            stop,
            orders: None,
            reload,
            reloads: Some(reloads),
            custody,
            restores: true,
        }
    }

    /// Starts the thread. A process that gives up privileges does so before, because threads that are there keep them.
    ///
    /// # Errors
    /// If the thread cannot be started.
    pub fn listen(&mut self) -> Result<(), DeviceError> {
        let (sender, orders) = self::channel();
        let (stop, reload) = (Arc::clone(&self.stop), self.reload.clone());
        let started = self.channel.try_clone().and_then(|from| {
            let thread = thread::Builder::new().name("rxo-control".to_owned());
            thread.spawn(move || pass_on(&from, &sender, &reload, &stop))
        });
        started.map_err(|error| fault::system("cannot start a thread that takes orders", error))?;
        self.orders = Some(orders);
        Ok(())
    }

    /// If the keeper is gone, the [`Restorer`](super::Restorer) restores, and not this process: it may have given up what
    /// that needs.
    pub const fn leave_to_restorer(&mut self) {
        self.restores = false;
    }

    /// Reports that the devices are open, and waits until the keeper has prepared the interfaces. `tap` is the index
    /// of the host's TAP, if it has one, and the descriptor that keeps it. `None` if the keeper refuses, and then prints
    /// the reason, or is gone.
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
        // Whoever outlives the other needs the TAP, because what it has then must move.
        let files = [file, lock.as_fd()];
        let kept = files.into_iter().map(|file| file.try_clone_to_owned());
        let kept = kept.collect::<io::Result<Vec<_>>>();
        let kept = kept.map_err(|error| fault::system("cannot keep the host's TAP", error))?;
        self.custody.note_tap(index, kept)?;
        Ok(self.begin(Report::Opened(index), &files))
    }

    /// Yields the requests to read the file of the run's flags again, also those that came before, and a handle that asks
    /// for one. Only the first call has them.
    ///
    /// # Errors
    /// If the system has no descriptors left.
    pub fn reloads(&mut self) -> Result<(Receiver<Reload>, ReloadAsker), DeviceError> {
        let asker = self.channel.try_clone();
        let asker = asker.map_err(|error| fault::system("cannot ask for a file again", error))?;
        Ok((self.reloads.take().unwrap_or_else(|| self::channel().1), ReloadAsker(asker)))
    }

    /// Makes a handle by which another thread confirms the run.
    ///
    /// # Errors
    /// If the system has no descriptors left.
    pub fn confirmer(&self) -> Result<Confirmer, DeviceError> {
        let channel = self.channel.try_clone();
        channel.map(Confirmer).map_err(|error| fault::system("cannot take a confirmation", error))
    }

    /// Whether the nic was deleted.
    #[must_use]
    pub fn has_lost_nic(&self) -> bool {
        self.custody.has_lost_nic()
    }

    /// Reports that an interface with this index has taken the place of the nic and is open. Returns the
    /// instant before which the kernel got every frame; otherwise as [`opened`](Self::opened).
    ///
    /// # Errors
    /// If that interface was deleted as well.
    pub fn nic_is_back(&mut self, index: u32) -> Result<Option<Instant>, DeviceError> {
        self.custody.succeed(index)?;
        Ok(self.begin(Report::NicIsBack(index), &[]).map(|begun| begun.closed_at))
    }

    /// Reports that the nic was deleted, and waits until its name is free for another. `false` if the keeper is gone,
    /// or cannot free it and then prints the reason.
    pub fn nic_is_gone(&self) -> bool {
        matches!(self.report(Report::NicIsGone, &[]), Some(Order::Begin(_)))
    }

    /// Reports that the devices are closed, and waits until everything is given back. Does so by itself if
    /// the keeper is gone, unless that is [left](Self::leave_to_restorer) to another process, and then returns a line for each
    /// thing that could not be given back.
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

    /// Sends `report` to the keeper and waits for its order. `None` if the keeper is gone.
    fn report(&self, report: Report, files: &[BorrowedFd<'_>]) -> Option<Order> {
        if report.send(&self.channel, files).is_err() {
            self.stop.store(true, Ordering::Relaxed);
            return None;
        }
        match &self.orders {
            Some(orders) => orders.recv().ok(),
            None => next_answer(&self.channel, &self.reload, &self.stop),
        }
    }
}

/// Confirms a run that would otherwise end by itself; see [`Keeper::confirm_within`](super::Keeper::confirm_within).
#[derive(Debug)]
pub struct Confirmer(UnixStream);

impl Confirmer {
    /// Confirms the run. A second time changes nothing.
    ///
    /// # Errors
    /// If the keeper is gone.
    pub fn confirm(&self) -> io::Result<()> {
        Report::Confirmed.send(&self.0, &[])
    }
}

/// The next order that answers a report. Requests to reload go to `reload`. `stop` is set by those that ask for an end, and
/// if the keeper is gone.
fn next_answer(from: &UnixStream, reload: &Sender<Reload>, stop: &AtomicBool) -> Option<Order> {
    loop {
        match Order::receive(from) {
            Ok((Order::Stop, _)) => stop.store(true, Ordering::Relaxed),
            Ok((order @ Order::Reload { .. }, files)) => {
                // Nobody may want it.
                _ = order.reload(files).map(|it| reload.send(it));
            }
            Ok((order, _)) => return Some(order),
            Err(_) => {
                stop.store(true, Ordering::Relaxed);
                return None;
            }
        }
    }
}

fn pass_on(from: &UnixStream, to: &Sender<Order>, reload: &Sender<Reload>, stop: &AtomicBool) {
    while let Some(order) = next_answer(from, reload, stop) {
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

/// Receives a whole message: its kind, its number, and the files that came with it.
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
        let others = [Order::Quit, Order::PutBack, Order::Stop, reload];
        for order in begun.map(Order::Begin).into_iter().chain(others) {
            order.send(&keeper).unwrap();
            assert_eq!(Order::receive(&worker).unwrap().0, order);
        }
        let nic = [Report::NicIsGone, Report::NicIsBack(9)];
        let others = [Report::Opened(7), Report::Confirmed, Report::Reload, Report::Closed];
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
