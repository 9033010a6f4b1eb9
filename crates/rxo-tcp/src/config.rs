//! The settings of a connection.

use core::fmt;

use rxo_frame::Duration;

use crate::arrives::least_receive_bytes;

/// Settings of a connection. They determine all memory that it will ever have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The size of the send buffer, for unacknowledged and unsent data, in bytes. 1 to 2³⁰ - 1.
    pub send_buffer_bytes: u32,
    /// The size of the receive buffer in bytes, which is the largest window. 1 to 2³⁰ - 1, and two units of the
    /// window scale at least, which is chosen for the largest: 256 bytes if that is 6 MiB.
    pub receive_buffer_bytes: u32,
    /// How far the buffers may grow, each 1 to 2³⁰ - 1 bytes; less than the sizes above means these. `None` if
    /// they never change. They grow only by what the owner grants: see [`crate::Connection::wants_buffers`]. The
    /// window scale is chosen for the largest.
    pub largest_buffers: Option<Buffers>,
    /// How many segments of received text stay in the buffers that they came in: half of them out of order, all but two
    /// in order. At least 2. Text beyond is copied into a ring as large as the window, so small segments do not use
    /// up the buffers. There may be half as many gaps between out-of-order text, or one for each 512 bytes of a
    /// window that has grown; a segment that would make one more is dropped, and the peer sends it again. It is the only
    /// text inside the window that is not kept.
    pub receive_pieces: usize,
    /// How many ranges of sent sequence numbers are tracked: one for each send in flight, more when SACK
    /// splits them. At least 32.
    pub sent_ranges: usize,
    /// The largest segment that fits the route, headers of IP and TCP left out: 1460 for IPv4 over
    /// Ethernet. Announced to the peer, and not exceeded. At least 64.
    pub maximum_segment_size: u16,
    /// The payload of the largest GSO frame to send, in bytes. Below two segments, each segment is sent
    /// alone.
    pub large_send_bytes: u32,
    /// Whether small segments wait while others are unacknowledged (RFC 9293, section 3.7.4).
    pub nagle: bool,
    /// Which acknowledgements text in order causes.
    pub acks: AckPolicy,
    /// How many of the first segments with text are acknowledged at once: a peer in slow start grows its
    /// window by acknowledgements. 0 disables this.
    pub quick_acks: u16,
    /// How long an acknowledgement may be delayed. Below 500 ms (RFC 9293, section 3.8.6.3).
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
    /// How much may leave before the first acknowledgement.
    pub initial_window: InitialWindow,
    /// Whether slow start begins again after an idle time longer than the retransmission timeout (RFC 5681,
    /// section 4.1). Otherwise the window stays for five minutes, and what leaves after such a time is paced
    /// (RFC 7661); on a path too short for pacing slow start begins again all the same.
    pub restart_after_idle: bool,
    /// The least retransmission timeout. RFC 6298 says 1 s; Linux uses 200 ms, which suits peers that
    /// delay acknowledgements by at most 40 ms.
    pub min_rto: Duration,
    /// How long data may stay unacknowledged before the connection fails: R2 of RFC 9293, section 3.8.3,
    /// which asks for at least 100 s.
    pub user_timeout: Duration,
    /// How long a SYN may stay unacknowledged before the connection fails. RFC 9293, section 3.8.3 asks for
    /// at least 3 minutes.
    pub handshake_timeout: Duration,
    /// How long the SYN-ACK of a passive open may stay unacknowledged before the connection fails, if `handshake_timeout` is
    /// not less. Linux repeats it five times, which takes 63 s: who asks is responsible for asking again.
    pub half_open_timeout: Duration,
    /// How long TIME-WAIT lasts: two maximum segment lifetimes.
    pub time_wait: Duration,
    /// How long a connection without an application waits for the peer's FIN.
    pub fin_wait_2: Duration,
    /// How long a connection without an application waits for its peer. One that takes 64 KiB in this time is waited
    /// for as long again, and so on until it has everything. Any other is reset, whatever it answers, and the data
    /// that it has not taken is lost. TIME-WAIT comes after this time.
    pub orphan_timeout: Duration,
    /// When and how often an idle peer is probed; `None` disables keep-alive.
    pub keep_alive: Option<KeepAlive>,
}

impl Default for Config {
    /// Settings for a server on Ethernet: every feature on, keep-alive off.
    fn default() -> Self {
        Self {
            send_buffer_bytes: 256 * 1024,
            receive_buffer_bytes: 256 * 1024,
            largest_buffers: None,
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
            initial_window: InitialWindow::Rfc6928,
            restart_after_idle: false,
            min_rto: Duration::from_millis(200),
            user_timeout: Duration::from_secs(300),
            handshake_timeout: Duration::from_secs(180),
            half_open_timeout: Duration::from_secs(63),
            time_wait: Duration::from_secs(60),
            fin_wait_2: Duration::from_secs(60),
            orphan_timeout: Duration::from_secs(120),
            keep_alive: None,
        }
    }
}

