//! Which frames are changed, and into what: the connection of one receiver, as seen from beside it.
//!
//! Pure: frames and times go in, verdicts come out. The receiver's stack knows nothing of groups, so what guards rxo's own
//! receivers stands here: source, window and timestamp of a group's segment must be the sender's.

use std::net::SocketAddr;

use rxo::tcp::{SegmentOptions, has_plain_options};
use rxo::wire::{FlowKey, Parsed, SeqNumber, TcpFlags, TcpSegment, Transport, parse};
use rxo_frame::{Duration, Instant};

use super::rewrite::{Target, rewrite};

/// The filter of one receiver's connection.
#[derive(Debug)]
pub(super) struct Filter {
    sender: SocketAddr,
    group: SocketAddr,
    connection: Option<Connection>,
    pub(super) counts: Counts,
}

/// What became of segments to the group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    /// Changed, and passed on.
    pub(super) rewritten: u64,
    /// Outside the receiver's window. Ten of them in five seconds are passed on.
    pub(super) outside: u64,
    /// No connection is open, or the segment cannot be the sender's.
    pub(super) refused: u64,
}

/// What the receiver's own segment says of its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum News {
    /// Nothing that matters here.
    Nothing,
    /// It opens the connection: the group is to be joined for this host.
    Opens { receiver: SocketAddr, mac: [u8; 6] },
    /// It acknowledges the sender's FIN, or resets the connection: the group is to be left.
    Ends,
}

/// What is to be done with a frame from the network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It passes as it is.
    Pass,
    /// This passes in its place.
    Rewritten(Vec<u8>),
    /// It is dropped.
    Drop,
}

/// What both sides of the connection have said.
#[derive(Clone, Copy, Debug)]
struct Connection {
    receiver: SocketAddr,
    mac: [u8; 6],
    /// The sequence number after all that the receiver has sent.
    sent: SeqNumber,
    /// How much of it the sender has acknowledged; `None` before its SYN has come.
    acked: Option<SeqNumber>,
    /// The sender's window, as it stands in its header.
    window: u16,
    /// What the receiver expects, how much it takes, and how its windows are shifted.
    expects: SeqNumber,
    takes: u32,
    scale: u8,
    /// The sequence number after the sender's FIN, once that has come.
    end: Option<SeqNumber>,
    /// The receiver's last TSval.
    clock: u32,
    /// The sender's last TSval, and when it came.
    recent: (u32, Instant),
    /// When those outside the window began to be counted, and how many have passed.
    outside: (Instant, u32),
}

impl Filter {
    /// The filter of a receiver of what `sender` sends to `group`.
    pub(super) fn new(sender: SocketAddr, group: SocketAddr) -> Self {
        Self { sender, group, connection: None, counts: Counts::default() }
    }

    /// Learns from the Ethernet frame `bytes`, which the receiver's host sends.
    pub(super) fn hear_host(&mut self, bytes: &[u8], now: Instant) -> News {
        let Some((key, tcp, options)) = segment_in(bytes) else { return News::Nothing };
        if destination(&key) != self.sender {
            return News::Nothing;
        }
        let clock = options.timestamp.map(|timestamp| timestamp.value);
        if tcp.segment.flags.contains(TcpFlags::SYN) {
            let mac = bytes.get(6..).and_then(<[u8]>::first_chunk).copied().unwrap_or_default();
            let receiver = source(&key);
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
            return News::Opens { receiver, mac };
        }
        let Some(connection) = self.connection.as_mut().filter(|it| it.receiver == source(&key))
        else {
            return News::Nothing;
        };
        connection.hear_receiver(&tcp, clock);
        // A receiver that has closed its side, such as nc -N, still gets text.
        if connection.has_all() || tcp.segment.flags.contains(TcpFlags::RST) {
            self.connection = None;
            return News::Ends;
        }
        News::Nothing
    }

    /// Judges the Ethernet frame `bytes`, which comes from the network. Its transport checksum is complete.
    pub(super) fn judge(&mut self, bytes: &[u8], now: Instant) -> Verdict {
        let Some((key, tcp, options)) = segment_in(bytes) else { return Verdict::Pass };
        if key.destination() == self.group.ip() {
            return self.judge_for_group(bytes, &key, &tcp, now);
        }
        if let Some(connection) = &mut self.connection
            && (source(&key), destination(&key)) == (self.sender, connection.receiver)
        {
            connection.hear_sender(&tcp, &options, now);
        }
        Verdict::Pass
    }

