//! A host in memory: sockets in front, IP packets behind, and a clock that its owner moves.
//!
//! Separate from the worker that runs connections on real devices: here nothing waits, sleeps or
//! races, so that a script has one outcome. It is pure: calls ([`VirtualHost::start`]), packets
//! ([`VirtualHost::deliver`]) and time ([`VirtualHost::step`]) go in, answers and packets
//! ([`VirtualHost::take_packet`]) come out. A call that would block gives a [`Waiting`]; its owner
//! asks again after whatever may have changed it ([`VirtualHost::resume`]).
//!
//! Contract: no packet and no call makes it panic. Descriptors are the lowest that are free, from
//! 3 on. Large sends leave cut into segments, as a device would cut them.

mod arrival;
mod call;
mod close;
mod control;
mod departure;
mod endpoint;
mod epoll;
mod icmp;
mod info;
mod open;
mod outbox;
mod readiness;
mod record;
mod room;
mod settings;
mod socket;
mod stalls;
mod sysctl;
mod text;

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;

use rxo_frame::Instant;

pub use self::call::{Answer, Call, OptionValue, Outcome, Progress, Waiting};
use self::endpoint::Endpoint;
use self::epoll::Epoll;
pub use self::info::TcpInfo;
pub(crate) use self::open::flow_key;
pub use self::settings::{FlagError, Settings};
use self::socket::{Kind, Socket};
pub use self::sysctl::SysctlError;
use crate::abi::{Errno, POLLIN};

/// A descriptor.
pub type Fd = i32;

/// An IP packet that left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    /// When it left.
    pub at: Instant,
    /// From its IP header on; checksums are right.
    pub bytes: Vec<u8>,
}

/// A host with its sockets and connections.
#[derive(Debug)]
pub struct VirtualHost {
    settings: Settings,
    now: Instant,
    sockets: BTreeMap<Fd, Socket>,
    epolls: BTreeMap<Fd, Epoll>,
    endpoints: BTreeMap<u32, Endpoint>,
    made_endpoints: u32,
    left: VecDeque<Packet>,
}

impl VirtualHost {
    /// A host without sockets, at `now`.
    #[must_use]
    pub fn new(settings: Settings, now: Instant) -> Self {
        Self {
            settings,
            now,
            sockets: BTreeMap::new(),
            epolls: BTreeMap::new(),
            endpoints: BTreeMap::new(),
            made_endpoints: 0,
            left: VecDeque::new(),
        }
    }

    /// Sets what sysctl(8) calls `name`; sockets that are made and connections that begin from now on
    /// follow it.
    ///
    /// # Errors
    /// See [`Settings::set_sysctl`]; then nothing has changed.
    pub fn set_sysctl(&mut self, name: &str, value: &str) -> Result<(), SysctlError> {
        let mut changed = self.settings.clone();
        changed.set_sysctl(name, value)?;
        self.settings = changed;
        Ok(())
    }

    /// The host's time.
    #[must_use]
    pub const fn now(&self) -> Instant {
        self.now
    }

    /// When the next timer fires; `None` when nothing waits for time.
    #[must_use]
    pub fn next_timer(&self) -> Option<Instant> {
        self.endpoints.values().filter_map(Endpoint::next_timer).min()
    }

    /// Lets time come to the next timer, if it is due by `limit`, and fires it; else to `limit`.
    /// Says whether a timer fired: then there may be more before `limit`.
    pub fn step(&mut self, limit: Instant) -> bool {
        let due = self.next_timer().filter(|at| *at <= limit);
        self.now = self.now.max(due.unwrap_or(limit));
        if due.is_none() {
            return false;
        }
        let now = self.now;
        for endpoint in self.endpoints.values_mut() {
            endpoint.on_time(now);
        }
        self.settle();
        true
    }

    /// The packet that left first of those that were not taken.
    pub fn take_packet(&mut self) -> Option<Packet> {
        self.left.pop_front()
    }

    /// Makes a call.
    pub fn start(&mut self, call: Call) -> Progress {
        let progress = self.attempt(Waiting::new(call));
        self.settle();
        progress
    }

    /// Goes on with a call that waits.
    pub fn resume(&mut self, waiting: Waiting) -> Progress {
        let progress = self.attempt(waiting);
        self.settle();
        progress
    }

    /// Whether the socket's family is IPv6.
    #[must_use]
    pub fn is_v6(&self, fd: Fd) -> bool {
        self.sockets.get(&fd).is_some_and(|socket| socket.is_v6)
    }

    /// Lets everything leave that can, and follows what the connections have become.
    fn settle(&mut self) {
        for endpoint in self.endpoints.values_mut() {
            endpoint.transmit_all(self.now, &mut self.left);
            endpoint.look();
        }
        self.look_at_room();
        self.queue_the_opened();
        self.signal_waiters();
        self.endpoints.retain(|_, endpoint| !endpoint.is_over());
    }

    /// Tells writers of room, and counts what senders wait for.
    fn look_at_room(&mut self) {
        let now = self.now;
        let streams: Vec<Fd> = self.sockets.keys().copied().collect();
        for fd in streams {
            let limits = self.write_limits(fd);
            if let (Ok(limits), Ok(endpoint)) = (limits, self.stream(fd)) {
                endpoint.tell_of_room(&limits);
            }
        }
        self.endpoints.values_mut().for_each(|endpoint| endpoint.watch_sender(now));
    }

    /// A passive connection that is open waits to be accepted; one that failed before is gone.
    fn queue_the_opened(&mut self) {
        for (number, endpoint) in &mut self.endpoints {
            let Some(fd) = endpoint.listener.filter(|_| endpoint.was_open && !endpoint.is_queued)
            else {
                continue;
            };
            endpoint.is_queued = true;
            if let Some(Socket { kind: Kind::Listener(listener), .. }) = self.sockets.get_mut(&fd) {
                listener.ready.push_back(*number);
                listener.signals |= POLLIN;
            }
        }
    }

    fn add_endpoint(&mut self, endpoint: Endpoint) -> u32 {
        self.made_endpoints += 1;
        self.endpoints.insert(self.made_endpoints, endpoint);
        self.made_endpoints
    }

    fn add_socket(&mut self, socket: Socket) -> Fd {
        let fd = self.free_descriptor();
        self.sockets.insert(fd, socket);
        fd
    }

    fn free_descriptor(&self) -> Fd {
        let is_free = |fd: &Fd| !self.sockets.contains_key(fd) && !self.epolls.contains_key(fd);
        (FIRST_FD..).find(is_free).unwrap_or(Fd::MAX)
    }

    fn socket(&mut self, fd: Fd) -> Result<&mut Socket, Errno> {
        self.sockets.get_mut(&fd).ok_or(Errno::EBADF)
    }

    /// The connection of `fd`.
    fn stream(&mut self, fd: Fd) -> Result<&mut Endpoint, Errno> {
        let Kind::Stream(number) = self.socket(fd)?.kind else { return Err(Errno::ENOTCONN) };
        self.endpoints.get_mut(&number).ok_or(Errno::ENOTCONN)
    }

    /// Where `fd` stands on this side; `None` when it has no address.
    #[must_use]
    pub fn local_address(&self, fd: Fd) -> Option<SocketAddr> {
        match &self.sockets.get(&fd)?.kind {
            Kind::Fresh { local } => *local,
            Kind::Listener(listener) => Some(listener.local),
            Kind::Stream(number) => {
                let pair = self.endpoints.get(number)?.tcp.pair();
                Some(SocketAddr::new(pair.source(), pair.source_port()))
            }
        }
    }
}

/// Below are those that every process has.
const FIRST_FD: Fd = 3;
