//! A socket: what an application holds, and what it has set.

use std::collections::VecDeque;
use std::net::SocketAddr;

use rxo_frame::Duration;
use rxo_tcp::{Algorithm, Config, KeepAlive};

use super::Settings;

/// One descriptor.
#[derive(Clone, Debug)]
pub(super) struct Socket {
    /// Its family is IPv6.
    pub(super) is_v6: bool,
    pub(super) kind: Kind,
    pub(super) options: Options,
}

/// What it has become.
#[derive(Clone, Debug)]
pub(super) enum Kind {
    /// Made, perhaps bound.
    Fresh {
        /// Where.
        local: Option<SocketAddr>,
    },
    /// It listens.
    Listener(Listener),
    /// It has, or had, a connection, by its number.
    Stream(u32),
}

/// A listening socket.
#[derive(Clone, Debug)]
pub(super) struct Listener {
    pub(super) local: SocketAddr,
    pub(super) backlog: usize,
    /// Connections that are open and not accepted.
    pub(super) ready: VecDeque<u32>,
    /// What happened that an edge-triggered waiter has not been told.
    pub(super) signals: i16,
}

impl Listener {
    /// Whether a segment to `local` may be for it.
    pub(super) fn hears(&self, local: SocketAddr) -> bool {
        let is_here = self.local.ip().is_unspecified() || self.local.ip() == local.ip();
        is_here && self.local.port() == local.port()
    }
}

/// What was set; a connection that is accepted has what its listener had.
#[derive(Clone, Debug)]
pub(super) struct Options {
    pub(super) is_nonblocking: bool,
    pub(super) reuses_address: bool,
    /// SO_SNDBUF as Linux gives it back: twice what was asked for; `None` before it is set.
    pub(super) send_limit: Option<u32>,
    /// TCP_NOTSENT_LOWAT; 0 leaves it to the host's setting.
    pub(super) unsent_limit: u32,
    /// TCP_INQ: each read says how much is left.
    pub(super) says_rest: bool,
    /// SO_RCVBUF in the same way; half of it is the window.
    pub(super) receive_limit: Option<u32>,
    /// TCP_MAXSEG.
    pub(super) segment_bytes: Option<u16>,
    pub(super) is_nagle_off: bool,
    pub(super) is_corked: bool,
    pub(super) user_timeout: Option<Duration>,
    pub(super) is_kept_alive: bool,
    pub(super) keep_alive: KeepAlive,
    pub(super) congestion: Option<Algorithm>,
    /// SO_LINGER of zero: closing resets.
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

    /// The settings of a connection that begins now.
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