/// The sizes of a connection's buffers, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Buffers {
    /// The send buffer, for unacknowledged and unsent data.
    pub send_bytes: u32,
    /// The receive buffer, which bounds the window.
    pub receive_bytes: u32,
}

impl Buffers {
    /// The larger size of each.
    #[must_use]
    pub fn larger(self, other: Self) -> Self {
        Self {
            send_bytes: self.send_bytes.max(other.send_bytes),
            receive_bytes: self.receive_bytes.max(other.receive_bytes),
        }
    }
}

/// Which acknowledgements text causes. Text out of order causes one for each segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckPolicy {
    /// Those that its segments would have caused one by one (Menon and Zwaenepoel 2008, section 3.4).
    EverySecondSegment,
    /// One for all that has arrived since the last one was sent, as Linux sends one for an aggregate. A sender
    /// that counts acknowledgements, and not bytes, grows its window more slowly. Of text out of order the first
    /// three of a number leave, then those whose SACK blocks the next one does not have. That a gap is filled is told by
    /// one of its own, and a whole segment that nothing follows is acknowledged after two round trips: one may be lost.
    OneForATurn,
    /// One for so many full segments, for a receiver among many that acknowledge the same segments: with different
    /// offsets they do so at different times. Text out of order causes one for all that has arrived at once, not one
    /// for each segment; the peer must use SACK and not count duplicates.
    Spread {
        /// How many; 0 counts as 1.
        segments: u16,
        /// After how many segments less the first one is due; below `segments`.
        offset: u16,
    },
}

/// A congestion control.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// RFC 9438.
    Cubic,
    /// RFC 5681.
    Reno,
    /// BBR, version 1 (draft-cardwell-iccrg-bbr-congestion-control-00): sends at the rate at which data arrives, whatever is
    /// lost, and fills no queue. ECN is not used, because it does not answer marks. It has no rule of version 3 and no
    /// allowance for ACKs that come in batches: beside Linux's BBR it gets less than an equal share, a quarter to a half.
    Bbr,
}

/// The congestion window of a new connection, and the least to which idle time lowers one. A SYN that had to be repeated leaves
/// one segment (RFC 5681, section 3.1), and send buffer and peer may allow less.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum InitialWindow {
    /// Ten segments, but at most 14,600 bytes or two segments (RFC 6928, section 2).
    #[default]
    Rfc6928,
    /// So many segments, whatever their size: 1 to 64. Linux begins with ten, so with 8,948 bytes each a path of long
    /// round trips is filled two round trips earlier than RFC 6928 lets it. What is more than RFC 6928 allows does not leave at
    /// once: it is paced over half of the round trip that the handshake has shown, unless that is below 4 ms.
    Segments(u8),
}

/// How an idle peer is probed (RFC 9293, section 3.8.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeepAlive {
    /// Idle time before the first probe; RFC 9293 says two hours by default. At least 1 ms.
    pub idle: Duration,
    /// Time between probes. At least 1 ms.
    pub interval: Duration,
    /// How many probes may go unanswered before the connection fails. At least 2: one may be lost.
    pub probes: u8,
}

impl Default for KeepAlive {
    fn default() -> Self {
        let (idle, interval) = (Duration::from_secs(7200), Duration::from_secs(75));
        Self { idle, interval, probes: 9 }
    }
}

