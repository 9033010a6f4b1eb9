//! A machine in memory: Linux's calls on sockets of [`rxo_host`], IP packets below, and a clock that its
//! owner advances.
//!
//! Separate from the runner, so that the host is used as a program uses it: [`rxo_host::Host`] does
//! everything that a script tests, over a link in memory and on virtual time. This module adds only Linux's
//! interface: descriptors, error numbers, options, and blocking. The machine is pure: the same calls and
//! packets at the same times give the same results. A call that would block returns `None`, and its owner
//! repeats it after anything that may have changed its outcome.
//!
//! A host's settings are fixed when it is made, but Linux's sockets change theirs until they listen or
//! connect. So the host is made at that moment with the settings of that socket, and replaced when other
//! settings are needed.
//!
//! Contract: no packet and no call makes it panic. A new descriptor is the lowest free one, from 3.

mod info;
mod open;
mod options;
mod poll;
mod running;
mod settings;
mod socket;
mod sysctl;
mod text;

use std::collections::BTreeMap;
use std::io;

use rxo_frame::Instant;

pub use self::info::TcpInfo;
pub(crate) use self::open::flow_key;
pub use self::options::OptionValue;
use self::running::Running;
pub use self::settings::{FlagError, Settings};
use self::socket::{Kind, Socket, Stream};
pub use self::sysctl::SysctlError;
use crate::abi::Errno;

/// A descriptor.
pub type Fd = i32;

/// An IP packet that was sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Time at which the packet was sent.
    pub at: Instant,
    /// Bytes of the packet from its IP header on, as on a wire.
    pub bytes: Vec<u8>,
}

/// The outcome of a call; `None` if it blocks.
pub type Outcome = Option<Result<Answer, Errno>>;

/// The result of a successful call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// The returned value.
    pub value: i64,
    /// The data that was read.
    pub data: Vec<u8>,
    /// The events that poll(2) returns for each descriptor.
    pub ready: Vec<i16>,
    /// Number of unread bytes, if TCP_INQ is set; otherwise `None`.
    pub rest: Option<i32>,
    /// The value that getsockopt or ioctl returns.
    pub option: Option<OptionValue>,
}

impl Answer {
    /// Makes an answer with only a number.
    #[must_use]
    pub fn of(value: i64) -> Self {
        Self { value, ..Self::default() }
    }
}

/// A host with the sockets of an application.
#[derive(Debug)]
pub struct Machine {
    settings: Settings,
    now: Instant,
    sockets: BTreeMap<Fd, Socket>,
    running: Option<Running>,
}

impl Machine {
    /// Makes a machine without sockets; its clock starts at `now`.
    #[must_use]
    pub fn new(settings: Settings, now: Instant) -> Self {
        Self { settings, now, sockets: BTreeMap::new(), running: None }
    }

    /// Sets the sysctl `name`, for sockets that listen or connect from now on.
    ///
    /// # Errors
    /// The errors of [`Settings::set_sysctl`]; then nothing has changed.
    pub fn set_sysctl(&mut self, name: &str, value: &str) -> Result<(), SysctlError> {
        let mut changed = self.settings.clone();
        changed.set_sysctl(name, value)?;
        self.settings = changed;
        Ok(())
    }

    /// Returns the machine's time.
    #[must_use]
    pub const fn now(&self) -> Instant {
        self.now
    }

    /// Advances time to the next timer of the host that is due by `limit`, or else to `limit`. Returns `true`
    /// if a timer was due; more may be due before `limit`.
    pub fn step(&mut self, limit: Instant) -> bool {
        let timer = self.running.as_ref().and_then(Running::next_timer);
        let due = timer.filter(|at| *at <= limit);
        self.now = self.now.max(due.unwrap_or(limit));
        self.turn();
        due.is_some()
    }

    /// Takes the oldest sent packet that has not been taken.
    pub fn take_packet(&mut self) -> Option<Packet> {
        self.running.as_mut()?.take_packet()
    }

    /// Delivers a packet, which begins with its IP header, to the host.
    pub fn deliver(&mut self, packet: &[u8]) {
        let now = self.now;
        if let Ok(running) = self.any_host() {
            running.deliver(packet, now);
        }
    }

    /// Runs the host's work that is due now.
    fn turn(&mut self) {
        if let Some(running) = &mut self.running {
            running.turn(self.now);
        }
    }

    /// Returns `true` if the socket's family is IPv6.
    #[must_use]
    pub fn is_v6(&self, fd: Fd) -> bool {
        self.sockets.get(&fd).is_some_and(|socket| socket.is_v6)
    }

    fn add_socket(&mut self, socket: Socket) -> Fd {
        let fd = (FIRST_FD..).find(|fd| !self.sockets.contains_key(fd)).unwrap_or(Fd::MAX);
        self.sockets.insert(fd, socket);
        fd
    }

    fn socket(&mut self, fd: Fd) -> Result<&mut Socket, Errno> {
        self.sockets.get_mut(&fd).ok_or(Errno::EBADF)
    }

    /// Returns the connection of `fd`.
    ///
    /// # Errors
    /// If `fd` is no socket, or has no connection.
    fn stream(&mut self, fd: Fd) -> Result<&mut Stream, Errno> {
        match &mut self.socket(fd)?.kind {
            Kind::Stream(stream) => Ok(stream),
            _ => Err(Errno::ENOTCONN),
        }
    }
}

/// Returns Linux's number for a socket's error.
fn errno(error: &io::Error) -> Errno {
    match error.kind() {
        io::ErrorKind::WouldBlock => Errno::EAGAIN,
        io::ErrorKind::ConnectionReset => Errno::ECONNRESET,
        io::ErrorKind::ConnectionRefused => Errno::ECONNREFUSED,
        io::ErrorKind::ConnectionAborted => Errno::ECONNABORTED,
        io::ErrorKind::TimedOut => Errno::ETIMEDOUT,
        io::ErrorKind::HostUnreachable => Errno::EHOSTUNREACH,
        io::ErrorKind::BrokenPipe => Errno::EPIPE,
        io::ErrorKind::NotConnected => Errno::ENOTCONN,
        io::ErrorKind::AddrInUse => Errno::EADDRINUSE,
        _ => Errno::EINVAL,
    }
}

/// The lowest descriptor besides the standard ones.
const FIRST_FD: Fd = 3;
