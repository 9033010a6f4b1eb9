//! Decides which frames from the network are rewritten for a receiver's connection. The filter only observes
//! this connection.
//!
//! The filter is pure: its inputs are frames and times, its outputs are decisions. The receiver's stack does
//! not support groups, so this filter makes the checks that rxo's own receivers make: source, window and
//! timestamp of a segment to the group must fit the sender.

use std::net::SocketAddr;

use rxo_frame::{Duration, Instant};
use rxo_tcp::{SegmentOptions, has_plain_options};
use rxo_wire::{FlowKey, Parsed, SeqNumber, TcpFlags, TcpSegment, Transport, parse};

use super::rewrite::{Target, rewrite};

/// The filter for one receiver's connection.
#[derive(Debug)]
pub(super) struct Filter {
    sender: SocketAddr,
    group: SocketAddr,
    connection: Option<Connection>,
    pub(super) counts: JoinCounters,
}

rxo_frame::counters! {
    /// Counters of the segments that the sender sent to the group.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct JoinCounters {
        /// Number of segments that were rewritten and delivered to the receiver.
        pub given: u64,
        /// Number of segments outside the receiver's window. At most ten of these segments in five seconds are
        /// delivered.
        pub outside: u64,
        /// Number of segments that arrived while no connection was open, or that cannot come from the sender.
        pub refused: u64,
    }
}

/// The effect of a segment of the receiver on its membership.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MembershipChange {
    /// The segment does not change the membership.
    Nothing,
    /// The segment opens the connection: the caller must join the group on behalf of this host.
    Opens { receiver: SocketAddr, mac: [u8; 6] },
    /// The segment acknowledges the sender's FIN, or resets the connection: the caller must leave the group.
    Ends,
}

/// The decision about a frame from the network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FrameDecision {
    /// The frame passes unchanged.
    Pass,
    /// The frame is replaced by these bytes.
    Rewritten(Vec<u8>),
    /// The frame is dropped.
    Drop,
}

/// The state of the connection, observed from the segments of both sides.
#[derive(Clone, Copy, Debug)]
struct Connection {
    receiver: SocketAddr,
    mac: [u8; 6],
    /// The sequence number after all data that the receiver has sent.
    sent: SeqNumber,
    /// ACK number of the sender's last segment; `None` before its SYN has arrived.
    acked: Option<SeqNumber>,
    /// The window field of the sender's last segment, not scaled.
    window: u16,
    /// The next sequence number that the receiver expects.
    expects: SeqNumber,
    /// The receiver's window in bytes, after scaling.
    takes: u32,
    /// The receiver's window shift, in bits.
    scale: u8,
    /// Sequence number after the sender's FIN; `None` before the FIN has arrived.
    end: Option<SeqNumber>,
    /// The last TSval of the receiver.
    clock: u32,
    /// The last TSval of the sender, and the arrival time of its segment.
    recent: (u32, Instant),
    /// The start of the current interval of five seconds, and the number of segments outside the window since
    /// then.
    outside: (Instant, u32),
}

impl Filter {
    /// Creates the filter for a receiver of the cast that `sender` sends to `group`.
    pub(super) fn new(sender: SocketAddr, group: SocketAddr) -> Self {
        Self { sender, group, connection: None, counts: JoinCounters::default() }
    }

    /// Updates the state with the Ethernet frame `bytes`, which the receiver's host sends. Returns the effect
    /// of the frame on the membership.
    pub(super) fn on_host_frame(&mut self, bytes: &[u8], now: Instant) -> MembershipChange {
        let Some((key, tcp, options)) = segment_in(bytes) else { return MembershipChange::Nothing };
        if key.receiver() != self.sender {
            return MembershipChange::Nothing;
        }
        let clock = options.timestamp.map(|timestamp| timestamp.value);
        if tcp.segment.flags.contains(TcpFlags::SYN) {
            let mac = bytes.get(6..).and_then(<[u8]>::first_chunk).copied().unwrap_or_default();
            let receiver = key.sender();
            self.connection = Some(Connection {
                receiver,
                mac,
                sent: tcp.segment.seq + 1,
                acked: None,
                window: 0,
                expects: SeqNumber(0),
                takes: tcp.segment.window.into(),
                scale: options.window_scale.unwrap_or(0).min(MOST_SCALE),
                end: None,
                clock: clock.unwrap_or_default(),
                recent: (0, now),
                outside: (now, 0),
            });
            return MembershipChange::Opens { receiver, mac };
        }
        let Some(connection) = self.connection.as_mut().filter(|it| it.receiver == key.sender())
        else {
            return MembershipChange::Nothing;
        };
        connection.on_receiver_segment(&tcp, clock);
        // A receiver that has closed its side, such as `nc -N`, still receives.
        if connection.has_all() || tcp.segment.flags.contains(TcpFlags::RST) {
            self.connection = None;
            return MembershipChange::Ends;
        }
        MembershipChange::Nothing
    }

