//! Tally: the counters of a sink, and its record of the kinds of aggregates that the kernel has refused.

use std::io;

use rxo_device::SinkCounters;
use rxo_frame::{Gather, GsoKind};

use super::Written;
use super::backlog::Backlog;
use super::batch::{Batch, Sealed};
use super::refusal::{Refused, TRY_AGAIN_AFTER};

/// The counters of a sink, the kinds of aggregates that the kernel has refused, and a notice for the user.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) counters: SinkCounters,
    pub(super) refused: Refused,
    pub(super) notice: Option<String>,
    has_cut: bool,
}

impl Tally {
    /// Encodes a packet as a whole, or as its original frames if its kind was refused.
    pub(super) fn encode<'a, G: Gather<'a>>(
        &mut self,
        batch: &mut Batch<'_, 'a>,
        packet: G,
        item: usize,
    ) {
        let is_aggregate = packet.frame_count() > 1;
        let offload = packet.offload();
        let skip = is_aggregate
            && (batch.form().must_cut(offload)
                || offload.gso.is_some_and(|gso| self.refused.skip(gso.kind)));
        if !skip && batch.push(packet, item, None) {
            return;
        }
        if !is_aggregate {
            self.drop_packet(packet.frame_count());
            return;
        }
        self.counters.fallbacks += 1;
        self.encode_singly(batch, packet, item);
    }

    pub(super) fn encode_singly<'a, G: Gather<'a>>(
        &mut self,
        batch: &mut Batch<'_, 'a>,
        packet: G,
        item: usize,
    ) {
        let mut part = 0;
        packet.for_each_frame(|frame| {
            if !batch.push(frame, item, Some(part)) {
                self.drop_packet(1);
            }
            part += 1;
        });
    }

    pub(super) fn count(&mut self, batch: &Sealed<'_, '_>, from: usize, written: &Written) {
        self.counters.submissions += written.submissions;
        self.counters.bytes_copied += written.bytes_copied;
        self.counters.pieces += written.pieces;
        self.counters.packets += written.sent as u64;
        for message in &batch.list()[from..from + written.sent] {
            self.counters.bytes += message.bytes as u64;
            self.counters.frames += message.frames as u64;
        }
    }

    /// Sets the notice about segments that are sent one by one; only the first call does so.
    pub(super) fn note_cut(&mut self) {
        if !self.has_cut {
            self.has_cut = true;
            self.notice = Some(CUT_NOTICE.to_owned());
        }
    }

    /// Counts a GSO frame that was cut into `segments` segments; if 0, the frame counts as dropped.
    pub(super) fn count_segments(&mut self, segments: usize) {
        self.counters.fallbacks += 1;
        match segments.checked_sub(1) {
            Some(added) => self.counters.segments_added += added as u64,
            None => self.drop_packet(1),
        }
    }

    /// Stores a copy of a packet in the backlog; counts it as dropped if the backlog is full.
    pub(super) fn keep_copy<'a>(&mut self, backlog: &mut Backlog, packet: impl Gather<'a>) {
        if backlog.push(packet) {
            self.counters.bytes_copied_aside += packet.byte_len() as u64;
        } else {
            self.drop_packet(1);
        }
    }

    /// Counts a packet of `frames` frames as dropped.
    pub(super) fn drop_packet(&mut self, frames: usize) {
        self.counters.dropped += 1;
        self.counters.dropped_frames += frames as u64;
    }

    /// Counts an aggregate that was refused. If the kernel does not support the kind of the aggregate,
    /// records that.
    pub(super) fn count_fallback(&mut self, kind: Option<GsoKind>, error: &io::Error) {
        self.counters.fallbacks += 1;
        let not_supported = matches!(error.raw_os_error(), Some(libc::EINVAL | libc::EOPNOTSUPP));
        let Some(kind) = kind.filter(|_| not_supported) else { return };
        if self.refused.remember(kind) {
            self.notice = Some(refused_notice(kind, error));
        }
    }
}

pub(super) const CUT_NOTICE: &str = "the device does not segment the GSO frames of a tunnel that pass; their segments are sent one \
                          by one, which costs more; a tunnel over UDP needs that only without outer checksums";

/// Returns the notice for the user about the first refusal of a kind. The refusal is not an error, because a
/// device need not support this kind.
fn refused_notice(kind: GsoKind, error: &io::Error) -> String {
    let what = match kind {
        GsoKind::TcpV4 => "an aggregate of TCP over IPv4",
        GsoKind::TcpV6 => "an aggregate of TCP over IPv6",
        GsoKind::UdpFragment => "a large UDP datagram",
        GsoKind::Udp => "an aggregate of UDP",
        GsoKind::AckTemplate => "an ACK template",
    };
    let why = match error.raw_os_error() {
        Some(libc::EOPNOTSUPP) => format!("the receiver does not accept {what}"),
        _ => format!("the system refused {what} ({error})"),
    };
    format!(
        "{why}; it and the next {TRY_AGAIN_AFTER} are sent as their original frames, which costs \
         more, and then one is tried again"
    )
}
