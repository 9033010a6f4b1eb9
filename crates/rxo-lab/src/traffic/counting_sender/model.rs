//! The sender as a pure machine: segments that came and time go in, segments to send come out.
//!
//! It opens a connection, sends without end or up to a limit, mends losses, and says goodbye. What
//! it leaves out of RFC 9293 is what a sender in a private network never meets: data from the
//! other end, urgent pointers, simultaneous opening. Loss recovery is RFC 5681's with RFC 6582's
//! partial ACKs, without SACK; after a timeout it goes back to what is not acknowledged.
//!
//! Positions in the stream are 64-bit and count from the first byte; the SYN stands before it. Time
//! is what has passed since the connection was begun.

use std::time::Duration;

use super::WindowPoint;
use super::segment::{ACK, FIN, Header, RST, SYN, TCP_BYTES, TIMESTAMP_BYTES};
use super::timer::Timeout;
use super::window::CongestionWindow;

/// What distinguishes senders.
#[derive(Clone, Copy, Debug)]
pub(super) struct Setup {
    /// The first sequence number.
    pub(super) isn: u32,
    /// The largest segment, header left out, that the link takes.
    pub(super) mss: u16,
    /// The first window (RFC 5681 allows 3, RFC 6928 10).
    pub(super) initial_segments: u64,
    /// Where the stream ends; `None` goes on until told to stop.
    pub(super) limit_bytes: Option<u64>,
}

/// The connection.
#[derive(Clone, Debug)]
pub(super) struct Model {
    setup: Setup,
    phase: Phase,
    /// First byte not acknowledged.
    una: u64,
    /// Next byte to send.
    nxt: u64,
    /// Behind the last byte ever sent.
    max: u64,
    mss: u64,
    window: CongestionWindow,
    /// What the other end takes beyond `una`.
    peer_window: u64,
    peer_scale: u8,
    /// What the other end is to be acknowledged, and the last timestamp it sent.
    rcv_nxt: u32,
    echo: Option<u32>,
    /// Up to where everything was sent when the congestion window last held us back: ACKs for it
    /// let the window grow.
    held_back_at: u64,
    duplicates: u32,
    /// While losses are mended: up to where everything was sent when the first was seen.
    recover: Option<u64>,
    /// Duplicates for what was sent before this say nothing new (RFC 6582, section 4).
    heeded: u64,
    resend: bool,
    probe: bool,
    timeout: Timeout,
    deadline: Option<Duration>,
    end: Option<u64>,
    counters: ModelCounters,
    record: Vec<WindowPoint>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The SYN must be sent, for the first time or again.
    Begin,
    SynSent,
    /// The handshake's ACK must be sent.
    Answer,
    Open,
    /// Everything is acknowledged, the end too.
    Done,
    Reset,
}

/// What was sent, and what came back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ModelCounters {
    /// Segments with payload, those sent again included.
    pub segments: u64,
    /// Segments sent again.
    pub retransmissions: u64,
    /// Timeouts of the retransmission timer.
    pub timeouts: u64,
    /// ACKs that advanced: what the window counts.
    pub advancing_acks: u64,
    /// ACKs that said the same again.
    pub duplicate_acks: u64,
}

/// A segment to send: its header, and which bytes of the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ToSend {
    pub(super) header: Header,
    pub(super) at: u64,
    pub(super) bytes: usize,
}

impl Model {
    pub(super) fn new(setup: Setup) -> Self {
        let mss = u64::from(setup.mss);
        Self {
            setup,
            phase: Phase::Begin,
            una: 0,
            nxt: 0,
            max: 0,
            mss,
            window: CongestionWindow::new(mss, setup.initial_segments),
            peer_window: 0,
            peer_scale: 0,
            rcv_nxt: 0,
            echo: None,
            held_back_at: 0,
            duplicates: 0,
            recover: None,
            heeded: 0,
            resend: false,
            probe: false,
            timeout: Timeout::new(),
            deadline: None,
            end: setup.limit_bytes,
            counters: ModelCounters::default(),
            record: Vec::new(),
        }
    }

    /// Ends the stream behind what has been sent.
    pub(super) fn stop(&mut self) {
        let end = self.end.unwrap_or(u64::MAX).min(self.max);
        self.end = Some(end);
    }

    pub(super) fn is_done(&self) -> bool {
        self.phase == Phase::Done
    }

    /// The other end has refused or given up the connection.
    pub(super) fn is_reset(&self) -> bool {
        self.phase == Phase::Reset
    }

    /// Where the stream ends, or how far it was sent if it has no end yet.
    pub(super) fn sent_bytes(&self) -> u64 {
        self.end.unwrap_or(self.max).min(self.max)
    }

    pub(super) const fn counters(&self) -> ModelCounters {
        self.counters
    }

    /// How the window grew: a point when something changed, at most one each millisecond.
    pub(super) fn into_record(self) -> Vec<WindowPoint> {
        self.record
    }