    /// Decides if the Ethernet frame `bytes` from the network passes unchanged, is rewritten, or is dropped.
    /// The transport checksum in `bytes` must be complete.
    pub(super) fn decide(&mut self, bytes: &[u8], now: Instant) -> FrameDecision {
        let Some((key, tcp, options)) = segment_in(bytes) else { return FrameDecision::Pass };
        if key.destination() == self.group.ip() {
            return self.judge_for_group(bytes, &key, &tcp, now);
        }
        if let Some(connection) = &mut self.connection
            && (key.sender(), key.receiver()) == (self.sender, connection.receiver)
        {
            connection.on_sender_segment(&tcp, &options, now);
        }
        FrameDecision::Pass
    }

    fn judge_for_group(
        &mut self,
        bytes: &[u8],
        key: &FlowKey,
        tcp: &FrameSegment,
        now: Instant,
    ) -> FrameDecision {
        let is_ours = (key.sender(), key.receiver()) == (self.sender, self.group);
        let value = value_of(bytes, tcp);
        let connection = self.connection.as_mut().filter(|_| is_ours);
        let Some((connection, value)) = connection.zip(value) else {
            self.counts.refused += 1;
            return FrameDecision::Drop;
        };
        let Some(target) = connection.target(tcp, value, now) else {
            self.counts.refused += 1;
            return FrameDecision::Drop;
        };
        if !connection.is_in_window(tcp) {
            self.counts.outside += 1;
            if !connection.may_pass_outside(now) {
                return FrameDecision::Drop;
            }
        } else {
            connection.recent = (value, now);
            connection.note_end(tcp);
        }
        let mut rewritten = bytes.to_vec();
        if rewrite(&mut rewritten, tcp.parsed.at, &target).is_none() {
            return FrameDecision::Drop;
        }
        self.counts.given += 1;
        FrameDecision::Rewritten(rewritten)
    }
}

impl Connection {
    fn on_receiver_segment(&mut self, tcp: &FrameSegment, clock: Option<u32>) {
        let TcpSegment { seq, ack, window, flags, .. } = tcp.segment;
        let end = seq + tcp.len();
        self.sent = if self.sent.is_before(end) { end } else { self.sent };
        self.clock = clock.unwrap_or(self.clock);
        let is_first = self.expects == SeqNumber(0);
        if flags.contains(TcpFlags::ACK) && (is_first || !ack.is_before(self.expects)) {
            (self.expects, self.takes) = (ack, u32::from(window) << self.scale);
        }
    }

    /// Updates the state with a segment from the sender to this receiver. Ignores a segment that acknowledges
    /// data that was never sent, because such a segment is forged or belongs to another connection.
    fn on_sender_segment(&mut self, tcp: &FrameSegment, options: &SegmentOptions, now: Instant) {
        let TcpSegment { seq, ack, window, flags, .. } = tcp.segment;
        let from = self.acked.unwrap_or(self.sent);
        let is_possible = !ack.is_before(from) && !self.sent.is_before(ack);
        let is_right = flags.contains(TcpFlags::ACK) && !flags.contains(TcpFlags::RST);
        let Some(timestamp) = options.timestamp.filter(|_| is_possible && is_right) else { return };
        let opens = flags.contains(TcpFlags::SYN) && self.acked.is_none();
        if opens || self.acked.is_some() && self.is_timely(timestamp.value, now) {
            (self.acked, self.window) = (Some(ack), window);
            self.recent = (timestamp.value, now);
            if opens {
                self.expects = seq + 1;
            } else if self.is_in_window(tcp) {
                self.note_end(tcp);
            }
        }
    }

