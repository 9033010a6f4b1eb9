//! A slow reference for TCP inside tunnels.

use rxo_frame::{ChecksumStatus, Frame};

use super::refuse::{data_header, first_broken, ip_header, is_elsewhere, is_marked_ce};
use super::{Group, Oracle, Rules, differ};
use crate::naive::{Content, Outer, Segment};

/// Longest header of a merged packet inside a tunnel, in bytes.
const LONGEST_HEADER: usize = 192;
/// Largest offset that can be passed to a sink.
const FURTHEST: usize = 127;

impl Oracle<'_> {
    /// Flushes all flows inside tunnels, because the new frame may belong to any of them.
    pub(super) fn flush_tunnels(&mut self) {
        self.flush_where("order", |oracle, group| oracle.segment(group[0]).outer.is_some());
    }

    pub(super) fn take_tunnel(&mut self, index: usize, outer: &Outer, content: Content) {
        let is_readable = content != Content::Unreadable;
        if let Some(reason) = outer_refusal(self.frames[index], outer, is_readable) {
            return self.pass_outer(index, outer, reason);
        }
        match content {
            Content::Unreadable => unreachable!("it was refused"),
            Content::Other => self.pass(index, "not_tcp"),
            Content::Fragment => self.pass_hidden(index, "fragment"),
            Content::Unknown => self.pass_hidden(index, "unknown_header"),
        }
    }

    pub(super) fn take_inside(&mut self, index: usize, segment: &Segment, outer: &Outer) {
        let frame = self.frames[index];
        if let Some(reason) = outer_refusal(frame, outer, true) {
            return self.pass_outer(index, outer, reason);
        }
        let trusts = self.script.setup.trusts_checksums;
        match inner_refusal(frame, (segment, outer), &self.rules, trusts) {
            None => self.take_data(index, segment),
            Some(
                reason @ ("bad_ip_checksum" | "bad_tcp_checksum" | "bad_udp_checksum"
                | "extension_header"),
            ) => self.pass_hidden(index, reason),
            Some(reason) => {
                if let Some(held) = self.take_held(segment) {
                    self.flush(held, "order");
                }
                self.pass(index, reason);
            }
        }
    }

    fn pass_hidden(&mut self, index: usize, reason: &'static str) {
        self.flush_tunnels();
        self.pass(index, reason);
    }

    /// Passes a packet whose outer headers violate a rule. It also counts as a packet between its outer
    /// hosts.
    fn pass_outer(&mut self, index: usize, outer: &Outer, reason: &'static str) {
        self.flush_tunnels();
        let ends = &outer.segment.ends;
        match reason {
            "bad_ip_checksum" => {
                self.flush_ends(ends);
                self.pass(index, reason);
            }
            "extension_header" => self.take_hidden(index, ends, reason),
            _ => self.pass(index, reason),
        }
    }

    /// Returns the reason why the tunnel's headers prevent appending `next` to `held`; `None` if they permit
    /// it.
    pub(super) fn difference_around(&self, held: &Group, next: &Segment) -> Option<&'static str> {
        let outer = next.outer.as_ref()?;
        let others: Vec<&Segment> = held.iter().map(|index| self.segment(*index)).collect();
        let all: Vec<&Outer> = others.iter().filter_map(|other| other.outer.as_deref()).collect();
        let (first, last) = (others[0], all[all.len() - 1]);
        let payload: usize = others.iter().map(|other| other.payload.len()).sum();
        let bytes = first.payload_at - outer.segment.network_at + payload + next.payload.len();
        let alike = (&outer.alike, outer.has_checksum) == (&last.alike, last.has_checksum);
        first_broken(&[
            ("link_changed", !alike),
            ("ip_id", !outer.segment.v6 && !ids_follow(&all, outer)),
            ("byte_limit", bytes > self.rules.max_bytes),
        ])
    }
}

fn ids_follow(held: &[&Outer], next: &Outer) -> bool {
    let mut ids: Vec<u16> = held.iter().map(|outer| outer.segment.id).collect();
    ids.push(next.segment.id);
    differ::are_fixed(&ids, next.segment.dont_fragment).is_some()
}

fn outer_refusal<B>(frame: &Frame<B>, outer: &Outer, is_readable: bool) -> Option<&'static str> {
    let Outer { segment, fits, alike, .. } = outer;
    let has_any = if segment.v6 { segment.between.len() > 1 } else { !segment.between.is_empty() };
    first_broken(&[
        ("already_aggregated", frame.gso.is_some()),
        ("bad_ip_checksum", !segment.ip_checksum_ok),
        ("reserved_bit", segment.reserved_bit),
        ("extension_header", segment.odd_extensions),
        ("ip_options", has_any),
        ("udp_tunnel", !is_readable),
        ("udp_length", !fits),
        ("udp_tunnel", alike.len() >= FURTHEST || segment.transport_at > FURTHEST),
    ])
}

fn inner_refusal<B>(
    frame: &Frame<B>,
    (segment, outer): (&Segment, &Outer),
    rules: &Rules,
    trusts: bool,
) -> Option<&'static str> {
    let is_partial = matches!(frame.checksum, ChecksumStatus::Partial { .. });
    let around = &outer.segment;
    ip_header(segment, rules).or_else(|| data_header(segment, rules)).or_else(|| {
        first_broken(&[
            ("udp_tunnel", segment.payload_at > LONGEST_HEADER),
            ("ce_mark", is_marked_ce(around) && !rules.merges_ce),
            ("too_large", around.packet_bytes() > rules.max_bytes),
            ("checksum_elsewhere", is_elsewhere(frame.checksum, segment)),
            ("bad_tcp_checksum", !trusts && !is_partial && !segment.checksum_ok),
            ("bad_udp_checksum", !trusts && !outer.checksum_ok),
        ])
    })
}
