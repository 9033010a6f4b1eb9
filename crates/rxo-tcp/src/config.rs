//! What may be chosen for a connection.

use core::fmt;

use rxo_frame::Duration;

/// Settings of a connection. All memory it will ever have follows from them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Bytes of unacknowledged and unsent data that are kept. 1 to 2³⁰ - 1.
    pub send_buffer_bytes: u32,
    /// Bytes that may arrive and wait for the application: the largest window. 1 to 2³⁰ - 1.
    pub receive_buffer_bytes: u32,
    /// Pieces that arrived text is kept in: each segment's text stays in its buffer. At least 2. Two are
    /// for what is copied because there are no more: everything inside an offered window is kept, however
    /// the peer cuts it. Out of order at most half as many gaps.
    pub receive_pieces: usize,
    /// Ranges of sequence numbers whose fate is remembered: one for each send in flight, more when
    /// SACK cuts them. At least 32.
    pub sent_ranges: usize,
    /// The largest segment that fits the route, headers of IP and TCP left out: 1460 for IPv4 over
    /// Ethernet. Announced to the peer, and not exceeded. At least 64.
    pub maximum_segment_size: u16,
    /// Payload bytes that may leave as one send for a device to cut into segments; below two
    /// segments, each leaves alone.
    pub large_send_bytes: u32,
    /// Whether small segments wait while others are unacknowledged (RFC 9293, section 3.7.4).
    pub nagle: bool,
    /// Which acknowledgements an aggregate causes.
    pub acks: AckPolicy,
    /// How many segments with text are acknowledged at once when a connection is new: a peer in slow
    /// start grows its window by acknowledgements. 0 is none.
    pub quick_acks: u16,
    /// How long an acknowledgement may be held back. Below 500 ms (RFC 9293, section 3.8.6.3).
    pub delayed_ack: Duration,
    /// Whether timestamps are offered and taken (RFC 7323).
    pub timestamps: bool,
    /// Whether the window scale option is offered and taken (RFC 7323).
    pub window_scaling: bool,
    /// Whether SACK is offered and taken (RFC 2018).
    pub sack: bool,
    /// Whether ECN is offered and taken (RFC 3168).
    pub ecn: bool,
    /// The congestion control.
    pub congestion: Algorithm,
    /// Whether slow start begins again after a pause longer than the retransmission timeout (RFC 5681,
    /// section 4.1).
    pub restart_after_idle: bool,
    /// The least retransmission timeout. RFC 6298 says 1 s; 200 ms is what Linux does, and what
    /// peers that delay acknowledgements by at most 40 ms bear well.
    pub min_rto: Duration,
    /// How long data may stay unacknowledged before the connection is given up: R2, at least 100 s
    /// by RFC 9293, section 3.8.3.
    pub user_timeout: Duration,
    /// The same for a SYN; at least 3 minutes by the same section.
    pub handshake_timeout: Duration,
    /// How long TIME-WAIT lasts: two maximum segment lifetimes.
    pub time_wait: Duration,
    /// How long the peer's FIN is waited for after the application has dropped its socket.
    pub fin_wait_2: Duration,
    /// How long a connection may last, whatever the peer answers, after the application has dropped its
    /// socket: what is not delivered by then is not, and the peer is reset. TIME-WAIT comes after it.
    pub orphan_timeout: Duration,
    /// When and how often an idle peer is asked whether it is there; `None` is never.
    pub keep_alive: Option<KeepAlive>,
}

impl Default for Config {
    /// What suits a server on Ethernet; every feature on, keep-alive off.
    fn default() -> Self {
        Self {
            send_buffer_bytes: 256 * 1024,
            receive_buffer_bytes: 256 * 1024,
            receive_pieces: 512,
            sent_ranges: 512,
            maximum_segment_size: 1460,
            large_send_bytes: 64_000,
            nagle: true,
            acks: AckPolicy::EverySecondSegment,
            quick_acks: 0,
            delayed_ack: Duration::from_millis(40),
            timestamps: true,
            window_scaling: true,
            sack: true,
            ecn: true,
            congestion: Algorithm::Cubic,
            restart_after_idle: true,
            min_rto: Duration::from_millis(200),
            user_timeout: Duration::from_secs(300),
            handshake_timeout: Duration::from_secs(180),
            time_wait: Duration::from_secs(60),
            fin_wait_2: Duration::from_secs(60),
            orphan_timeout: Duration::from_secs(120),
            keep_alive: None,
        }
    }
}

