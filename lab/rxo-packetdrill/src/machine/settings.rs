//! The settings of a host, and their text form: `name=value,name=value`.

use std::net::{Ipv4Addr, Ipv6Addr};

use rxo_frame::Duration;
use rxo_tcp::{AckPolicy, Algorithm, Buffers, Config, InitialWindow, KeepAlive};

/// The settings of a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The configuration of every connection. The segment size is limited by `mtu`.
    pub config: Config,
    /// MTU of the link, in bytes.
    pub mtu: u16,
    /// `true` if a full listener answers with SYN cookies.
    pub syn_cookies: bool,
    /// Keep-alive of sockets that set only SO_KEEPALIVE.
    pub keep_alive: KeepAlive,
    /// `true` if ECN is accepted from a peer that requests it, even if it is not requested here.
    pub accepts_ecn: bool,
    /// The IPv4 address of a socket that connects without one.
    pub local_v4: Ipv4Addr,
    /// The IPv6 address of a socket that connects without one.
    pub local_v6: Ipv6Addr,
}

impl Default for Settings {
    /// Returns settings for Ethernet that match the public packetdrill scripts' expectations of an
    /// unconfigured host: buffers with a window scale of 8, ECN for peers that request it, and immediate ACKs
    /// of the first segments.
    fn default() -> Self {
        let receive_bytes = 15 << 20;
        let config = Config {
            send_buffer_bytes: 512 << 10,
            receive_buffer_bytes: receive_bytes,
            largest_buffers: Some(Buffers { send_bytes: 4 << 20, receive_bytes }),
            ecn: false,
            quick_acks: 16,
            restart_after_idle: true,
            ..Config::default()
        };
        Self {
            config,
            mtu: 1500,
            syn_cookies: true,
            keep_alive: KeepAlive::default(),
            accepts_ecn: true,
            local_v4: Ipv4Addr::new(192, 168, 0, 1),
            local_v6: Ipv6Addr::new(0xfd3d, 0xfa7b, 0xd17d, 0, 0, 0, 0, 1),
        }
    }
}

/// An invalid flag, with the accepted values.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("flag {flag:?} is invalid; {accepted}")]
pub struct FlagError {
    flag: String,
    accepted: String,
}

impl Settings {
    /// Applies `flags`, which are separated by commas, to the default settings.
    ///
    /// # Errors
    /// The first flag that is unknown or has an invalid value.
    pub fn of_flags(flags: &str) -> Result<Self, FlagError> {
        let mut settings = Self::default();
        for flag in flags.split(',').map(str::trim).filter(|flag| !flag.is_empty()) {
            let (name, value) = flag.split_once('=').unwrap_or((flag, "on"));
            let refused =
                |accepted: &str| FlagError { flag: flag.to_owned(), accepted: accepted.to_owned() };
            settings.set(name, value).ok_or_else(|| refused(ACCEPTED))?;
            settings.config.check().map_err(|error| refused(&error.to_string()))?;
        }
        Ok(settings)
    }

    fn set(&mut self, name: &str, value: &str) -> Option<()> {
        let config = &mut self.config;
        match name {
            "ecn" if value == "accept" => (config.ecn, self.accepts_ecn) = (false, true),
            "ecn" => (config.ecn, self.accepts_ecn) = (switch(value)?, switch(value)?),
            "sack" => config.sack = switch(value)?,
            "timestamps" => config.timestamps = switch(value)?,
            "wscale" => config.window_scaling = switch(value)?,
            "nagle" => config.nagle = switch(value)?,
            "congestion" => config.congestion = algorithm(value)?,
            "initial_window" => config.initial_window = initial_window(value)?,
            "acks" => config.acks = acks(value)?,
            "mtu" => self.mtu = value.parse().ok().filter(|mtu| *mtu >= LEAST_MTU)?,
            "rcvbuf" => {
                config.receive_buffer_bytes = value.parse().ok()?;
                config.largest_buffers = None;
            }
            "sndbuf" => {
                config.send_buffer_bytes = value.parse().ok()?;
                config.largest_buffers = None;
            }
            "large_send" => config.large_send_bytes = value.parse().ok()?,
            "min_rto" => config.min_rto = millis(value)?,
            "quick_acks" => config.quick_acks = value.parse().ok()?,
            "delayed_ack" => config.delayed_ack = millis(value)?,
            "user_timeout" => config.user_timeout = millis(value)?,
            "handshake_timeout" => config.handshake_timeout = millis(value)?,
            "time_wait" => config.time_wait = millis(value)?,
            _ => return None,
        }
        Some(())
    }
}

/// Returns the congestion control `name`; `None` if it is unknown.
pub(super) fn algorithm(name: &str) -> Option<Algorithm> {
    match name {
        "cubic" => Some(Algorithm::Cubic),
        "reno" => Some(Algorithm::Reno),
        "bbr" => Some(Algorithm::Bbr),
        _ => None,
    }
}

fn initial_window(value: &str) -> Option<InitialWindow> {
    match value {
        "rfc6928" => Some(InitialWindow::Rfc6928),
        _ => value.parse().ok().map(InitialWindow::Segments),
    }
}

fn acks(value: &str) -> Option<AckPolicy> {
    match value {
        "each" => Some(AckPolicy::EverySecondSegment),
        "one" => Some(AckPolicy::OneForATurn),
        _ => None,
    }
}

fn switch(value: &str) -> Option<bool> {
    match value {
        "on" | "1" => Some(true),
        "off" | "0" => Some(false),
        _ => None,
    }
}

fn millis(value: &str) -> Option<Duration> {
    value.parse().ok().map(Duration::from_millis)
}

/// Smallest MTU, for headers and a segment of 64 bytes.
const LEAST_MTU: u16 = 128;
const ACCEPTED: &str = "known are ecn (on, off, accept), sack, timestamps, wscale, nagle (on, off), \
     congestion (cubic, reno, bbr), initial_window (rfc6928, segments), acks (each, one), mtu, \
     rcvbuf, sndbuf, large_send (bytes), quick_acks (segments), min_rto, delayed_ack, user_timeout, handshake_timeout, time_wait (ms)";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_read_and_mistakes_named() {
        let settings = Settings::of_flags("ecn, congestion=reno,mtu=1280").unwrap();
        assert!(settings.config.ecn);
        assert_eq!(settings.config.congestion, Algorithm::Reno);
        assert_eq!(settings.mtu, 1280);
        let error = Settings::of_flags("ecn=perhaps").unwrap_err().to_string();
        assert!(error.starts_with("flag \"ecn=perhaps\" is invalid; known are"), "{error}");
        let error = Settings::of_flags("delayed_ack=600").unwrap_err().to_string();
        assert!(error.contains("choose 0 to 499"), "{error}");
    }
}
