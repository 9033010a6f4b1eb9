//! The settings of a connection and their valid ranges.

use rxo_frame::{ConfigError, Duration};

use crate::arrives::least_receive_bytes;

/// The settings of a connection. The settings bound all memory that the connection ever uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The initial size of the send buffer, for unacknowledged and unsent data, in bytes: 1 to 2³⁰ - 1.
    pub send_buffer_bytes: u32,
    /// The initial size of the receive buffer in bytes, which bounds the window: up to 2³⁰ - 1, and at least
    /// two units of the window scale. The scale follows from the largest receive buffer: with 6 MiB, two
    /// units are 256 bytes.
    pub receive_buffer_bytes: u32,
    /// The maximum sizes of the buffers, each 1 to 2³⁰ - 1 bytes; values below the initial sizes are raised to
    /// them. `None` if the buffers never change. The buffers grow only when the owner grants memory: see
    /// [`crate::Connection::wants_buffers`]. The window scale is chosen for the largest receive buffer.
    pub largest_buffers: Option<Buffers>,
    /// Maximum number of received segments whose payload stays in its original buffer, at least 2. Out-of-order
    /// data may use half of these buffers, in-order data all but two. Further payload is copied into a ring as
    /// large as the window, so that small segments do not use up the buffers. This setting also limits the
    /// number of gaps in the received data, to half of its value; a window that has grown permits one gap for
    /// each 512 bytes. A segment that would exceed the limit of gaps is dropped, and the peer retransmits it.
    /// No other data inside the window is dropped.
    pub receive_pieces: usize,
    /// Maximum number of unsent bytes in the send buffer: 1 to 2³⁰ - 1. Bytes that were sent but not
    /// acknowledged do not count. `None` if only the size of the send buffer limits unsent data. Linux calls
    /// this limit `TCP_NOTSENT_LOWAT`.
    pub most_unsent_bytes: Option<u32>,
    /// Maximum number of ranges of sent sequence numbers to track, at least 32: one range for each send in
    /// flight, more when SACK splits ranges.
    pub sent_ranges: usize,
    /// The largest payload of a segment that fits the route, in bytes, without IP and TCP headers: 1460 for IPv4
    /// over Ethernet. At least 64. The value is announced to the peer, and sent segments never exceed it.
    pub maximum_segment_size: u16,
    /// The largest payload of a GSO frame to send, in bytes. If it is less than two segments, every segment
    /// is sent alone.
    pub large_send_bytes: u32,
    /// `true` if small segments wait while data is unacknowledged (Nagle; RFC 9293, section 3.7.4).
    pub nagle: bool,
    /// The policy that decides how many ACKs are sent for data that arrives in order.
    pub acks: AckPolicy,
    /// The number of data segments, from the first of the connection, that are each acknowledged at once,
    /// because a peer in slow start grows its window with each ACK. 0 disables this.
    pub quick_acks: u16,
    /// The longest delay of an ACK, below 500 ms (RFC 9293, section 3.8.6.3).
    pub delayed_ack: Duration,
    /// `true` if timestamps are offered and accepted (RFC 7323).
    pub timestamps: bool,
    /// `true` if the window scale option is offered and accepted (RFC 7323).
    pub window_scaling: bool,
    /// `true` if SACK is offered and accepted (RFC 2018).
    pub sack: bool,
    /// `true` if ECN is offered and accepted (RFC 3168).
    pub ecn: bool,
    /// The congestion control algorithm.
    pub congestion: Algorithm,
    /// The congestion window before the first ACK.
    pub initial_window: InitialWindow,
    /// `true` if slow start begins again after an idle time longer than the retransmission timeout (RFC 5681,
    /// section 4.1). If `false`, the window is kept for five minutes, and the first data after idle time is
    /// paced (RFC 7661). On a path too short for pacing, slow start begins again in both cases.
    pub restart_after_idle: bool,
    /// The smallest retransmission timeout. RFC 6298 says 1 s; Linux uses 200 ms, which suits peers that
    /// delay ACKs by at most 40 ms.
    pub min_rto: Duration,
    /// The retransmission timeout of a SYN or SYN-ACK, and of data before the first round trip is measured.
    /// RFC 6298 says 1 s. Where all peers are near, a smaller value makes a lost segment of the handshake
    /// cost less.
    pub initial_rto: Duration,
    /// The longest time that data may stay unacknowledged before the connection fails: R2 of RFC 9293, section
    /// 3.8.3, which recommends at least 100 s.
    pub user_timeout: Duration,
    /// The longest time that a SYN may stay unacknowledged before the connection fails. RFC 9293, section 3.8.3
    /// requires at least 3 minutes.
    pub handshake_timeout: Duration,
    /// The longest time that the SYN-ACK of a passive open may stay unacknowledged before the connection
    /// fails; `handshake_timeout` applies if it is shorter. Linux sends the SYN-ACK five more times, which
    /// takes 63 s; after that the client must connect again.
    pub half_open_timeout: Duration,
    /// The duration of TIME-WAIT: two maximum segment lifetimes.
    pub time_wait: Duration,
    /// In FIN-WAIT-2, the time limit for the peer's FIN if the application has dropped the connection.
    pub fin_wait_2: Duration,
    /// The time limit within which the peer of an orphan (a connection that its application has dropped) must
    /// acknowledge 64 KiB of the remaining data. Each time the peer does so, the limit starts again. Otherwise
    /// the connection is reset and the unacknowledged data is lost. TIME-WAIT does not count towards the limit.
    pub orphan_timeout: Duration,
    /// The intervals and the number of keep-alive probes; `None` disables keep-alive.
    pub keep_alive: Option<KeepAlive>,
}

