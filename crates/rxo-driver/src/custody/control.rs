//! Control: the worker's side of a run in two processes.
//!
//! This module is separate because the keeper may send orders at any time, so a separate thread receives them
//! while the worker is busy. Contract: an order to stop is never lost, and the worker never waits for a
//! successor.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use rxo_device::DeviceError;
use rxo_frame::Instant;

use super::Custody;
use super::channel::{Begun, Order, Report};
use super::held::Held;
use super::reload::{Reload, ReloadAsker};
use crate::fault;
use crate::lock::InterfaceLock;
use crate::succession::Handover;

/// The worker's side of a run in two processes. It reports to the keeper, and restores the interfaces if the
/// keeper has ended, unless another process restores them. During the run a thread [listens](Self::listen) to the
/// keeper, so that an order to stop reaches the worker even while the worker is busy.
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
    unsolicited: Unsolicited,
}

/// A successor, a process that will replace this worker. The successor has prepared everything and waits for
/// the positions of the devices.
#[derive(Debug)]
pub struct WaitingSuccessor {
    /// The socket for the [`Handover`].
    pub socket: UnixStream,
}

/// The state that is changed by the keeper's unsolicited orders: to read the flags again, to stop, and to hand
/// over the devices.
#[derive(Clone, Debug)]
struct Unsolicited {
    reload: Sender<Reload>,
    stop: Arc<AtomicBool>,
    /// `true` once the keeper has ordered the end of the run.
    is_over: Arc<AtomicBool>,
    /// The successor that has prepared everything and waits; `None` if there is none.
    successor: Arc<Mutex<Option<WaitingSuccessor>>>,
    /// The devices to hand over to a successor; `None` if the run permits no successor.
    handover: Arc<Mutex<Option<Handover>>>,
}

impl Unsolicited {
    /// Offers the devices to the successor at the other end of the socket in `files`, on a separate thread, so
    /// that the worker continues while the successor prepares itself. Then orders the worker to stop.
    fn offer(&self, files: Vec<OwnedFd>) {
        let Some(mut socket) = files.into_iter().next().map(UnixStream::from) else { return };
        let Some(handover) = lock(&self.handover).as_ref().and_then(|it| it.try_clone().ok())
        else {
            return;
        };
        let unsolicited = self.clone();
        let offer = move || {
            if handover.offer(&mut socket).is_ok() {
                *lock(&unsolicited.successor) = Some(WaitingSuccessor { socket });
                unsolicited.stop.store(true, Ordering::Relaxed);
            }
        };
        // Without a thread the successor is told nothing, and gives up.
        _ = thread::Builder::new().name("rxo-heir".to_owned()).spawn(offer);
    }
}

