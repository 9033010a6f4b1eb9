//! A host in memory: sockets on top, IP packets below, and a clock that its owner advances.
//!
//! Separate from the worker that runs connections on real devices: nothing here waits, sleeps or
//! races, so a script has one outcome. The host is pure. Calls ([`VirtualHost::start`]), packets
//! ([`VirtualHost::deliver`]) and time ([`VirtualHost::step`]) go in; answers and packets
//! ([`VirtualHost::take_packet`]) come out. A call that would block returns a [`Waiting`], and the
//! owner tries again after anything that may have changed it ([`VirtualHost::resume`]).
//!
//! Contract: no packet and no call makes it panic. A new descriptor is the lowest free one, from 3.
//! Large sends leave as segments, as a device would send them.

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

/// An IP packet that was sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    /// When it was sent.
    pub at: Instant,
    /// The packet from its IP header, with right checksums.
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
    /// Makes a host without sockets, at `now`.
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

    /// Sets what sysctl(8) calls `name`, for sockets and connections created from now on.
    ///
    /// # Errors
    /// See [`Settings::set_sysctl`]. Nothing has changed then.
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

    /// When the next timer expires; `None` if no timer is set.
    #[must_use]
    pub fn next_timer(&self) -> Option<Instant> {
        self.endpoints.values().filter_map(Endpoint::next_timer).min()
    }

    /// Advances time to the next timer that is due by `limit` and handles it, or else to `limit`.
    /// Returns true if a timer expired; then there may be more before `limit`.
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
        self.update();
        true
    }

    /// Takes the oldest sent packet that has not been taken.
    pub fn take_packet(&mut self) -> Option<Packet> {
        self.left.pop_front()
    }

    /// Starts a call.
    pub fn start(&mut self, call: Call) -> Progress {
        let progress = self.attempt(Waiting::new(call));
        self.update();
        progress
    }

    /// Continues a blocked call.
    pub fn resume(&mut self, waiting: Waiting) -> Progress {
        let progress = self.attempt(waiting);
        self.update();
        progress
    }

    /// Whether the socket's family is IPv6.
    #[must_use]
    pub fn is_v6(&self, fd: Fd) -> bool {
        self.sockets.get(&fd).is_some_and(|socket| socket.is_v6)
    }

    /// Sends everything that may leave, and follows the changes of the connections.
    fn update(&mut self) {
        for endpoint in self.endpoints.values_mut() {
            endpoint.transmit_all(self.now, &mut self.left);
            endpoint.record_events();
        }
        self.notify_writers();
        self.queue_the_opened();
        self.signal_waiters();
        self.endpoints.retain(|_, endpoint| !endpoint.is_over());
    }

    /// Notifies writers of room, and counts what senders wait for.
    fn notify_writers(&mut self) {
        let now = self.now;
        let streams: Vec<Fd> = self.sockets.keys().copied().collect();
        for fd in streams {
            let limits = self.write_limits(fd);
            if let (Ok(limits), Ok(endpoint)) = (limits, self.stream(fd)) {
                endpoint.notify_of_room(&limits);
            }
        }
        self.endpoints.values_mut().for_each(|endpoint| endpoint.watch_sender(now));
    }

    /// Queues open passive connections for accept, and removes those that failed before.
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

    /// The local address of `fd`; `None` if it has none.
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

/// The lowest descriptor after those that every process has.
const FIRST_FD: Fd = 3;