    fn judge_for_group(
        &mut self,
        bytes: &[u8],
        key: &FlowKey,
        tcp: &Found,
        now: Instant,
    ) -> Verdict {
        let is_ours = (source(key), destination(key)) == (self.sender, self.group);
        let value = value_of(bytes, tcp);
        let connection = self.connection.as_mut().filter(|_| is_ours);
        let Some((connection, value)) = connection.zip(value) else {
            self.counts.refused += 1;
            return Verdict::Drop;
        };
        let Some(target) = connection.target(tcp, value, now) else {
            self.counts.refused += 1;
            return Verdict::Drop;
        };
        if !connection.is_in_window(tcp) {
            self.counts.outside += 1;
            if !connection.may_pass_outside(now) {
                return Verdict::Drop;
            }
        } else {
            connection.recent = (value, now);
            connection.note_end(tcp);
        }
        let mut rewritten = bytes.to_vec();
        if rewrite(&mut rewritten, tcp.parsed.at, &target).is_none() {
            return Verdict::Drop;
        }
        self.counts.rewritten += 1;
        Verdict::Rewritten(rewritten)
    }
}

impl Connection {
    fn hear_receiver(&mut self, tcp: &Found, clock: Option<u32>) {
        let TcpSegment { seq, ack, window, flags, .. } = tcp.segment;
        let end = seq + tcp.len();
        self.sent = if self.sent.is_before(end) { end } else { self.sent };
        self.clock = clock.unwrap_or(self.clock);
        let is_first = self.expects == SeqNumber(0);
        if flags.contains(TcpFlags::ACK) && (is_first || !ack.is_before(self.expects)) {
            (self.expects, self.takes) = (ack, u32::from(window) << self.scale);
        }
    }

    /// Learns from a segment of the sender's to this receiver. One that acknowledges what was not sent is a forgery, or
    /// of another connection.
    fn hear_sender(&mut self, tcp: &Found, options: &SegmentOptions, now: Instant) {
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

    /// Takes note of the sender's FIN, if that is in a segment that lies in the window.
    fn note_end(&mut self, tcp: &Found) {
        if tcp.segment.flags.contains(TcpFlags::FIN) {
            self.end = Some(tcp.segment.seq + tcp.len());
        }
    }

    /// Whether the receiver has acknowledged the sender's FIN.
    fn has_all(&self) -> bool {
        self.end.is_some_and(|end| !self.expects.is_before(end))
    }

    /// What a segment to the group becomes, if it can be the sender's.
    fn target(&self, tcp: &Found, value: u32, now: Instant) -> Option<Target> {
        let flags = tcp.segment.flags;
        let says_something = tcp.len() > 0 && !flags.intersects(TcpFlags::SYN | TcpFlags::RST);
        let ack = self.acked.filter(|_| says_something && self.is_timely(value, now))?;
        let Self { mac, receiver, window, clock, .. } = *self;
        Some(Target { mac, receiver, ack, window, echo: clock })
    }

    /// As [`Connection::on_group_arrival`](rxo::tcp::Connection::on_group_arrival) judges it.
    fn is_timely(&self, value: u32, now: Instant) -> bool {
        let (recent, at) = self.recent;
        let elapsed_ms = u64::try_from(now.since(at).as_millis()).unwrap_or(u64::MAX);
        let most = elapsed_ms.saturating_mul(2).saturating_add(TICKS_AHEAD).min(i32::MAX as u64);
        u64::from(value.wrapping_sub(recent).wrapping_add(TICKS_BEHIND)) <= most
    }

    fn is_in_window(&self, tcp: &Found) -> bool {
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
struct Found {
    parsed: Parsed,
    segment: TcpSegment,
}

impl Found {
    /// SEG.LEN without a SYN.
    fn len(&self) -> u32 {
        self.parsed.payload_bytes() + u32::from(self.segment.flags.contains(TcpFlags::FIN))
    }
}

fn segment_in(bytes: &[u8]) -> Option<(FlowKey, Found, SegmentOptions)> {
    let parsed = parse(bytes).ok()?;
    let Transport::Tcp(segment) = parsed.transport else { return None };
    let options = SegmentOptions::read(bytes.get(parsed.at.tcp_options())?);
    Some((parsed.key, Found { parsed, segment }, options))
}

/// TSval of a segment whose only option is the timestamp, at its usual place.
fn value_of(bytes: &[u8], tcp: &Found) -> Option<u32> {
    let at = tcp.parsed.at;
    let options = bytes.get(at.tcp_options()).filter(|_| has_plain_options(bytes, at))?;
    SegmentOptions::read(options).timestamp.map(|timestamp| timestamp.value)
}

fn source(key: &FlowKey) -> SocketAddr {
    SocketAddr::new(key.source(), key.source_port())
}

fn destination(key: &FlowKey) -> SocketAddr {
    SocketAddr::new(key.destination(), key.destination_port())
}

/// RFC 7323, section 2.3.
const MOST_SCALE: u8 = 14;
/// A clock may show so much more than has passed here, and segments may overtake each other by so much.
const TICKS_AHEAD: u64 = 10_000;
const TICKS_BEHIND: u32 = 1_000;
const MOST_OUTSIDE: u32 = 10;
const OUTSIDE_WITHIN: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests;