/// Locks a mutex, even after a panic of another thread: the value behind it is only replaced as a whole, so
/// it is never half changed.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Control {
    /// Creates the worker's side without its listening thread. `stop` is set when the user asks the run to
    /// end, and when the keeper is gone.
    #[must_use]
    pub fn new(channel: UnixStream, custody: Custody, stop: Arc<AtomicBool>) -> Self {
        let (reload, reloads) = mpsc::channel();
        let (is_over, successor, handover) = (Arc::default(), Arc::default(), Arc::default());
        let unsolicited =
            Unsolicited { reload, stop: Arc::clone(&stop), is_over, successor, handover };
        Self {
            channel,
            stop,
            orders: None,
            reloads: Some(reloads),
            custody,
            restores: true,
            unsolicited,
        }
    }

    /// Offers the devices of `handover` to successors. Call this function before [`listen`](Self::listen).
    pub fn hand_over(&self, handover: Handover) {
        *lock(&self.unsolicited.handover) = Some(handover);
    }

    /// Returns a successor that waits for the positions of the devices; `None` if the run continues or ends.
    #[must_use]
    pub fn successor(&self) -> Option<WaitingSuccessor> {
        lock(&self.unsolicited.successor)
            .take()
            .filter(|_| !self.unsolicited.is_over.load(Ordering::Relaxed))
    }

    /// Withdraws the order to stop for a handover, because the successor has failed. An order to end the run
    /// stays in force.
    pub fn withdraw_stop(&self) {
        let is_asked = lock(&self.unsolicited.successor).is_some();
        self.stop
            .store(is_asked || self.unsolicited.is_over.load(Ordering::Relaxed), Ordering::Relaxed);
    }

    /// Reports to the keeper that this process, the successor, now uses the devices that the former worker has
    /// handed over.
    ///
    /// # Errors
    /// If the keeper is gone.
    pub fn has_succeeded(&self) -> io::Result<()> {
        Report::Succeeded.send(&self.channel, &[])
    }

    /// Starts the listening thread. Give up privileges before this call, because a thread that already runs keeps
    /// its privileges.
    ///
    /// # Errors
    /// If the thread cannot be started.
    pub fn listen(&mut self) -> Result<(), DeviceError> {
        let (sender, orders) = mpsc::channel();
        let unsolicited = self.unsolicited.clone();
        let started = self.channel.try_clone().and_then(|from| {
            let thread = thread::Builder::new().name("rxo-control".to_owned());
            thread.spawn(move || forward_orders(&from, &sender, &unsolicited))
        });
        started.map_err(|error| fault::system("cannot start a thread that takes orders", error))?;
        self.orders = Some(orders);
        Ok(())
    }

    /// If the keeper is gone, leaves it to the [`Restorer`](super::Restorer) to restore the interfaces, because
    /// this process may have given up the privileges that are needed for that.
    pub const fn leave_to_restorer(&mut self) {
        self.restores = false;
    }

    /// Reports that the devices are open, and waits until the keeper has prepared the interfaces. `tap` contains
    /// the index of the host's TAP and a descriptor that keeps the TAP in existence; `None` if there is no TAP.
    /// Returns `None` if the keeper is gone or refuses the run; a keeper that refuses the run prints the reason.
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
        // The keeper gets both descriptors too: if the worker is killed, the TAP must exist until its
        // addresses have moved back.
        let files = [file, lock.as_fd()];
        let kept = files.into_iter().map(|file| file.try_clone_to_owned());
        let kept = kept.collect::<io::Result<Vec<_>>>();
        let kept = kept.map_err(|error| fault::system("cannot keep the host's TAP", error))?;
        self.custody.note_tap(index, kept)?;
        Ok(self.begin(Report::Opened(index), &files))
    }

    /// Returns the receiver of requests to read the file of the run's flags again, and a handle that makes
    /// such a request. The receiver also yields earlier requests. A second call returns a receiver that
    /// yields nothing.
    ///
    /// # Errors
    /// If the system has no descriptors left.
    pub fn reloads(&mut self) -> Result<(Receiver<Reload>, ReloadAsker), DeviceError> {
        let asker = self.channel.try_clone();
        let asker = asker.map_err(|error| fault::system("cannot ask for a file again", error))?;
        Ok((self.reloads.take().unwrap_or_else(|| mpsc::channel().1), ReloadAsker(asker)))
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
    /// before which the kernel's own stack received every frame; `None` in the same cases as
    /// [`opened`](Self::opened).
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
    /// is gone, restores everything itself, unless another process does so
    /// ([`leave_to_restorer`](Self::leave_to_restorer)). Returns a line for each change that this process
    /// could not undo.
    pub fn closed(&mut self) -> Vec<String> {
        // The descriptors for successors would keep the devices open.
        *lock(&self.unsolicited.handover) = None;
        match self.report(Report::Closed, &[]) {
            None if self.restores => self.custody.restore(),
            _ => Vec::new(),
        }
    }

    fn begin(&mut self, report: Report, files: &[BorrowedFd<'_>]) -> Option<Begun> {
        match self.report(report, files)? {
            Order::Begin(begun) => {
                self.custody.held.iter_mut().for_each(Held::record_takeover);
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
            None => next_answer(&self.channel, &self.unsolicited),
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

/// Returns the keeper's next answer to a report, and carries out all other orders that arrive before it. If the
/// keeper is gone, sets `stop` and returns `None`.
fn next_answer(from: &UnixStream, unsolicited: &Unsolicited) -> Option<Order> {
    loop {
        match Order::receive(from) {
            Ok((Order::Stop, _)) => {
                unsolicited.is_over.store(true, Ordering::Relaxed);
                unsolicited.stop.store(true, Ordering::Relaxed);
            }
            Ok((order @ Order::Reload { .. }, files)) => {
                // The receiver may be dropped already; then the request has no effect.
                _ = order.reload(files).map(|it| unsolicited.reload.send(it));
            }
            Ok((Order::HandOver, files)) => unsolicited.offer(files),
            Ok((order, _)) => return Some(order),
            Err(_) => {
                unsolicited.is_over.store(true, Ordering::Relaxed);
                unsolicited.stop.store(true, Ordering::Relaxed);
                return None;
            }
        }
    }
}

fn forward_orders(from: &UnixStream, to: &Sender<Order>, unsolicited: &Unsolicited) {
    while let Some(order) = next_answer(from, unsolicited) {
        if to.send(order).is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Claim;
    use super::*;

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
