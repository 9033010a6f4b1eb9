//! The state that application threads share with the worker: a queue of commands, the alarm, ports and
//! memory.
//!
//! The worker never blocks here: it reads the queue without a lock.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering, fence};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::event::{EventfdFlags, eventfd};
use rxo_tcp::Secret;

use crate::cast::CastCommand;
use crate::cell::Cell;
use crate::fast::FastModules;
use crate::memory::Memory;
use crate::ports::{self, Ports};
use crate::queue::Queue;
use crate::settings::Settings;
use crate::shards::{Shard, ShardRole, SharedFrame};
use crate::socket::Listening;
use crate::{HostConfig, HostError};

/// A command to the worker.
#[derive(Debug)]
pub(crate) enum Command<B> {
    /// Open this connection.
    Open(Arc<Cell<B>>),
    /// Run the timers of this connection and send its pending segments.
    Serve(Arc<Cell<B>>),
    /// Accept connections for this listener.
    Listen(Arc<Listening<B>>),
    /// Accept no more connections for this listener.
    Unlisten(Arc<Listening<B>>),
    /// Process a frame that another shard received.
    Receive(SharedFrame),
    /// Run one round ([`Host::turn`](crate::Host::turn)), because an application thread waits for its end.
    Turn,
    /// Carry out a command about the cast. Boxed, so that the queue's entries stay small.
    Cast(Box<CastCommand<B>>),
}

/// The state that one worker shares with application threads.
#[derive(Debug)]
pub(crate) struct Post<B> {
    commands: Sender<Command<B>>,
    /// `true` while the worker sleeps or is about to sleep.
    is_asleep: AtomicBool,
    alarm: OwnedFd,
    ports: Ports,
    memory: Memory,
    /// `true` once the worker has ended and processes no more commands.
    is_closed: AtomicBool,
    /// Number of connections, without those in TIME-WAIT.
    sockets: AtomicUsize,
    /// Number of frames from other shards that wait to be processed.
    shared_frames: AtomicUsize,
    pub(crate) settings: Settings,
    /// The modules of the fast path that are on, as the bits of [`FastModules`].
    fast_path: AtomicU8,
    pub(crate) shard: Shard,
    /// The addresses of listeners, shared with the other shards.
    pub(crate) listeners: Arc<Listeners>,
}

impl<B> Post<B> {
    pub(crate) fn new(
        config: &HostConfig,
        settings: Settings,
        ShardRole { shard, listeners }: ShardRole,
    ) -> Result<(Arc<Self>, Receiver<Command<B>>), HostError> {
        let (commands, receiver) = channel();
        let alarm = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)
            .map_err(|error| HostError::NoDescriptor(error.to_string()))?;
        let post = Self {
            commands,
            is_asleep: AtomicBool::new(false),
            alarm,
            ports: Ports::new(Secret(config.secret)),
            memory: Memory::new(
                config.memory_bytes,
                Queue::new(settings.queue_frames, settings.mtu, settings.sockets),
            ),
            is_closed: AtomicBool::new(false),
            sockets: AtomicUsize::new(0),
            shared_frames: AtomicUsize::new(0),
            settings,
            fast_path: AtomicU8::new(config.fast_path.modules.0),
            shard,
            listeners,
        };
        Ok((Arc::new(post), receiver))
    }

    /// Returns the modules of the fast path that are on.
    #[inline]
    pub(crate) fn fast_path(&self) -> FastModules {
        FastModules(self.fast_path.load(Ordering::Relaxed))
    }

    /// Turns `modules` on and all other modules off, starting with the next batch.
    pub(crate) fn set_fast_path(&self, modules: FastModules) {
        self.fast_path.store(modules.0, Ordering::Relaxed);
    }

    /// Sends a command, and wakes the worker if it sleeps.
    pub(crate) fn send(&self, command: Command<B>) {
        // Fails only if the worker has ended; then `is_closed` is set.
        let _sent = self.commands.send(command);
        fence(Ordering::SeqCst);
        if self.is_asleep.load(Ordering::SeqCst) && self.is_asleep.swap(false, Ordering::SeqCst) {
            // Fails only if the counter is full; then the alarm is readable.
            let _rung = rustix::io::write(&self.alarm, &1_u64.to_ne_bytes());
        }
    }

    /// Sends a command about the cast.
    pub(crate) fn send_cast(&self, command: CastCommand<B>) {
        self.send(Command::Cast(Box::new(command)));
    }

    /// Queues a frame from another shard for this shard, or drops it if too many such frames wait.
    pub(crate) fn send_shared(&self, frame: SharedFrame) {
        if self.shared_frames.fetch_add(1, Ordering::Relaxed) < MOST_SHARED_FRAMES {
            self.send(Command::Receive(frame));
        } else {
            self.record_processed();
        }
    }

    /// Records that one frame from another shard was processed or dropped.
    pub(crate) fn record_processed(&self) {
        self.shared_frames.fetch_sub(1, Ordering::Relaxed);
    }

    /// Records that the worker is about to sleep. The worker must check its queue once more after this call.
    pub(crate) fn announce_sleep(&self) {
        self.is_asleep.store(true, Ordering::SeqCst);
        fence(Ordering::SeqCst);
    }

    /// Records that the worker is awake, and resets the alarm.
    pub(crate) fn wake_up(&self) {
        if !self.is_asleep.swap(false, Ordering::SeqCst) {
            // Fails if the alarm is not readable, which is the wanted state.
            let _silenced = rustix::io::read(&self.alarm, &mut [0; 8]);
        }
    }

    /// Returns the eventfd that becomes readable when the worker must wake up.
    pub(crate) fn alarm(&self) -> BorrowedFd<'_> {
        self.alarm.as_fd()
    }

    pub(crate) fn close(&self) {
        self.is_closed.store(true, Ordering::SeqCst);
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::SeqCst)
    }

    /// Counts a new connection. Returns `false`, without counting, if the limit is reached. Connections in
    /// TIME-WAIT do not count.
    pub(crate) fn take_socket(&self) -> bool {
        let most = self.settings.sockets;
        let has_room = self.sockets.fetch_add(1, Ordering::Relaxed) < most;
        if !has_room {
            self.release_socket();
        }
        has_room
    }

    /// Counts the end of a connection.
    pub(crate) fn release_socket(&self) {
        self.sockets.fetch_sub(1, Ordering::Relaxed);
    }

    /// Returns the memory budget of the connections.
    pub(crate) fn memory(&self) -> &Memory {
        &self.memory
    }

    pub(crate) fn ports(&self) -> &Ports {
        &self.ports
    }
}