    /// Records the sender's FIN, if the segment `tcp`, which is in the window, has this flag.
    fn note_end(&mut self, tcp: &FrameSegment) {
        if tcp.segment.flags.contains(TcpFlags::FIN) {
            self.end = Some(tcp.segment.seq + tcp.len());
        }
    }

    /// Returns `true` if the receiver has acknowledged the sender's FIN.
    fn has_all(&self) -> bool {
        self.end.is_some_and(|end| !self.expects.is_before(end))
    }

    /// Returns the fields of a rewritten segment; `None` if a segment to the group cannot come from the
    /// sender.
    fn target(&self, tcp: &FrameSegment, value: u32, now: Instant) -> Option<Target> {
        let flags = tcp.segment.flags;
        let says_something = tcp.len() > 0 && !flags.intersects(TcpFlags::SYN | TcpFlags::RST);
        let ack = self.acked.filter(|_| says_something && self.is_timely(value, now))?;
        let Self { mac, receiver, window, clock, .. } = *self;
        Some(Target { mac, receiver, ack, window, echo: clock })
    }

    /// Returns `true` if `value` can be a TSval of the sender, by the rule of
    /// [`Connection::on_group_arrival`](rxo_tcp::Connection::on_group_arrival).
    fn is_timely(&self, value: u32, now: Instant) -> bool {
        let (recent, at) = self.recent;
        let elapsed_ms = u64::try_from(now.since(at).as_millis()).unwrap_or(u64::MAX);
        let most = elapsed_ms.saturating_mul(2).saturating_add(TICKS_AHEAD).min(i32::MAX as u64);
        u64::from(value.wrapping_sub(recent).wrapping_add(TICKS_BEHIND)) <= most
    }

    fn is_in_window(&self, tcp: &FrameSegment) -> bool {
        let end = self.expects + self.takes;
        let is_inside = |seq: SeqNumber| !seq.is_before(self.expects) && seq.is_before(end);
        is_inside(tcp.segment.seq) || is_inside(tcp.segment.seq + (tcp.len() - 1))
    }

    fn may_pass_outside(&mut self, now: Instant) -> bool {
        if now.since(self.outside.0) >= OUTSIDE_WITHIN {
            self.outside = (now, 0);
        }
        self.outside.1 += 1;
        self.outside.1 <= MOST_OUTSIDE
    }
}

/// A TCP segment in a frame.
struct FrameSegment {
    parsed: Parsed,
    segment: TcpSegment,
}

impl FrameSegment {
    /// Returns SEG.LEN, for a segment without SYN.
    fn len(&self) -> u32 {
        self.parsed.payload_bytes() + u32::from(self.segment.flags.contains(TcpFlags::FIN))
    }
}

fn segment_in(bytes: &[u8]) -> Option<(FlowKey, FrameSegment, SegmentOptions)> {
    let parsed = parse(bytes).ok()?;
    let Transport::Tcp(segment) = parsed.transport else { return None };
    let options = SegmentOptions::read(bytes.get(parsed.at.tcp_options())?);
    Some((parsed.key, FrameSegment { parsed, segment }, options))
}

/// Returns the TSval of the segment `tcp` in the frame `bytes`; `None` unless the timestamp is the only option
/// and at its usual offset.
fn value_of(bytes: &[u8], tcp: &FrameSegment) -> Option<u32> {
    let at = tcp.parsed.at;
    let options = bytes.get(at.tcp_options()).filter(|_| has_plain_options(bytes, at))?;
    SegmentOptions::read(options).timestamp.map(|timestamp| timestamp.value)
}

/// Largest window shift (RFC 7323, section 2.3).
const MOST_SCALE: u8 = 14;
/// Maximum number of ticks by which a TSval may be ahead of the elapsed time ([`TICKS_AHEAD`]), or behind
/// because of reordering ([`TICKS_BEHIND`]).
const TICKS_AHEAD: u64 = 10_000;
const TICKS_BEHIND: u32 = 1_000;
const MOST_OUTSIDE: u32 = 10;
const OUTSIDE_WITHIN: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests;