    /// When [`Self::on_timeout`] is due.
    pub(super) const fn poll_at(&self) -> Option<Duration> {
        self.deadline
    }

    /// A segment of this connection came.
    pub(super) fn on_segment(&mut self, header: &Header, now: Duration) {
        if header.flags & RST != 0 {
            self.phase = Phase::Reset;
        }
        match self.phase {
            Phase::SynSent if header.flags & (SYN | ACK) == SYN | ACK => {
                self.on_syn_ack(header, now);
            }
            Phase::Open if header.flags & ACK != 0 && header.flags & SYN == 0 => {
                self.on_ack(header, now);
            }
            // A second SYN-ACK: our answer to the first was lost.
            Phase::Open if header.flags & SYN != 0 => self.phase = Phase::Answer,
            _ => {}
        }
    }

    /// Whether [`Self::poll_transmit`] has something.
    pub(super) fn has_to_send(&self) -> bool {
        match self.phase {
            Phase::Begin | Phase::Answer => true,
            Phase::Open => self.resend || self.may_send(),
            Phase::SynSent | Phase::Done | Phase::Reset => false,
        }
    }

    /// The next segment to send now; `None` when there is none.
    pub(super) fn poll_transmit(&mut self, now: Duration) -> Option<ToSend> {
        match self.phase {
            Phase::Begin => Some(self.syn(now)),
            Phase::Answer => {
                self.phase = Phase::Open;
                Some(self.segment(self.nxt, 0, ACK, now))
            }
            Phase::Open if self.resend => {
                self.resend = false;
                self.counters.retransmissions += 1;
                Some(self.data(self.una, now))
            }
            Phase::Open if self.may_send() => {
                self.probe = false;
                let at = self.nxt;
                if at < self.max {
                    self.counters.retransmissions += 1;
                }
                let segment = self.data(at, now);
                let end = u64::from(segment.header.flags & FIN != 0);
                self.nxt = at + segment.bytes as u64 + end;
                self.max = self.max.max(self.nxt);
                Some(segment)
            }
            Phase::Open => {
                self.note_what_holds_back();
                None
            }
            _ => None,
        }
    }

    /// Time has passed. Nothing happens before [`Self::poll_at`].
    pub(super) fn on_timeout(&mut self, now: Duration) {
        if self.deadline.is_none_or(|deadline| now < deadline) {
            return;
        }
        self.timeout.back_off();
        self.deadline = Some(now + self.timeout.get());
        match self.phase {
            Phase::SynSent => self.phase = Phase::Begin,
            // Everything is acknowledged, and the other end takes no more: ask it.
            Phase::Open if self.max == self.una => self.probe = true,
            Phase::Open => {
                self.probe = true;
                self.counters.timeouts += 1;
                self.window.on_timeout(self.flight());
                (self.recover, self.duplicates) = (None, 0);
                self.heeded = self.max;
                self.nxt = self.una;
                self.note(now);
            }
            _ => {}
        }
    }

    fn on_syn_ack(&mut self, header: &Header, now: Duration) {
        if header.ack != self.setup.isn.wrapping_add(1) {
            return;
        }
        self.rcv_nxt = header.seq.wrapping_add(1);
        self.echo = header.timestamp.map(|(value, _)| value);
        self.peer_scale = header.scale.unwrap_or(0).min(14);
        // Not scaled in a SYN (RFC 7323, section 2.2).
        self.peer_window = u64::from(header.window);
        let most = u64::from(header.mss.unwrap_or(536).min(self.setup.mss));
        let options = if self.echo.is_some() { TIMESTAMP_BYTES as u64 } else { 0 };
        self.mss = most.saturating_sub(options).max(1);
        self.window = CongestionWindow::new(self.mss, self.setup.initial_segments);
        if let Some((_, echo)) = header.timestamp {
            self.measure(echo, now);
        }
        self.phase = Phase::Answer;
        self.deadline = None;
        self.note(now);
    }

    fn on_ack(&mut self, header: &Header, now: Duration) {
        let ack = self.position(header.ack);
        if ack < self.una || ack > self.max {
            return;
        }
        self.echo = header.timestamp.map(|(value, _)| value).or(self.echo);
        let window = u64::from(header.window) << self.peer_scale;
        let is_same = ack == self.una && window == self.peer_window;
        self.peer_window = window;
        if ack > self.una {
            if let Some((_, echo)) = header.timestamp {
                self.measure(echo, now);
            }
            self.on_advance(ack, now);
        } else if is_same && self.flight() > 0 && header.flags & FIN == 0 {
            self.on_duplicate();
        }
        self.note(now);
    }

