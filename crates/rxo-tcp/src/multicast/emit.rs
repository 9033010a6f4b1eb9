//! Chooses the next segment to send to the group.

use core::num::NonZeroU16;

use rxo_frame::{Instant, SharedBytes};
use rxo_wire::tcp::Timestamp;
use rxo_wire::{SeqNumber, TcpFlags};

use super::tree::MemberMinimum;
use super::{Group, Repairs};
use crate::options::OptionBytes;
use crate::timestamps::Timestamps;
use crate::{Text, Transmit};

impl Group {
    /// Appends as much of `text` as fits, without a copy, and removes it from `text`. Returns the number of
    /// bytes.
    pub fn write(&mut self, text: &mut SharedBytes) -> usize {
        self.text.write(text)
    }

    /// Returns the free space for data in bytes; 0 after [`Group::finish`].
    #[must_use]
    pub fn room(&self) -> u32 {
        self.text.room()
    }

    /// Ends the stream: a FIN is sent after the data written so far.
    pub fn finish(&mut self) {
        self.text.finish();
    }

    /// Returns `true` if the whole stream has been sent, including the FIN.
    #[must_use]
    pub fn has_sent_all(&self) -> bool {
        self.text.length().is_some_and(|length| self.nxt > length)
    }

    /// Returns the next segment or GSO frame of new data for the group, or `None` if nothing may be sent. The
    /// ACK number and the window of the segment have no meaning. The returned segment counts as sent. After
    /// every event, call this method until it returns `None`.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Transmit<'_>> {
        if let Some(controller) = &mut self.controller {
            controller.forget_repairs(now);
        }
        let Some((bytes, ends)) = self.next_send() else {
            let waits = self.waits();
            self.hold(waits, now);
            self.run_late_clock(waits, now);
            if waits {
                self.wait_for(now);
            } else {
                self.wait_no_more();
                self.slow_check.forget_pace();
            }
            return None;
        };
        self.wait_no_more();
        self.run_late_clock(false, now);
        let (start, end) = (self.nxt, self.nxt + u64::from(bytes));
        self.nxt = end + u64::from(ends);
        self.sends.push(self.nxt, now);
        if self.config.repairs == Repairs::Parity {
            self.blocks.sent((start, end), self.mss, now);
        }
        Some(self.segment((start, end), ends, now))
    }

    /// Returns the number of bytes to send now, and `true` if a FIN follows. Returns `None` if nothing may be
    /// sent.
    fn next_send(&self) -> Option<(u32, bool)> {
        let least = self.tree.least();
        if !self.is_started || least == MemberMinimum::NONE || self.has_sent_all() {
            return None;
        }
        let unsent = self.text.end() - self.nxt;
        let allowed = least.limit.min(self.controlled_limit()).saturating_sub(self.nxt);
        let most = unsent.min(allowed).min(self.config.large_send_bytes.max(self.mss).into());
        // `most` is at most a GSO frame, so it fits.
        let most = most as u32;
        let ends = self.text.length().is_some() && u64::from(most) == unsent;
        if ends {
            return Some((most, true));
        }
        let full = most - most % self.mss;
        (full > 0).then_some((full, false))
    }

    /// Returns `true` if the group waits for receivers: before it can send more data, or for the last ACKs.
    fn waits(&self) -> bool {
        if !self.is_started || self.tree.least() == MemberMinimum::NONE {
            return false;
        }
        let unsent = self.text.end().saturating_sub(self.nxt);
        let has_text = unsent >= self.mss.into() || self.text.length().is_some() && unsent > 0;
        has_text || self.has_sent_all()
    }

    /// Builds a segment for the group with the stream bytes `start..end`, and a FIN if `ends` is `true`.
    pub(super) fn segment(
        &self,
        (start, end): (u64, u64),
        ends: bool,
        now: Instant,
    ) -> Transmit<'_> {
        let payload: Text<'_> = self.text.view(start, end);
        let is_large = payload.len() > self.mss as usize;
        let psh = if payload.is_empty() { TcpFlags::default() } else { TcpFlags::PSH };
        let fin = if ends { TcpFlags::FIN } else { TcpFlags::default() };
        let mut options = OptionBytes::default();
        let value = self.time_value(now);
        options.push_timestamp(Timestamp { value, echo: self.leader_name() });
        let size = is_large.then(|| u16::try_from(self.mss).unwrap_or(u16::MAX));
        Transmit {
            seq: self.seq(start),
            flags: TcpFlags::ACK | psh | fin,
            window: u16::MAX,
            options,
            payload,
            gso_size: size.and_then(NonZeroU16::new),
            ..Transmit::default()
        }
    }

    /// Returns the TSval for a segment that is sent at `now`.
    pub(super) fn time_value(&self, now: Instant) -> u32 {
        Timestamps::new(self.config.seed.timestamp_offset).clock(now)
    }

    /// Drops the data that all receivers have acknowledged, and that no parity packet may need.
    pub(super) fn drop_acknowledged(&mut self) {
        let una = self.tree.least().una.min(self.nxt);
        self.text.advance(self.blocks.advance(una));
    }

    /// Returns the data of an earlier segment to the group, for owners that send several segments at once:
    /// `bytes` bytes starting at the sequence number `seq`.
    #[must_use]
    pub fn sent_text(&self, seq: SeqNumber, bytes: u32) -> Text<'_> {
        let start = self.position(seq, self.nxt).unwrap_or(0);
        self.text.view(start, start + u64::from(bytes))
    }
}
