//! Modelled receivers: each acknowledges one of sixteen segments, another one than its neighbour, as
//! `rxo cast receive` does. Nothing is lost on the way to them.

use std::time::Duration;

use anyhow::{Result, ensure};
use rxo::Instant;
use rxo::live::host::{CAST_DELAYED_ACK, CAST_QUICK_ACKS, CAST_SEGMENTS_FOR_AN_ACK};
use rxo::wire::SeqNumber;

use super::frames::{self, Ack, Heard, Text};
use super::wire::Flying;

/// All receivers of a cast.
#[derive(Debug)]
pub(crate) struct Receivers {
    /// The number of receivers that have asked to join.
    asked: usize,
    members: Vec<Option<Member>>,
    /// The number of the next byte, once a connection is open.
    next: SeqNumber,
    /// Segments that have arrived.
    segments: u64,
    /// The last of them.
    last: Option<Flying>,
    /// When everything is acknowledged that is not yet.
    delayed_at: Option<Instant>,
    pub(crate) counts: Counts,
}

/// What the receivers have heard and said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Bytes of text that came to the group.
    pub(crate) bytes: u64,
    /// Segments to the group.
    pub(crate) segments: u64,
    pub(crate) acks: u64,
    /// Text that came again, to the group or to one receiver. Nothing is lost, so the sender was late: its processor did
    /// something else.
    pub(crate) repairs: u64,
}

#[derive(Clone, Copy, Debug)]
struct Member {
    ack: Ack,
    fin: Ack,
    acked: SeqNumber,
}

impl Receivers {
    /// Makes this many receivers. None has joined.
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

    /// The SYN of the next receiver, if all before it have been answered.
    ///
    /// # Errors
    /// None: a SYN fits into its frame.
    pub(crate) fn next_syn(&mut self, now: Instant) -> Result<Option<Vec<u8>>> {
        if self.asked == self.members.len() || self.joined() < self.asked {
            return Ok(None);
        }
        self.asked += 1;
        frames::syn(self.asked - 1, clock(now)).map(Some)
    }

    /// Hears a frame that is no text to the group, and answers through `send`.
    ///
    /// # Errors
    /// If it cannot be.
    pub(crate) fn hear(
        &mut self,
        heard: Heard,
        now: Instant,
        mut send: impl FnMut(&[u8]),
    ) -> Result<()> {
        match heard {
            Heard::Asks(number) => send(&frames::here_is(number)),
            Heard::Opens { number, seq, clock: echo } => {
                let mut ack = Ack::new(number, false)?;
                let fin = Ack::new(number, true)?;
                send(ack.of(seq + 1, clock(now), echo));
                self.next = seq + 1;
                if let Some(member) = self.members.get_mut(number) {
                    *member = Some(Member { ack, fin, acked: seq + 1 });
                }
            }
            Heard::Own(number, bytes) if bytes > 0 => {
                self.counts.repairs += 1;
                let member = self.members.get_mut(number).and_then(Option::as_mut);
                if let Some((member, last)) = member.zip(self.last) {
                    let ack = if last.is_last { &mut member.fin } else { &mut member.ack };
                    send(ack.of(last.end, clock(now), last.clock));
                    member.acked = last.end;
                }
            }
            Heard::Own(..) => {}
            Heard::Text(_) | Heard::Other => {}
        }
        Ok(())
    }

    /// Takes note of text that leaves to the group, in order. Returns whether it is new; all acknowledge what is not.
    ///
    /// # Errors
    /// If text is skipped.
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

    /// A segment has arrived at all; those whose turn it is acknowledge it through `send`.
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

    /// When [`Receivers::on_timeout`] is to be called.
    pub(crate) fn poll_at(&self) -> Option<Instant> {
        self.delayed_at
    }

    /// Nothing has come for a while: everybody acknowledges what is left.
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

/// A receiver's clock, in milliseconds.
const fn clock(now: Instant) -> u32 {
    (now.as_nanos() / 1_000_000) as u32
}

/// No number that anybody acknowledges.
const ISS_OF_NOBODY: SeqNumber = SeqNumber(0);
const DELAYED: Duration = CAST_DELAYED_ACK;