impl Default for Config {
    /// Returns settings for a server on Ethernet: every protocol feature is on, keep-alive is off.
    fn default() -> Self {
        Self {
            send_buffer_bytes: 256 * 1024,
            receive_buffer_bytes: 256 * 1024,
            largest_buffers: None,
            receive_pieces: 512,
            most_unsent_bytes: None,
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
            initial_rto: Duration::from_secs(1),
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
    /// The size of the send buffer in bytes, for unacknowledged and unsent data.
    pub send_bytes: u32,
    /// The size of the receive buffer in bytes, which bounds the window.
    pub receive_bytes: u32,
}

impl Buffers {
    /// Returns, for each buffer, the larger of the sizes in `self` and `other`.
    #[must_use]
    pub fn larger(self, other: Self) -> Self {
        Self {
            send_bytes: self.send_bytes.max(other.send_bytes),
            receive_bytes: self.receive_bytes.max(other.receive_bytes),
        }
    }
}

/// The policy that decides how many ACKs are sent for data that arrives in order. Out-of-order data
/// causes one ACK for each segment, except under [`AckPolicy::Spread`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckPolicy {
    /// The receiver sends every ACK that the segments would have caused if each had arrived alone
    /// (Menon and Zwaenepoel 2008, section 3.4).
    EverySecondSegment,
    /// Sends one ACK for everything that has arrived since the last one, as Linux does for an aggregate. A
    /// sender that counts ACKs instead of bytes grows its window more slowly. For data out of order, the first
    /// three duplicates with one ACK number are sent, then only those whose SACK blocks the next one does not
    /// repeat. A filled gap causes an ACK of its own. A full segment that no other segment follows is
    /// acknowledged after two round trips: it may be the tail loss probe of a peer whose only ACK was lost.
    OneForATurn,
    /// Sends one ACK for every `segments` full segments. This policy suits the receivers of a multicast group,
    /// which all acknowledge the same segments: if each has another offset, their ACKs are spread over time.
    /// All out-of-order data that arrives together causes one ACK, not one for each segment; the peer must use
    /// SACK and not count duplicates.
    Spread {
        /// The number of full segments per ACK; 0 counts as 1.
        segments: u16,
        /// Number of segments by which the first ACK comes earlier; less than `segments`.
        offset: u16,
    },
}

/// A congestion control algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// The algorithm CUBIC (RFC 9438).
    Cubic,
    /// The algorithm Reno (RFC 5681).
    Reno,
    /// BBR, version 1 (draft-cardwell-iccrg-bbr-congestion-control-00): sends at the rate at which data arrives
    /// at the peer, does not slow down for losses, and keeps queues short. ECN is off under BBR, because BBR
    /// does not react to marks. It has no rule of version 3 and no allowance for ACKs that come in batches:
    /// beside Linux's BBR it gets a quarter to a half of an equal share.
    Bbr,
}

/// The congestion window of a new connection. Idle time reduces the window at most to this value. If the SYN
/// was retransmitted, the window starts at one segment instead (RFC 5681, section 3.1). The send buffer and the
/// peer's window may allow less.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum InitialWindow {
    /// Ten segments, but at most 14,600 bytes or two segments (RFC 6928, section 2).
    #[default]
    Rfc6928,
    /// This number of segments, whatever their size: 1 to 64. Linux begins with ten: with 8,948 bytes each, a
    /// long path is filled two round trips earlier than under RFC 6928. The part above the limit of RFC 6928
    /// is paced over half of the round trip that the handshake has measured, unless that is below 4 ms.
    Segments(u8),
}

/// The intervals and the number of keep-alive probes to an idle peer (RFC 9293, section 3.8.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeepAlive {
    /// The idle time before the first keep-alive probe. At least 1 ms; RFC 9293 requires a default of two
    /// hours or more.
    pub idle: Duration,
    /// The time between two keep-alive probes. At least 1 ms.
    pub interval: Duration,
    /// The number of keep-alive probes in a row that may go unanswered before the connection fails. At least
    /// 2, because one may be lost.
    pub probes: u8,
}

impl Default for KeepAlive {
    fn default() -> Self {
        let (idle, interval) = (Duration::from_secs(7200), Duration::from_secs(75));
        Self { idle, interval, probes: 9 }
    }
}