/// Which acknowledgements an aggregate causes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckPolicy {
    /// Those that its segments would have caused one by one (Menon 2008, section 3.4).
    EverySecondSegment,
    /// One, for all of it: fewer, and a sender that counts them grows its window more slowly.
    OneForAnAggregate,
}

/// A congestion control.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// RFC 9438.
    Cubic,
    /// RFC 5681.
    Reno,
}

/// How an idle peer is asked whether it is there (RFC 9293, section 3.8.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeepAlive {
    /// Idle time before the first question; two hours by default there. At least 1 ms.
    pub idle: Duration,
    /// Time between questions. At least 1 ms.
    pub interval: Duration,
    /// How many may go unanswered before the connection is given up. One is not enough to tell
    /// that a peer is gone; at least 2.
    pub probes: u8,
}

impl Default for KeepAlive {
    fn default() -> Self {
        let (idle, interval) = (Duration::from_secs(7200), Duration::from_secs(75));
        Self { idle, interval, probes: 9 }
    }
}

/// A setting that cannot be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// The field.
    pub option: &'static str,
    /// What it was.
    pub value: u64,
    /// What would be taken.
    pub least: u64,
    /// The same, the largest.
    pub most: u64,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { option, value, least, most } = self;
        write!(f, "{option} is {value}; choose {least} to {most}")
    }
}

impl core::error::Error for ConfigError {}

impl Config {
    /// Whether all of it can be.
    ///
    /// # Errors
    /// The first setting that cannot.
    pub fn check(&self) -> Result<(), ConfigError> {
        let millis = |duration: Duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        let KeepAlive { idle, interval, probes } = self.keep_alive.unwrap_or_default();
        let rows = [
            ("send_buffer_bytes", self.send_buffer_bytes.into(), 1, MAX_WINDOW_BYTES),
            ("receive_buffer_bytes", self.receive_buffer_bytes.into(), 1, MAX_WINDOW_BYTES),
            ("receive_pieces", self.receive_pieces as u64, 2, MAX_PLACES),
            ("sent_ranges", self.sent_ranges as u64, 32, MAX_PLACES),
            ("maximum_segment_size", self.maximum_segment_size.into(), 64, u16::MAX.into()),
            ("large_send_bytes", self.large_send_bytes.into(), 0, MAX_LARGE_SEND_BYTES),
            ("delayed_ack in ms", millis(self.delayed_ack), 0, 499),
            ("min_rto in ms", millis(self.min_rto), 1, 60_000),
            ("keep_alive.idle in ms", millis(idle), 1, MAX_IDLE_MS),
            ("keep_alive.interval in ms", millis(interval), 1, MAX_IDLE_MS),
            ("keep_alive.probes", probes.into(), 2, u8::MAX.into()),
        ];
        for (option, value, least, most) in rows {
            if !(least..=most).contains(&value) {
                return Err(ConfigError { option, value, least, most });
            }
        }
        Ok(())
    }
}

/// The largest window that can be said (RFC 7323, section 2.3).
const MAX_WINDOW_BYTES: u64 = (1 << 30) - 1;
const MAX_PLACES: u64 = 1 << 20;
/// A year.
const MAX_IDLE_MS: u64 = 365 * 24 * 3600 * 1000;
/// An IP packet less the longest IPv6 and TCP headers without extensions.
const MAX_LARGE_SEND_BYTES: u64 = 65_535 - 40 - 60;

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn the_default_can_be_and_mistakes_are_named() {
        assert_eq!(Config::default().check(), Ok(()));
        let wrong = Config { receive_pieces: 1, ..Config::default() };
        let said = wrong.check().unwrap_err().to_string();
        assert_eq!(said, "receive_pieces is 1; choose 2 to 1048576");
        // RFC 9293, section 3.8.6.3 (MUST-40): less than half a second.
        let wrong = Config { delayed_ack: Duration::from_millis(500), ..Config::default() };
        assert!(wrong.check().is_err());
        // A question without a pause would be asked for ever.
        for wrong in [
            KeepAlive { idle: Duration::ZERO, ..KeepAlive::default() },
            KeepAlive { interval: Duration::from_micros(999), ..KeepAlive::default() },
        ] {
            let wrong = Config { keep_alive: Some(wrong), ..Config::default() };
            let said = wrong.check().unwrap_err().to_string();
            assert!(said.starts_with("keep_alive.i") && said.contains("is 0; choose 1"), "{said}");
        }
    }
}