/// The addresses of all listeners, as [`Place`]s. Used only by application threads.
#[derive(Debug, Default)]
pub(crate) struct Listeners {
    taken: Mutex<Vec<Place>>,
}

/// The place of a listener: its address, on one shard or, if `shard` is `None`, on all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) address: SocketAddr,
    pub(crate) shard: Option<u32>,
}

impl Listeners {
    /// Reserves `place` for a listener; port 0 selects any free port. Returns the place with its port.
    ///
    /// # Errors
    /// [`io::ErrorKind::AddrInUse`] if another listener uses the place, or if no port is free.
    pub(crate) fn take(&self, place: Place) -> io::Result<Place> {
        let mut taken = self.lock();
        let is_free = |place: &Place| !taken.iter().any(|other| other.overlaps(place));
        let (address, shard) = (place.address, place.shard);
        let at_port = |port| Place { address: SocketAddr::new(address.ip(), port), shard };
        let found = match address.port() {
            0 => (0..ports::COUNT).map(|step| at_port(ports::any(step))).find(is_free),
            _ => Some(place).filter(is_free),
        };
        let Some(found) = found else {
            let message = format!("somebody listens on {address} already; choose another port");
            return Err(io::Error::new(io::ErrorKind::AddrInUse, message));
        };
        taken.push(found);
        Ok(found)
    }

    /// Returns the ports of all listeners.
    pub(crate) fn ports(&self) -> Vec<u16> {
        self.lock().iter().map(|place| place.address.port()).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Place>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Frees `place` after its listener was closed.
    pub(crate) fn release(&self, place: Place) {
        self.lock().retain(|other| *other != place);
    }
}

impl Place {
    /// Returns `true` if one packet could match both listeners.
    fn overlaps(&self, other: &Self) -> bool {
        let is_apart = self.shard.zip(other.shard).is_some_and(|(a, b)| a != b);
        !is_apart && overlap(self.address, other.address)
    }
}

/// Returns `true` if one packet could match both addresses.
fn overlap(a: SocketAddr, b: SocketAddr) -> bool {
    a.port() == b.port() && (covers(a.ip(), b.ip()) || covers(b.ip(), a.ip()))
}

/// Returns `true` if a listener on `listening` accepts packets for `local`. An unspecified address covers all
/// addresses of its IP version.
pub(crate) fn covers(listening: IpAddr, local: IpAddr) -> bool {
    listening == local || listening.is_unspecified() && listening.is_ipv4() == local.is_ipv4()
}

/// Maximum number of waiting frames from other shards. Dropping further frames is harmless, because neighbours
/// repeat their messages.
const MOST_SHARED_FRAMES: usize = 64;