impl Config {
    /// Returns the sizes of the buffers of a new connection.
    #[must_use]
    pub const fn initial_buffers(&self) -> Buffers {
        Buffers { send_bytes: self.send_buffer_bytes, receive_bytes: self.receive_buffer_bytes }
    }

    /// Returns `true` if ECN is offered and accepted. Always `false` with BBR, which does not react to marks.
    pub(crate) fn uses_ecn(&self) -> bool {
        self.ecn && self.congestion != Algorithm::Bbr
    }

    /// Returns the maximum sizes of the buffers.
    #[must_use]
    pub fn largest_buffers(&self) -> Buffers {
        let initial = self.initial_buffers();
        self.largest_buffers.map_or(initial, |largest| largest.larger(initial))
    }

    /// Checks all settings.
    ///
    /// # Errors
    /// Returns the first invalid setting, with its value and the valid range.
    pub fn check(&self) -> Result<(), ConfigError> {
        let millis = |duration: Duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        let KeepAlive { idle, interval, probes } = self.keep_alive.unwrap_or_default();
        let largest = self.largest_buffers.unwrap_or(self.initial_buffers());
        let least_received = least_receive_bytes(self).into();
        let initial_segments = match self.initial_window {
            InitialWindow::Rfc6928 => 1,
            InitialWindow::Segments(segments) => segments.into(),
        };
        ConfigError::check([
            ("send_buffer_bytes", self.send_buffer_bytes.into(), 1, MAX_WINDOW_BYTES),
            (
                "receive_buffer_bytes",
                self.receive_buffer_bytes.into(),
                least_received,
                MAX_WINDOW_BYTES,
            ),
            ("largest_buffers.send_bytes", largest.send_bytes.into(), 1, MAX_WINDOW_BYTES),
            ("largest_buffers.receive_bytes", largest.receive_bytes.into(), 1, MAX_WINDOW_BYTES),
            ("most_unsent_bytes", self.most_unsent_bytes.unwrap_or(1).into(), 1, MAX_WINDOW_BYTES),
            ("receive_pieces", self.receive_pieces as u64, 2, MAX_PLACES),
            ("sent_ranges", self.sent_ranges as u64, 32, MAX_PLACES),
            ("maximum_segment_size", self.maximum_segment_size.into(), 64, u16::MAX.into()),
            ("large_send_bytes", self.large_send_bytes.into(), 0, MAX_LARGE_SEND_BYTES),
            ("initial_window in segments", initial_segments, 1, MOST_INITIAL_SEGMENTS),
            ("delayed_ack in ms", millis(self.delayed_ack), 0, 499),
            ("min_rto in ms", millis(self.min_rto), 1, 60_000),
            ("initial_rto in ms", millis(self.initial_rto), 1, 60_000),
            ("keep_alive.idle in ms", millis(idle), 1, MAX_IDLE_MS),
            ("keep_alive.interval in ms", millis(interval), 1, MAX_IDLE_MS),
            ("keep_alive.probes", probes.into(), 2, u8::MAX.into()),
        ])
    }
}

/// The largest window that can be offered, in bytes (RFC 7323, section 2.3).
const MAX_WINDOW_BYTES: u64 = (1 << 30) - 1;
const MAX_PLACES: u64 = 1 << 20;
/// The largest initial window in segments, half a megabyte with the largest Ethernet frames. A larger one
/// could overflow a queue before the first ACK arrives.
const MOST_INITIAL_SEGMENTS: u64 = 64;
/// The maximum of both keep-alive times, in milliseconds: one year.
const MAX_IDLE_MS: u64 = 365 * 24 * 3600 * 1000;
/// The maximum payload of a GSO frame, in bytes: the longest IP packet without the IPv6 and TCP headers of
/// full length; IPv6 extensions are not counted.
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
        // A buffer of less than two units of the window scale could hardly ever be offered.
        let largest = Some(Buffers { send_bytes: 1 << 20, receive_bytes: 6 << 20 });
        let tiny =
            Config { receive_buffer_bytes: 255, largest_buffers: largest, ..Config::default() };
        let said = tiny.check().unwrap_err().to_string();
        assert_eq!(said, "receive_buffer_bytes is 255; choose 256 to 1073741823");
        assert_eq!(Config { largest_buffers: None, ..tiny }.check(), Ok(()));
        // RFC 9293, section 3.8.6.3 (MUST-40): less than half a second.
        let wrong = Config { delayed_ack: Duration::from_millis(500), ..Config::default() };
        assert!(wrong.check().is_err());
        // A pause of zero between probes would never end.
        for wrong in [
            KeepAlive { idle: Duration::ZERO, ..KeepAlive::default() },
            KeepAlive { interval: Duration::from_micros(999), ..KeepAlive::default() },
        ] {
            let wrong = Config { keep_alive: Some(wrong), ..Config::default() };
            let said = wrong.check().unwrap_err().to_string();
            assert!(said.starts_with("keep_alive.i") && said.contains("is 0; choose 1"), "{said}");
        }
    }

    /// A user who raises only the initial size need not raise `largest_buffers` as well.
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
