//! The sender as a pure state machine: received segments and time go in, segments to send come out.
//!
//! It opens a connection, sends without end or up to a limit, repairs losses, and closes. It omits the parts
//! of RFC 9293 that a sender in a network namespace of a test never needs: data from the peer, urgent
//! pointers, simultaneous open. Loss recovery is that of RFC 5681 with the partial ACKs of RFC 6582, without
//! SACK. After a timeout it resends from the first unacknowledged byte.
//!
//! Positions in the stream are 64-bit and count from the first byte; the SYN precedes it. Time
//! counts from the start of the connection.

use std::time::Duration;

use super::WindowPoint;
use super::segment::{ACK, FIN, Header, RST, SYN, TCP_BYTES, TIMESTAMP_BYTES};
use super::timer::Timeout;
use super::window::CongestionWindow;

/// The parameters of a sender.
#[derive(Clone, Copy, Debug)]
pub(super) struct Setup {
    /// Initial sequence number.
    pub(super) isn: u32,
    /// Largest segment that the link takes, without headers.
    pub(super) mss: u16,
    /// Initial window (RFC 5681 allows 3 segments, RFC 6928 10).
    pub(super) initial_segments: u64,
    /// Length of the stream; `None` sends until stopped.
    pub(super) limit_bytes: Option<u64>,
}

/// The connection.
#[derive(Clone, Debug)]
pub(super) struct Model {
    setup: Setup,
    phase: Phase,
    /// The first byte that is not acknowledged.
    una: u64,
    /// The next byte to send.
    nxt: u64,
    /// The byte after the last byte ever sent.
    max: u64,
    mss: u64,
    window: CongestionWindow,
    /// The peer's window: the bytes that it accepts from `una` on.
    peer_window: u64,
    peer_scale: u8,
    /// The next byte expected from the peer, and its last timestamp.
    rcv_nxt: u32,
    echo: Option<u32>,
    /// The end of the sent data when the congestion window last limited us. ACKs up to it let the
    /// window grow.
    held_back_at: u64,
    duplicates: u32,
    /// The end of the sent data when the first loss was detected; `None` outside of recovery.
    recover: Option<u64>,
    /// Duplicate ACKs for data before this position are ignored (RFC 6582, section 4).
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
    /// The SYN must be sent or resent.
    Begin,
    SynSent,
    /// The ACK that completes the handshake must be sent.
    Answer,
    Open,
    /// Everything is acknowledged, including the FIN.
    Done,
    Reset,
}

/// Counters of sent and received segments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ModelCounters {
    /// Segments with payload, including retransmissions.
    pub segments: u64,
    /// Retransmitted segments.
    pub retransmissions: u64,
    /// Expirations of the retransmission timer.
    pub timeouts: u64,
    /// ACKs that advanced. The window counts these.
    pub advancing_acks: u64,
    /// Duplicate ACKs.
    pub duplicate_acks: u64,
}

/// A segment to send: its header, and its range of the stream.
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

    /// Ends the stream after the data sent so far.
    pub(super) fn stop(&mut self) {
        let end = self.end.unwrap_or(u64::MAX).min(self.max);
        self.end = Some(end);
    }

    pub(super) fn is_done(&self) -> bool {
        self.phase == Phase::Done
    }

    /// Returns true if the peer has reset the connection.
    pub(super) fn is_reset(&self) -> bool {
        self.phase == Phase::Reset
    }

    /// Returns the end of the stream, or of the data sent so far if the stream has no end yet.
    pub(super) fn sent_bytes(&self) -> u64 {
        self.end.unwrap_or(self.max).min(self.max)
    }

    pub(super) const fn counters(&self) -> ModelCounters {
        self.counters
    }

    /// Returns the growth of the window: a point for each change, at most one per millisecond.
    pub(super) fn into_record(self) -> Vec<WindowPoint> {
        self.record
    }

    /// Returns the time at which [`Self::on_timeout`] is due.
    pub(super) const fn poll_at(&self) -> Option<Duration> {
        self.deadline
    }

    /// Processes a received segment of this connection.
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
            // A repeated SYN-ACK means that our answer to the first was lost.
            Phase::Open if header.flags & SYN != 0 => self.phase = Phase::Answer,
            _ => {}
        }
    }

    /// Returns true if [`Self::poll_transmit`] would return a segment.
    pub(super) fn has_to_send(&self) -> bool {
        match self.phase {
            Phase::Begin | Phase::Answer => true,
            Phase::Open => self.resend || self.may_send(),
            Phase::SynSent | Phase::Done | Phase::Reset => false,
        }
    }

    /// Returns the next segment to send; `None` if there is none.
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

    /// Handles the timer. Does nothing before [`Self::poll_at`].
    pub(super) fn on_timeout(&mut self, now: Duration) {
        if self.deadline.is_none_or(|deadline| now < deadline) {
            return;
        }
        self.timeout.back_off();
        self.deadline = Some(now + self.timeout.get());
        match self.phase {
            Phase::SynSent => self.phase = Phase::Begin,
            // Everything is acknowledged and the peer's window is closed: probe it.
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
        // The window in a SYN is not scaled (RFC 7323, section 2.2).
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
            // The receiver or the application limits the sender, so a larger window would never be used.
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

    /// Measures a round trip. The echo is a timestamp of ours, in milliseconds.
    fn measure(&mut self, echo: u32, now: Duration) {
        let millis = stamp(now).wrapping_sub(echo);
        if millis < u32::MAX / 2 {
            self.timeout.on_round_trip(Duration::from_millis(millis.into()));
        }
    }

    /// Records whether the congestion window limits the sender. Called when nothing more can be sent.
    fn note_what_holds_back(&mut self) {
        let is_congestion = self.window.bytes() <= self.peer_window;
        if is_congestion && self.length_at(self.nxt) > 0 {
            self.held_back_at = self.nxt;
        }
    }

    fn flight(&self) -> u64 {
        self.nxt - self.una
    }

    /// Returns true if both windows have space for a whole segment or the rest of the stream, or if a window
    /// probe is due.
    fn may_send(&self) -> bool {
        let bytes = self.length_at(self.nxt);
        if bytes == 0 {
            // The FIN occupies a position of its own: once it is sent, `nxt` is past it.
            return self.end == Some(self.nxt);
        }
        let room = self.window.bytes().min(self.peer_window);
        self.probe || self.flight() + bytes <= room
    }

    /// Returns the length of the segment at `at`: full, unless the stream ends before.
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

    /// Converts an ACK number into a position near `una`.
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

/// Returns the clock of our timestamps: milliseconds from 1, because 0 looks like none.
fn stamp(now: Duration) -> u32 {
    (now.as_millis() as u32).wrapping_add(1)
}

/// Returns the largest segment for an MTU of `mtu` bytes.
pub(super) const fn largest_segment(mtu: u16) -> u16 {
    mtu.saturating_sub((2 * TCP_BYTES) as u16)
}

/// The window that this sender announces. It is never used, because only ACKs arrive.
const OUR_WINDOW: u16 = u16::MAX;
const BETWEEN_POINTS: Duration = Duration::from_millis(1);
/// The greatest number of points of the record: two minutes.
const MOST_POINTS: usize = 120_000;
