//! A machine in memory: Linux's calls on sockets of [`rxo_host`], IP packets below, and a clock that its owner
//! advances.
//!
//! Separate from the runner so that the host is seen as a program sees it: everything that a script tests is done
//! by [`rxo_host::Host`], over a link in memory and on virtual time. Here are only Linux's names for it: numbers of
//! descriptors and errors, options, and which calls wait. The machine is pure: the same calls and packets at the
//! same times give the same answers. A call that would wait returns `None`, and its owner makes it again after
//! anything that may have changed its outcome.
//!
//! A host has its settings from its beginning, and Linux's sockets change them until they listen or connect. So the
//! host is made at that moment, with the settings of that socket, and again when other settings are needed.
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
    /// When it was sent.
    pub at: Instant,
    /// The packet from its IP header, as it is on a wire.
    pub bytes: Vec<u8>,
}

/// The result of a call; `None` if it waits.
pub type Outcome = Option<Result<Answer, Errno>>;

/// The result of a call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// The returned value.
    pub value: i64,
    /// The data that was read.
    pub data: Vec<u8>,
    /// The events that poll returns for each descriptor.
    pub ready: Vec<i16>,
    /// Number of unread bytes, if TCP_INQ asks for it.
    pub rest: Option<i32>,
    /// The value that getsockopt or ioctl returns.
    pub option: Option<OptionValue>,
}

impl Answer {
    /// An answer that is only a number.
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
    /// Makes a machine without sockets, at `now`.
    #[must_use]
    pub fn new(settings: Settings, now: Instant) -> Self {
        Self { settings, now, sockets: BTreeMap::new(), running: None }
    }

    /// Sets what sysctl(8) calls `name`, for sockets that listen or connect from now on.
    ///
    /// # Errors
    /// See [`Settings::set_sysctl`]. Nothing has changed then.
    pub fn set_sysctl(&mut self, name: &str, value: &str) -> Result<(), SysctlError> {
        let mut changed = self.settings.clone();
        changed.set_sysctl(name, value)?;
        self.settings = changed;
        Ok(())
    }

    /// The machine's time.
    #[must_use]
    pub const fn now(&self) -> Instant {
        self.now
    }

    /// Advances time to the next timer of the host that is due by `limit`, or else to `limit`. Returns true if a
    /// timer was due; then there may be more before `limit`.
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

    /// Gives the host one packet, which begins with its IP header.
    pub fn deliver(&mut self, packet: &[u8]) {
        let now = self.now;
        if let Ok(running) = self.any_host() {
            running.deliver(packet, now);
        }
    }

    /// Lets the host do what there is to do now.
    fn turn(&mut self) {
        if let Some(running) = &mut self.running {
            running.turn(self.now);
        }
    }

    /// Returns true if the socket's family is IPv6.
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

    /// The connection of `fd`.
    fn stream(&mut self, fd: Fd) -> Result<&mut Stream, Errno> {
        match &mut self.socket(fd)?.kind {
            Kind::Stream(stream) => Ok(stream),
            _ => Err(Errno::ENOTCONN),
        }
    }
}

/// Linux's number for an error of a socket.
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

/// The lowest descriptor after those that every process has.
const FIRST_FD: Fd = 3;
