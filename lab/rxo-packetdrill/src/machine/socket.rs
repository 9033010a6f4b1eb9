//! A socket: the application's descriptor, and its options.

use std::collections::VecDeque;
use std::net::SocketAddr;

use rxo_frame::Duration;
use rxo_tcp::{Algorithm, Config, KeepAlive};

use super::Settings;

/// One descriptor.
#[derive(Clone, Debug)]
pub(super) struct Socket {
    /// Whether its family is IPv6.
    pub(super) is_v6: bool,
    pub(super) kind: Kind,
    pub(super) options: Options,
}

/// The state of a socket.
#[derive(Clone, Debug)]
pub(super) enum Kind {
    /// Created, perhaps bound.
    Fresh {
        /// The bound address.
        local: Option<SocketAddr>,
    },
    /// Listening.
    Listener(Listener),
    /// Has, or had, the connection with this number.
    Stream(u32),
}

/// A listening socket.
#[derive(Clone, Debug)]
pub(super) struct Listener {
    pub(super) local: SocketAddr,
    pub(super) backlog: usize,
    /// Open connections that are not accepted yet.
    pub(super) ready: VecDeque<u32>,
    /// Events that edge-triggered waiters have not been notified of.
    pub(super) signals: i16,
}

impl Listener {
    /// Whether a segment to `local` may be for this listener.
    pub(super) fn accepts(&self, local: SocketAddr) -> bool {
        let is_here = self.local.ip().is_unspecified() || self.local.ip() == local.ip();
        is_here && self.local.port() == local.port()
    }
}

/// The options that were set. An accepted connection inherits those of its listener.
#[derive(Clone, Debug)]
pub(super) struct Options {
    pub(super) is_nonblocking: bool,
    pub(super) reuses_address: bool,
    /// SO_SNDBUF as Linux returns it: twice the requested size; `None` before it is set.
    pub(super) send_limit: Option<u32>,
    /// TCP_NOTSENT_LOWAT; 0 for the host's setting.
    pub(super) unsent_limit: u32,
    /// TCP_INQ: each read reports the number of unread bytes.
    pub(super) says_rest: bool,
    /// SO_RCVBUF as Linux returns it. Half of it is the window.
    pub(super) receive_limit: Option<u32>,
    /// TCP_MAXSEG.
    pub(super) segment_bytes: Option<u16>,
    pub(super) is_nagle_off: bool,
    pub(super) is_corked: bool,
    pub(super) user_timeout: Option<Duration>,
    pub(super) is_kept_alive: bool,
    pub(super) keep_alive: KeepAlive,
    pub(super) congestion: Option<Algorithm>,
    /// SO_LINGER of zero: closing resets the connection.
    pub(super) resets_on_close: bool,
}

impl Options {
    pub(super) fn new(settings: &Settings) -> Self {
        Self {
            is_nonblocking: false,
            reuses_address: false,
            send_limit: None,
            unsent_limit: 0,
            says_rest: false,
            receive_limit: None,
            segment_bytes: None,
            is_nagle_off: false,
            is_corked: false,
            user_timeout: None,
            is_kept_alive: false,
            keep_alive: settings.keep_alive,
            congestion: None,
            resets_on_close: false,
        }
    }

    /// The configuration of a connection that begins now.
    pub(super) fn config(&self, settings: &Settings, is_v4: bool) -> Config {
        let mut config = settings.config.clone();
        let fits = settings.segment_bytes(is_v4);
        config.maximum_segment_size = self.segment_bytes.map_or(fits, |bytes| bytes.min(fits));
        config.nagle &= !self.is_nagle_off;
        config.keep_alive = self.is_kept_alive.then_some(self.keep_alive);
        if let Some(limit) = self.receive_limit {
            config.receive_buffer_bytes = limit / 2;
        }
        if let Some(timeout) = self.user_timeout {
            config.user_timeout = timeout;
            config.handshake_timeout = timeout;
        }
        config.congestion = self.congestion.unwrap_or(config.congestion);
        config
    }
}
