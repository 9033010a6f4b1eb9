//! A socket: the application's descriptor, and its options.

use std::cell::Cell;
use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;

use rxo_frame::Duration;
use rxo_host::{TcpListener, TcpStream};
use rxo_tcp::{Algorithm, Config, KeepAlive};

use super::{Settings, errno};
use crate::abi::Errno;

/// A descriptor of a script, and its socket's state.
#[derive(Debug)]
pub(super) struct Socket {
    /// `true` if the family is IPv6.
    pub(super) is_v6: bool,
    pub(super) kind: Kind,
    pub(super) options: Options,
}

/// The state of a socket.
#[derive(Debug)]
pub(super) enum Kind {
    /// The socket was created, and perhaps bound.
    Fresh {
        /// The bound address.
        local: Option<SocketAddr>,
    },
    /// The socket listens.
    Listener(Listener),
    /// The socket has, or had, a connection.
    Stream(Stream),
}

/// A listening socket.
#[derive(Debug)]
pub(super) struct Listener {
    pub(super) tcp: TcpListener,
    pub(super) backlog: i32,
    /// Accepted connections that poll(2) has taken out of the queue.
    pub(super) found: VecDeque<TcpStream>,
}

impl Listener {
    /// Takes the connection that has waited longest; `None` if none waits.
    pub(super) fn next(&mut self) -> Option<TcpStream> {
        self.found.pop_front().or_else(|| self.tcp.accept().ok().map(|(stream, _)| stream))
    }

    /// Returns `true` if a connection waits.
    pub(super) fn is_ready(&mut self) -> bool {
        let next = self.next();
        self.found.extend(next);
        !self.found.is_empty()
    }
}

/// A connection, and the state that its application has seen.
#[derive(Debug)]
pub(super) struct Stream {
    pub(super) tcp: TcpStream,
    /// `true` if the connection has ever been open.
    was_open: Cell<bool>,
    /// `true` if the error was reported to the application, which Linux does once.
    is_error_told: bool,
    /// `true` if the application has shut down reading; the next field is for writing.
    pub(super) is_read_shut: bool,
    pub(super) is_write_shut: bool,
}

impl Stream {
    /// Makes a connection whose calls never block by themselves.
    pub(super) fn new(tcp: TcpStream) -> io::Result<Self> {
        tcp.set_nonblocking(true)?;
        Ok(Self {
            tcp,
            was_open: Cell::new(false),
            is_error_told: false,
            is_read_shut: false,
            is_write_shut: false,
        })
    }

    /// Returns `true` if the connection is, or was, open.
    pub(super) fn was_open(&self) -> bool {
        let is_open = || self.tcp.is_connected().is_ok_and(|is_open| is_open);
        self.was_open.set(self.was_open.get() || is_open());
        self.was_open.get()
    }

    /// Returns the reason why the connection has ended; `None` if it has not.
    pub(super) fn end(&self) -> Option<Errno> {
        self.tcp.is_connected().err().map(|error| errno(&error))
    }

    /// Returns the error of a failed connection, once; otherwise `None`.
    pub(super) fn take_error(&mut self) -> Option<Errno> {
        let failure = self.end().filter(|error| *error != Errno::ENOTCONN && !self.is_error_told);
        self.is_error_told |= failure.is_some();
        failure
    }

    /// Returns `true` if the connection has failed and the error was not reported yet.
    pub(super) fn has_error(&self) -> bool {
        !self.is_error_told && self.end().is_some_and(|error| error != Errno::ENOTCONN)
    }
}

/// Socket options that were set. An accepted connection inherits those of its listener.
#[derive(Clone, Debug)]
pub(super) struct Options {
    pub(super) is_nonblocking: bool,
    pub(super) reuses_address: bool,
    /// SO_SNDBUF as Linux returns it: twice the requested size; `None` before it is set.
    pub(super) send_limit: Option<u32>,
    /// TCP_INQ: each read reports the number of unread bytes.
    pub(super) says_rest: bool,
    /// SO_RCVBUF as Linux returns it, of which half is the window; `None` before it is set.
    pub(super) receive_limit: Option<u32>,
    /// TCP_MAXSEG; `None` before it is set.
    pub(super) segment_bytes: Option<u16>,
    pub(super) is_nagle_off: bool,
    pub(super) user_timeout: Option<Duration>,
    pub(super) is_kept_alive: bool,
    pub(super) keep_alive: KeepAlive,
    pub(super) congestion: Option<Algorithm>,
    /// SO_LINGER with zero seconds: closing resets the connection.
    pub(super) resets_on_close: bool,
}

impl Options {
    pub(super) fn new(settings: &Settings) -> Self {
        Self {
            is_nonblocking: false,
            reuses_address: false,
            send_limit: None,
            says_rest: false,
            receive_limit: None,
            segment_bytes: None,
            is_nagle_off: false,
            user_timeout: None,
            is_kept_alive: false,
            keep_alive: settings.keep_alive,
            congestion: None,
            resets_on_close: false,
        }
    }

    /// Returns the settings of a host for this socket. With `asks_for_ecn` its connections request ECN if
    /// configured; otherwise they only accept it.
    pub(super) fn settings(&self, settings: &Settings, asks_for_ecn: bool) -> Settings {
        let mut settings = settings.clone();
        let config: &mut Config = &mut settings.config;
        config.maximum_segment_size = self.segment_bytes.unwrap_or(u16::MAX);
        config.nagle &= !self.is_nagle_off;
        config.keep_alive = self.is_kept_alive.then_some(self.keep_alive);
        config.ecn = if asks_for_ecn { config.ecn } else { settings.accepts_ecn };
        if let Some(limit) = self.receive_limit {
            config.receive_buffer_bytes = limit / 2;
        }
        if let Some(limit) = self.send_limit {
            config.send_buffer_bytes = limit;
        }
        if self.receive_limit.is_some() || self.send_limit.is_some() {
            config.largest_buffers = None;
        }
        if let Some(timeout) = self.user_timeout {
            config.user_timeout = timeout;
            config.handshake_timeout = timeout;
        }
        config.congestion = self.congestion.unwrap_or(config.congestion);
        settings
    }
}
