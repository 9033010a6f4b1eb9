//! What applications' threads and the worker share: a queue to the worker, its alarm, the ports.
//!
//! The worker never waits here: the queue is taken from without a lock, ports are one atomic each.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicUsize, Ordering, fence};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::event::{EventfdFlags, eventfd};

use crate::cell::Cell;
use crate::settings::Settings;
use crate::socket::Listening;
use crate::{HostConfig, HostError};

/// What a thread asks of the worker.
#[derive(Debug)]
pub(crate) enum Command<B> {
    /// Open the connection that this cell is.
    Open(Arc<Cell<B>>),
    /// Work on this cell.
    Serve(Arc<Cell<B>>),
    /// Take connections for this listener.
    Listen(Arc<Listening<B>>),
    /// Take no more for it.
    Unlisten(Arc<Listening<B>>),
}

/// The shared part.
#[derive(Debug)]
pub(crate) struct Post<B> {
    commands: Sender<Command<B>>,
    /// The worker sleeps, or is about to.
    is_asleep: AtomicBool,
    alarm: OwnedFd,
    ports: Ports,
    /// The worker has ended: nothing asked of it will be done.
    is_closed: AtomicBool,
    /// Connections there are.
    sockets: AtomicUsize,
    pub(crate) settings: Settings,
    pub(crate) listeners: Listeners,
}

impl<B> Post<B> {
    pub(crate) fn new(
        config: &HostConfig,
        settings: Settings,
    ) -> Result<(Arc<Self>, Receiver<Command<B>>), HostError> {
        let (commands, receiver) = channel();
        let alarm = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)
            .map_err(|error| HostError::NoDescriptor(error.to_string()))?;
        let post = Self {
            commands,
            is_asleep: AtomicBool::new(false),
            alarm,
            ports: Ports::new(config.secret[1]),
            is_closed: AtomicBool::new(false),
            sockets: AtomicUsize::new(0),
            settings,
            listeners: Listeners::default(),
        };
        Ok((Arc::new(post), receiver))
    }

    /// Asks, and wakes the worker if it sleeps.
    pub(crate) fn send(&self, command: Command<B>) {
        // A worker that has ended does nothing any more, and says so by `is_closed`.
        let _sent = self.commands.send(command);
        fence(Ordering::SeqCst);
        if self.is_asleep.load(Ordering::SeqCst) && self.is_asleep.swap(false, Ordering::SeqCst) {
            // It can only be full, and rings then.
            let _rung = rustix::io::write(&self.alarm, &1_u64.to_ne_bytes());
        }
    }

    /// The worker is about to sleep; it looks at its queue once more afterwards.
    pub(crate) fn fall_asleep(&self) {
        self.is_asleep.store(true, Ordering::SeqCst);
        fence(Ordering::SeqCst);
    }

    /// The worker is awake.
    pub(crate) fn wake_up(&self) {
        if !self.is_asleep.swap(false, Ordering::SeqCst) {
            // Silent already is what it shall be.
            let _silenced = rustix::io::read(&self.alarm, &mut [0; 8]);
        }
    }

    /// Becomes readable when the worker shall wake.
    pub(crate) fn alarm(&self) -> BorrowedFd<'_> {
        self.alarm.as_fd()
    }

    pub(crate) fn close(&self) {
        self.is_closed.store(true, Ordering::SeqCst);
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::SeqCst)
    }

    /// Counts one connection more, if there may be one.
    pub(crate) fn take_socket(&self) -> bool {
        let most = self.settings.sockets;
        let has_room = self.sockets.fetch_add(1, Ordering::Relaxed) < most;
        if !has_room {
            self.give_back_socket();
        }
        has_room
    }

    /// Counts one connection less.
    pub(crate) fn give_back_socket(&self) {
        self.sockets.fetch_sub(1, Ordering::Relaxed);
    }

    pub(crate) fn ports(&self) -> &Ports {
        &self.ports
    }
}

/// Local ports that connections to others have.
#[derive(Debug)]
pub(crate) struct Ports {
    is_taken: Box<[AtomicBool]>,
    next: AtomicU16,
}

impl Ports {
    fn new(seed: u64) -> Self {
        let is_taken = (0..COUNT).map(|_| AtomicBool::new(false)).collect();
        Self { is_taken, next: AtomicU16::new((seed % u64::from(COUNT)) as u16) }
    }

    /// A port that no other connection has (RFC 6056: the first is chosen at random); `None` when all
    /// are taken.
    pub(crate) fn take(&self) -> Option<u16> {
        (0..COUNT).find_map(|_| {
            let index = self.next.fetch_add(1, Ordering::Relaxed) % COUNT;
            let is_free = !self.is_taken[usize::from(index)].swap(true, Ordering::AcqRel);
            is_free.then_some(FIRST + index)
        })
    }

    /// Gives a port back; one that was not taken here is left alone.
    pub(crate) fn give_back(&self, port: u16) {
        if let Some(is_taken) = self.is_taken.get(usize::from(port.wrapping_sub(FIRST))) {
            is_taken.store(false, Ordering::Release);
        }
    }
}

/// RFC 6335, section 6: the dynamic ports.
const FIRST: u16 = 49_152;
const COUNT: u16 = 16_384;

/// Addresses that somebody listens on; only applications' threads look here.
#[derive(Debug, Default)]
pub(crate) struct Listeners {
    taken: Mutex<Vec<SocketAddr>>,
}

impl Listeners {
    /// Takes `address`.
    ///
    /// # Errors
    /// [`io::ErrorKind::AddrInUse`] when somebody listens there.
    pub(crate) fn take(&self, address: SocketAddr) -> io::Result<()> {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        if taken.iter().any(|other| overlap(*other, address)) {
            let message = format!("somebody listens on {address} already; choose another port");
            return Err(io::Error::new(io::ErrorKind::AddrInUse, message));
        }
        taken.push(address);
        Ok(())
    }

    /// Gives `address` back.
    pub(crate) fn give_back(&self, address: SocketAddr) {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        taken.retain(|other| *other != address);
    }
}

/// Whether a packet could be for both.
fn overlap(a: SocketAddr, b: SocketAddr) -> bool {
    a.port() == b.port() && (covers(a.ip(), b.ip()) || covers(b.ip(), a.ip()))
}

/// Whether a listener on `listening` takes packets for `local`. Unspecified means all addresses of
/// its version.
pub(crate) fn covers(listening: IpAddr, local: IpAddr) -> bool {
    listening == local || listening.is_unspecified() && listening.is_ipv4() == local.is_ipv4()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_port_is_taken_once() {
        let ports = Ports::new(12_345);
        let mut taken: Vec<u16> = std::iter::from_fn(|| ports.take()).collect();
        taken.sort_unstable();
        assert!(taken.iter().copied().eq(FIRST..=u16::MAX));
        ports.give_back(50_000);
        assert_eq!(ports.take(), Some(50_000));
        ports.give_back(80);
        assert_eq!(ports.take(), None);
    }
}
