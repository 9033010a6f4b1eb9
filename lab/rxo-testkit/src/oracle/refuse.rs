//! Refuses segments that may not be coalesced at all, by the first violated rule in the documented order of
//! reasons. Differences between segments belong to [`super::differ`].

use rxo_frame::{ChecksumStatus, Frame};

use super::acks;
use super::options::{self, TIMESTAMP};
use crate::naive::Segment;
use crate::rules::{Options, PureAcks, Rules};

pub(super) const FIN: u16 = 0x001;
const SYN: u16 = 0x002;
const RST: u16 = 0x004;
pub(super) const PSH: u16 = 0x008;
pub(super) const ACK: u16 = 0x010;
const URG: u16 = 0x020;
pub(super) const ECE: u16 = 0x040;
pub(super) const CWR: u16 = 0x080;
pub(super) const AE: u16 = 0x100;
const RESERVED: u16 = 0xe00;
/// ECN codepoint for Congestion Experienced.
const CE: u8 = 3;
/// Longest header of a merged packet, in bytes.
const LONGEST_HEADER: usize = 192;

/// A rule: its name, and `true` if a segment violates it.
type Rule = (&'static str, bool);

pub(super) fn first_broken(rules: &[Rule]) -> Option<&'static str> {
    rules.iter().find(|(_, is_broken)| *is_broken).map(|(name, _)| *name)
}

/// Returns `true` if the rules for pure ACKs apply to this segment.
pub(super) fn is_ack(segment: &Segment, rules: &Rules) -> bool {
    rules.ack_limit() >= 2 && segment.payload.is_empty() && segment.outer.is_none()
}

/// Returns the reason why a segment may not be coalesced; `None` if it may.
pub(super) fn refusal<B>(
    frame: &Frame<B>,
    segment: &Segment,
    rules: &Rules,
    trusts: bool,
) -> Option<&'static str> {
    let is_udp = segment.udp_length.is_some();
    let own = match (is_udp, is_ack(segment, rules)) {
        (true, _) => datagram_header(segment, rules),
        (false, true) => ack_header(segment, rules),
        (false, false) => data_header(segment, rules),
    };
    let is_intact = is_intact(frame, segment, trusts);
    ip_header(segment, rules).or(own).or_else(|| {
        first_broken(&[
            ("already_aggregated", frame.gso.is_some()),
            ("checksum_elsewhere", is_elsewhere(frame.checksum, segment)),
            ("bad_udp_checksum", is_udp && !is_intact),
            ("bad_tcp_checksum", !is_intact),
        ])
    })
}

/// Returns `true` if a partial checksum must be completed that is not the segment's own.
pub(super) fn is_elsewhere(status: ChecksumStatus, segment: &Segment) -> bool {
    let field = if segment.udp_length.is_some() { 6 } else { 16 };
    let own = ChecksumStatus::Partial { start: segment.transport_at as u16, offset: field };
    matches!(status, ChecksumStatus::Partial { .. }) && status != own
}

pub(super) fn is_intact<B>(frame: &Frame<B>, segment: &Segment, trusts: bool) -> bool {
    trusts || frame.checksum.is_trusted() || segment.checksum_ok
}

pub(super) fn ip_header(segment: &Segment, rules: &Rules) -> Option<&'static str> {
    let has_any = if segment.v6 { segment.between.len() > 1 } else { !segment.between.is_empty() };
    let may_have = segment.v6 && rules.merges_extensions && segment.payload_at <= LONGEST_HEADER;
    first_broken(&[
        ("bad_ip_checksum", !segment.ip_checksum_ok),
        ("reserved_bit", segment.reserved_bit),
        ("extension_header", segment.odd_extensions),
        ("ip_options", has_any && !may_have),
    ])
}

/// The ports of L2TP, GTP-U, IPsec, VXLAN, VXLAN-GPE, GUE, Geneve, MPLS, and VXLAN again.
const TUNNELS: [u16; 9] = [1701, 2152, 4500, 4789, 4790, 6080, 6081, 6635, 8472];

fn datagram_header(segment: &Segment, rules: &Rules) -> Option<&'static str> {
    let bytes = segment.payload.len();
    first_broken(&[
        ("udp_tunnel", TUNNELS.contains(&segment.ports.1)),
        ("udp_length", bytes == 0 || segment.udp_length != Some(bytes + 8)),
        ("udp_checksum_zero", segment.checksum == 0),
        ("too_large", segment.packet_bytes() > rules.max_bytes || bytes > rules.max_payload),
    ])
}

pub(super) fn data_header(segment: &Segment, rules: &Rules) -> Option<&'static str> {
    let has = |flag| segment.flags & flag != 0;
    let is_empty = segment.payload.is_empty();
    first_broken(&[
        ("syn", has(SYN)),
        ("rst", has(RST)),
        ("urg", has(URG)),
        ("cwr", has(CWR)),
        ("odd_flags", has(RESERVED) || !has(ACK)),
        ("fin", has(FIN) && (is_empty || !rules.appends_fin)),
        ("ece", has(ECE) && !is_empty && !rules.merges_ece),
        ("urg", segment.urgent != 0),
        ("pure_ack", is_empty),
        ("ce_mark", is_marked_ce(segment) && !rules.merges_ce),
        ("df_clear", rules.needs_df && !segment.dont_fragment),
        ("zero_echo", echoes_zero(segment) && !rules.zero_echo),
        ("tcp_options", !options_allowed(&segment.options, rules.options)),
        (
            "too_large",
            segment.packet_bytes() > rules.max_bytes || segment.payload.len() > rules.max_payload,
        ),
        ("coalescing_off", !rules.coalesce),
    ])
}

fn ack_header(segment: &Segment, rules: &Rules) -> Option<&'static str> {
    let has = |flag| segment.flags & flag != 0;
    let shows_last = rules.pure_acks == PureAcks::Single;
    first_broken(&[
        ("syn", has(SYN)),
        ("rst", has(RST)),
        ("urg", has(URG)),
        ("fin", has(FIN)),
        ("pure_ack", has(PSH)),
        ("odd_flags", has(RESERVED) || !has(ACK)),
        ("urg", segment.urgent != 0),
        ("ce_mark", shows_last && is_marked_ce(segment) && !rules.merges_ce),
    ])
    .or_else(|| acks::refused_options(segment, rules))
}

pub(super) const fn is_marked_ce(segment: &Segment) -> bool {
    segment.traffic_class & CE == CE
}

/// Returns `true` if the only option is a timestamp whose TSecr is zero.
fn echoes_zero(segment: &Segment) -> bool {
    only_timestamp(&segment.options).is_some_and(|body| body[4..] == [0; 4])
}

/// Returns the timestamp's values if it is the only option besides padding; otherwise `None`.
pub(super) fn only_timestamp(field: &[u8]) -> Option<Vec<u8>> {
    match &options::real(field)?[..] {
        [only] if only.kind == TIMESTAMP && only.body.len() == 8 => Some(only.body.clone()),
        _ => None,
    }
}

fn options_allowed(field: &[u8], rule: Options) -> bool {
    match rule {
        Options::Identical => options::real(field).is_some(),
        Options::OnlyTimestamp { .. } => field.is_empty() || only_timestamp(field).is_some(),
    }
}
