//! What applications' threads and the worker share: a queue to the worker, its alarm, the ports.
//!
//! The worker never waits here: the queue is taken from without a lock.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering, fence};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::event::{EventfdFlags, eventfd};
use rxo_tcp::Secret;

use crate::cell::Cell;
use crate::memory::Memory;
use crate::ports::{self, Ports};
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
    memory: Memory,
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
            ports: Ports::new(Secret(config.secret)),
            memory: Memory::new(config.memory_bytes),
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

    /// Counts one connection more, if there may be one; those in TIME-WAIT do not count.
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

    /// What connections hold is reserved here.
    pub(crate) fn memory(&self) -> &Memory {
        &self.memory
    }

    pub(crate) fn ports(&self) -> &Ports {
        &self.ports
    }
}

/// Addresses that somebody listens on; only applications' threads look here.
#[derive(Debug, Default)]
pub(crate) struct Listeners {
    taken: Mutex<Vec<SocketAddr>>,
}

impl Listeners {
    /// Takes `address`; with port 0 any port on which nobody listens. Gives the address taken.
    ///
    /// # Errors
    /// [`io::ErrorKind::AddrInUse`] when somebody listens there.
    pub(crate) fn take(&self, address: SocketAddr) -> io::Result<SocketAddr> {
        let mut taken = self.lock();
        let is_free = |address: &SocketAddr| !taken.iter().any(|other| overlap(*other, *address));
        let found = match address.port() {
            0 => (0..ports::COUNT)
                .map(|step| SocketAddr::new(address.ip(), ports::any(step)))
                .find(is_free),
            _ => Some(address).filter(is_free),
        };
        let Some(found) = found else {
            let message = format!("somebody listens on {address} already; choose another port");
            return Err(io::Error::new(io::ErrorKind::AddrInUse, message));
        };
        taken.push(found);
        Ok(found)
    }

    /// Ports on which somebody listens.
    pub(crate) fn ports(&self) -> Vec<u16> {
        self.lock().iter().map(SocketAddr::port).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<SocketAddr>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives `address` back.
    pub(crate) fn give_back(&self, address: SocketAddr) {
        self.lock().retain(|other| *other != address);
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