    fn on_advance(&mut self, ack: u64, now: Duration) {
        self.counters.advancing_acks += 1;
        let (acked, was_held_back) = (ack - self.una, self.una < self.held_back_at);
        self.una = ack;
        self.nxt = self.nxt.max(ack);
        match self.recover {
            Some(recover) if ack < recover => {
                self.resend = true;
                self.window.on_partial_ack(acked);
            }
            Some(_) => {
                self.recover = None;
                self.window.leave_recovery(self.flight());
            }
            None if was_held_back => self.window.on_advancing_ack(),
            // Another limit was nearer: the window does not grow beyond what is used.
            None => {}
        }
        if self.recover.is_none() {
            self.duplicates = 0;
        }
        if self.end.is_some_and(|end| ack > end) {
            self.phase = Phase::Done;
        }
        self.deadline = Some(now + self.timeout.get());
    }

    fn on_duplicate(&mut self) {
        self.counters.duplicate_acks += 1;
        self.duplicates += 1;
        if self.recover.is_some() {
            self.window.on_duplicate_in_recovery();
        } else if self.duplicates == 3 && self.una >= self.heeded {
            self.window.enter_recovery(self.flight());
            self.recover = Some(self.max);
            self.heeded = self.max;
            self.resend = true;
        }
    }

    /// The echo is in the milliseconds that we stamp.
    fn measure(&mut self, echo: u32, now: Duration) {
        let millis = stamp(now).wrapping_sub(echo);
        if millis < u32::MAX / 2 {
            self.timeout.on_round_trip(Duration::from_millis(millis.into()));
        }
    }

    /// Nothing more can be sent now.
    fn note_what_holds_back(&mut self) {
        let is_congestion = self.window.bytes() <= self.peer_window;
        if is_congestion && self.length_at(self.nxt) > 0 {
            self.held_back_at = self.nxt;
        }
    }

    fn flight(&self) -> u64 {
        self.nxt - self.una
    }

    /// A whole segment must fit into both windows, or what is left of the stream; or the other
    /// end's window is to be asked for.
    fn may_send(&self) -> bool {
        let bytes = self.length_at(self.nxt);
        if bytes == 0 {
            // The end takes a place of its own: once it is sent, `nxt` is behind it.
            return self.end == Some(self.nxt);
        }
        let room = self.window.bytes().min(self.peer_window);
        self.probe || self.flight() + bytes <= room
    }

    /// How long the segment at `at` is: a whole one, unless the stream ends before.
    fn length_at(&self, at: u64) -> u64 {
        self.end.map_or(self.mss, |end| end.saturating_sub(at).min(self.mss))
    }

    fn data(&mut self, at: u64, now: Duration) -> ToSend {
        let bytes = self.length_at(at);
        self.deadline.get_or_insert(now + self.timeout.get());
        if bytes > 0 {
            self.counters.segments += 1;
        }
        let is_end = self.end.is_some_and(|end| at + bytes >= end);
        self.segment(at, bytes, if is_end { ACK | FIN } else { ACK }, now)
    }

    fn syn(&mut self, now: Duration) -> ToSend {
        self.phase = Phase::SynSent;
        self.deadline = Some(now + self.timeout.get());
        let header = Header {
            seq: self.setup.isn,
            flags: SYN,
            window: OUR_WINDOW,
            mss: Some(self.setup.mss),
            scale: Some(0),
            timestamp: Some((stamp(now), 0)),
            ..Header::default()
        };
        ToSend { header, at: 0, bytes: 0 }
    }

    fn segment(&self, at: u64, bytes: u64, flags: u8, now: Duration) -> ToSend {
        let header = Header {
            seq: self.setup.isn.wrapping_add(1).wrapping_add(at as u32),
            ack: self.rcv_nxt,
            flags,
            window: OUR_WINDOW,
            timestamp: self.echo.map(|echo| (stamp(now), echo)),
            ..Header::default()
        };
        ToSend { header, at, bytes: bytes as usize }
    }

    /// An ACK number as a position, near what is not acknowledged.
    fn position(&self, ack: u32) -> u64 {
        let una = self.setup.isn.wrapping_add(1).wrapping_add(self.una as u32);
        self.una.wrapping_add_signed(i64::from(ack.wrapping_sub(una).cast_signed()))
    }

    fn note(&mut self, at: Duration) {
        let point = WindowPoint { at, cwnd_bytes: self.window.bytes(), delivered_bytes: self.una };
        let is_due = self.record.last().is_none_or(|last| at >= last.at + BETWEEN_POINTS);
        if is_due && self.record.len() < MOST_POINTS {
            self.record.push(point);
        }
    }
}

/// The clock of our timestamps: milliseconds, from 1, because 0 looks like none.
fn stamp(now: Duration) -> u32 {
    (now.as_millis() as u32).wrapping_add(1)
}

/// The largest segment on a link that takes packets of `mtu` bytes.
pub(super) const fn largest_segment(mtu: u16) -> u16 {
    mtu.saturating_sub((2 * TCP_BYTES) as u16)
}

/// Nothing but ACKs ever comes.
const OUR_WINDOW: u16 = u16::MAX;
const BETWEEN_POINTS: Duration = Duration::from_millis(1);
/// Two minutes of points.
const MOST_POINTS: usize = 120_000;