/// An invalid setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// The field.
    pub option: &'static str,
    /// Its value.
    pub value: u64,
    /// The least valid value.
    pub least: u64,
    /// The largest valid value.
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
    /// The sizes of the buffers of a new connection.
    #[must_use]
    pub const fn initial_buffers(&self) -> Buffers {
        Buffers { send_bytes: self.send_buffer_bytes, receive_bytes: self.receive_buffer_bytes }
    }

    /// Whether ECN is offered and taken. BBR does not answer marks, so it must not ask for them.
    pub(crate) fn uses_ecn(&self) -> bool {
        self.ecn && self.congestion != Algorithm::Bbr
    }

    /// The sizes that the buffers never exceed.
    #[must_use]
    pub fn largest_buffers(&self) -> Buffers {
        let initial = self.initial_buffers();
        self.largest_buffers.map_or(initial, |largest| largest.larger(initial))
    }

    /// Checks all settings.
    ///
    /// # Errors
    /// The first invalid setting.
    pub fn check(&self) -> Result<(), ConfigError> {
        let millis = |duration: Duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        let KeepAlive { idle, interval, probes } = self.keep_alive.unwrap_or_default();
        let largest = self.largest_buffers.unwrap_or(self.initial_buffers());
        let least_received = least_receive_bytes(self).into();
        let initial_segments = match self.initial_window {
            InitialWindow::Rfc6928 => 1,
            InitialWindow::Segments(segments) => segments.into(),
        };
        let rows = [
            ("send_buffer_bytes", self.send_buffer_bytes.into(), 1, MAX_WINDOW_BYTES),
            (
                "receive_buffer_bytes",
                self.receive_buffer_bytes.into(),
                least_received,
                MAX_WINDOW_BYTES,
            ),
            ("largest_buffers.send_bytes", largest.send_bytes.into(), 1, MAX_WINDOW_BYTES),
            ("largest_buffers.receive_bytes", largest.receive_bytes.into(), 1, MAX_WINDOW_BYTES),
            ("receive_pieces", self.receive_pieces as u64, 2, MAX_PLACES),
            ("sent_ranges", self.sent_ranges as u64, 32, MAX_PLACES),
            ("maximum_segment_size", self.maximum_segment_size.into(), 64, u16::MAX.into()),
            ("large_send_bytes", self.large_send_bytes.into(), 0, MAX_LARGE_SEND_BYTES),
            ("initial_window in segments", initial_segments, 1, MOST_INITIAL_SEGMENTS),
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

/// The largest window that can be offered (RFC 7323, section 2.3).
const MAX_WINDOW_BYTES: u64 = (1 << 30) - 1;
const MAX_PLACES: u64 = 1 << 20;
/// Half a megabyte of the largest Ethernet frames; what begins with more gets no answer before it has filled a queue.
const MOST_INITIAL_SEGMENTS: u64 = 64;
/// A year.
const MAX_IDLE_MS: u64 = 365 * 24 * 3600 * 1000;
/// The longest IP packet without the longest IPv6 and TCP headers, extensions left out.
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
        let none = Buffers { send_bytes: 1 << 20, receive_bytes: 0 };
        let wrong = Config { largest_buffers: Some(none), ..Config::default() };
        let said = wrong.check().unwrap_err().to_string();
        assert_eq!(said, "largest_buffers.receive_bytes is 0; choose 1 to 1073741823");
        // Less than two units of the window scale would hardly ever be offered.
        let largest = Some(Buffers { send_bytes: 1 << 20, receive_bytes: 6 << 20 });
        let tiny =
            Config { receive_buffer_bytes: 255, largest_buffers: largest, ..Config::default() };
        let said = tiny.check().unwrap_err().to_string();
        assert_eq!(said, "receive_buffer_bytes is 255; choose 256 to 1073741823");
        assert_eq!(Config { largest_buffers: None, ..tiny }.check(), Ok(()));
        // RFC 9293, section 3.8.6.3 (MUST-40): less than half a second.
        let wrong = Config { delayed_ack: Duration::from_millis(500), ..Config::default() };
        assert!(wrong.check().is_err());
        // Probes without a pause would never end.
        for wrong in [
            KeepAlive { idle: Duration::ZERO, ..KeepAlive::default() },
            KeepAlive { interval: Duration::from_micros(999), ..KeepAlive::default() },
        ] {
            let wrong = Config { keep_alive: Some(wrong), ..Config::default() };
            let said = wrong.check().unwrap_err().to_string();
            assert!(said.starts_with("keep_alive.i") && said.contains("is 0; choose 1"), "{said}");
        }
    }

    /// Whoever raises only the size at the start need not know of the other setting.
    #[test]
    fn the_largest_buffers_are_no_smaller_than_the_first() {
        let largest = Buffers { send_bytes: 4 << 20, receive_bytes: 6 << 20 };
        let config = Config {
            send_buffer_bytes: 8 << 20,
            largest_buffers: Some(largest),
            ..Config::default()
        };
        assert_eq!(config.check(), Ok(()));
        assert_eq!(config.largest_buffers(), Buffers { send_bytes: 8 << 20, ..largest });
    }

    #[test]
    fn an_initial_window_has_1_to_64_segments() {
        let check = |segments| {
            let initial_window = InitialWindow::Segments(segments);
            Config { initial_window, ..Config::default() }.check()
        };
        assert_eq!([check(1), check(64)], [Ok(()); 2]);
        let error = check(0).unwrap_err().to_string();
        assert_eq!(error, "initial_window in segments is 0; choose 1 to 64");
        assert!(check(65).is_err());
    }
}
