//! Modelled receivers: each acknowledges one of sixteen segments, another than its neighbour, like `rxo cast
//! receive`. They lose nothing.

use std::time::Duration;

use anyhow::{Result, ensure};
use rxo::Instant;
use rxo::live::host::{CAST_DELAYED_ACK, CAST_QUICK_ACKS, CAST_SEGMENTS_FOR_AN_ACK};
use rxo::wire::SeqNumber;

use super::frames::{self, Ack, Received, Text};
use super::wire::Flying;

/// All receivers of a cast.
#[derive(Debug)]
pub(crate) struct Receivers {
    /// Number of receivers that have asked to join.
    asked: usize,
    members: Vec<Option<Member>>,
    /// Next sequence number of the group, once a connection is open.
    next: SeqNumber,
    /// Number of segments that have arrived.
    segments: u64,
    /// The last segment that arrived.
    last: Option<Flying>,
    /// Deadline for acknowledging everything that is still unacknowledged; `None` if nothing is.
    delayed_at: Option<Instant>,
    pub(crate) counts: Counts,
}

/// Counts of received and sent segments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Payload bytes received by the group.
    pub(crate) bytes: u64,
    /// Segments to the group.
    pub(crate) segments: u64,
    pub(crate) acks: u64,
    /// Repeated data, to the group or to one receiver. The model loses nothing, so its cause is a delay of
    /// the sender's processor.
    pub(crate) repairs: u64,
}

#[derive(Clone, Debug)]
struct Member {
    ack: Ack,
    fin: Ack,
    acked: SeqNumber,
}

impl Receivers {
    /// Makes `count` receivers that have not joined.
    pub(crate) fn new(count: usize) -> Self {
        Self {
            asked: 0,
            members: vec![None; count],
            next: SeqNumber(0),
            segments: 0,
            last: None,
            delayed_at: None,
            counts: Counts::default(),
        }
    }

    /// Returns the number of open connections.
    pub(crate) fn joined(&self) -> usize {
        self.members.iter().flatten().count()
    }

    /// Returns the SYN of the next receiver, if all earlier receivers have been answered; otherwise `None`.
    pub(crate) fn next_syn(&mut self, now: Instant) -> Result<Option<Vec<u8>>> {
        if self.asked == self.members.len() || self.joined() < self.asked {
            return Ok(None);
        }
        self.asked += 1;
        frames::syn(self.asked - 1, clock(now)).map(Some)
    }

    /// Processes a frame that is not group data, and passes answers to `send`.
    pub(crate) fn receive(
        &mut self,
        received: Received,
        now: Instant,
        mut send: impl FnMut(&[u8]),
    ) -> Result<()> {
        match received {
            Received::Asks(number) => send(&frames::here_is(number)),
            Received::Opens { number, seq, clock: echo } => {
                let mut ack = Ack::new(number, false)?;
                let fin = Ack::new(number, true)?;
                send(ack.of(seq + 1, clock(now), echo));
                self.next = seq + 1;
                if let Some(member) = self.members.get_mut(number) {
                    *member = Some(Member { ack, fin, acked: seq + 1 });
                }
            }
            Received::Own(number, bytes) if bytes > 0 => {
                self.counts.repairs += 1;
                let member = self.members.get_mut(number).and_then(Option::as_mut);
                if let Some((member, last)) = member.zip(self.last) {
                    let ack = if last.is_last { &mut member.fin } else { &mut member.ack };
                    send(ack.of(last.end, clock(now), last.clock));
                    member.acked = last.end;
                }
            }
            Received::Own(..) => {}
            Received::Text(_) | Received::Other => {}
        }
        Ok(())
    }

    /// Records group data that is being sent, in order. Returns `true` if it is new. All receivers
    /// acknowledge repeated data.
    ///
    /// # Errors
    /// If data is skipped.
    pub(crate) fn expect(&mut self, text: Text, now: Instant) -> Result<bool> {
        let Text { seq, bytes, is_last, .. } = text;
        let end = seq + bytes as u32 + u32::from(is_last);
        if end - self.next <= 0 {
            self.counts.repairs += 1;
            self.delayed_at = Some(now);
            self.members.iter_mut().flatten().for_each(|member| member.acked = ISS_OF_NOBODY);
            return Ok(false);
        }
        let skipped = seq - self.next;
        ensure!(skipped == 0, "the sender skips {skipped} bytes of text before {seq:?}");
        self.next = end;
        self.counts.bytes += bytes as u64;
        Ok(true)
    }

    /// Processes a segment that has reached all receivers. Those whose turn it is acknowledge it through
    /// `send`.
    #[inline]
    pub(crate) fn arrives(&mut self, segment: Flying, now: Instant, mut send: impl FnMut(&[u8])) {
        let turn = self.segments % u64::from(CAST_SEGMENTS_FOR_AN_ACK);
        let is_for_all = self.segments < u64::from(CAST_QUICK_ACKS) || segment.is_last;
        self.segments += 1;
        self.counts.segments += 1;
        let step = if is_for_all { 1 } else { CAST_SEGMENTS_FOR_AN_ACK.into() };
        let first = if is_for_all { 0 } else { turn as usize };
        let (end, clock) = (segment.end, clock(now));
        for member in self.members.iter_mut().skip(first).step_by(step).flatten() {
            let ack = if segment.is_last { &mut member.fin } else { &mut member.ack };
            send(ack.of(end, clock, segment.clock));
            member.acked = end;
            self.counts.acks += 1;
        }
        self.last = Some(segment);
        self.delayed_at = (!segment.is_last).then(|| now + DELAYED);
    }

    /// Returns the time at which [`Receivers::on_timeout`] is due.
    pub(crate) fn poll_at(&self) -> Option<Instant> {
        self.delayed_at
    }

    /// After a pause without segments, acknowledges everything that is left, for all receivers.
    pub(crate) fn on_timeout(&mut self, now: Instant, mut send: impl FnMut(&[u8])) {
        if self.delayed_at.is_none_or(|at| at > now) {
            return;
        }
        self.delayed_at = None;
        let Some(last) = self.last else { return };
        for member in self.members.iter_mut().flatten().filter(|it| it.acked != last.end) {
            let ack = if last.is_last { &mut member.fin } else { &mut member.ack };
            send(ack.of(last.end, clock(now), last.clock));
            member.acked = last.end;
            self.counts.acks += 1;
        }
    }
}

/// Returns the receivers' timestamp clock, in milliseconds.
const fn clock(now: Instant) -> u32 {
    (now.as_nanos() / 1_000_000) as u32
}

/// A sequence number that no receiver acknowledges.
const ISS_OF_NOBODY: SeqNumber = SeqNumber(0);
const DELAYED: Duration = CAST_DELAYED_ACK;
