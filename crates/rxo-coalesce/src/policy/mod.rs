//! The rules of coalescing, as data.
//!
//! One engine implements every system of the papers: each system is a value of [`Policy`]. No field allows
//! actions that are always wrong: to lose an ECN mark, or to merge fragments, IPv4 options, SYN, RST, URG, CWR
//! or a segment with a wrong checksum.

mod profiles;
mod settings;

use core::time::Duration;

pub use settings::{SettingError, UnknownPolicy};

/// A coalescing policy. Every field may be changed; [`Policy::set`] does it by name.
///
/// # Examples
/// ```
/// use rxo_coalesce::{Hold, Policy};
/// use rxo_frame::Duration;
///
/// let mut policy = Policy::by_name("linux-gro")?;
/// policy.max_segments = 16;
/// policy.set("hold", "50us")?;
/// assert_eq!(policy.hold, Hold::Within(Duration::from_micros(50)));
/// assert!(policy.set("flows", "0").is_err_and(|error| error.accepted.contains("1 to 4096")));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// The name of the profile.
    pub name: &'static str,
    /// The paper or system from which the rules are taken.
    pub paper: &'static str,
    /// `false` if the policy coalesces nothing at all.
    pub coalesce: bool,
    /// The maximum number of segments in an aggregate, 1 to 65,535.
    pub max_segments: u16,
    /// The maximum length of an aggregate's IP packet, in bytes, headers included; at most
    /// [`Policy::most_bytes`].
    pub max_bytes: u32,
    /// The maximum payload of an aggregate, in bytes: the size of the receive buffer that a device fills.
    pub buffer_bytes: u32,
    /// The maximum number of flows held at once, 1 to 4,096.
    pub flows: u16,
    /// The changes of the acknowledgement number that are allowed within an aggregate.
    pub ack: AckRule,
    /// The changes of the window that are allowed within an aggregate.
    pub window: WindowRule,
    /// The TCP options that are allowed, and their changes within an aggregate.
    pub options: OptionRule,
    /// The effect of a segment with PSH.
    pub psh: PshRule,
    /// The effect of a segment with FIN.
    pub fin: FinRule,
    /// The treatment of segments with ECE.
    pub ece: EceRule,
    /// The treatment of segments marked CE.
    pub ce: CeRule,
    /// The IPv4 IDs that are allowed within an aggregate.
    pub ip_id: IdRule,
    /// `true` if only IPv4 data segments with DF are coalesced.
    pub needs_df: bool,
    /// `true` if data segments whose timestamp echoes zero may be coalesced.
    pub zero_echo: bool,
    /// The payload sizes that are allowed within an aggregate.
    pub payload: PayloadRule,
    /// Decides how pure ACKs are delivered.
    pub pure_acks: PureAckRule,
    /// The maximum number of pure ACKs in one delivery.
    pub max_acks: u16,
    /// With [`PureAckRule::Single`], at least every Nth pure ACK of a flow is delivered, because the congestion
    /// window of some senders grows with the number of ACKs (RFC 5681 section 3.1). The profiles use 64: values
    /// from 2 to 64 did not slow Linux's Reno, CUBIC or BBR over 20 ms (`docs/repro/menon.md`).
    pub keep_every: u16,
    /// With [`PureAckRule::Single`], `true` if a pure ACK with SACK blocks may replace the preceding ACK,
    /// provided that its blocks cover all blocks of that ACK.
    pub sack_superset: bool,
    /// Decides whether UDP datagrams are coalesced.
    pub udp: UdpRule,
    /// Decides whether TCP segments inside VXLAN and Geneve tunnels are coalesced.
    pub tunnels: TunnelRule,
    /// `true` if packets with equal IPv6 extension headers may be merged.
    pub extension_headers: bool,
    /// Decides how long segments are held.
    pub hold: Hold,
    /// The longest time that a segment is held if `hold` counts polls or packets.
    pub max_hold: Duration,
    /// `true` if the receiver must read each segment's acknowledgement number, window and timestamp from the
    /// records, because the merged header alone is not enough.
    pub needs_records: bool,
}

impl Policy {
    /// The policy of `inet_lro`, the Linux kernel's first large receive offload. The other profiles are written
    /// as differences from this policy. The constant is next to the fields, because it sets the default of a new
    /// field for all profiles.
    const BASE: Self = Self {
        name: "inet-lro",
        paper: "Linux inet_lro (2007), as in Oi & Nakajima 2009, section II.B",
        coalesce: true,
        max_segments: 64,
        max_bytes: 64 * 1_024 - 1_500,
        buffer_bytes: u32::MAX,
        flows: 8,
        ack: AckRule::Latest,
        window: WindowRule::Latest,
        options: OptionRule::TimestampNotDecreasing,
        psh: PshRule::Keep,
        fin: FinRule::Bypass,
        ece: EceRule::Bypass,
        ce: CeRule::Bypass,
        ip_id: IdRule::Any,
        needs_df: false,
        zero_echo: false,
        payload: PayloadRule::Any,
        pure_acks: PureAckRule::Bypass,
        max_acks: 64,
        keep_every: 64,
        sack_superset: false,
        udp: UdpRule::Off,
        tunnels: TunnelRule::Off,
        extension_headers: false,
        hold: Hold::EndOfPoll,
        max_hold: Duration::from_millis(1),
        needs_records: false,
    };
}

/// The changes of the acknowledgement number that are allowed from one segment to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckRule {
    /// The ACK number must be equal.
    Equal,
    /// The ACK number may change in any way. The merged header has the last number.
    Latest,
    /// The ACK number must not decrease. The merged header has the last number, and the records have the number
    /// of each segment.
    NotDecreasing,
}

/// The changes of the window that are allowed from one segment to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowRule {
    /// The window must be equal.
    Equal,
    /// The window may change in any way. The merged header has the last window, and the records have the window
    /// of each segment.
    Latest,
}

/// The TCP options that are allowed in an aggregate, and their changes from one segment to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OptionRule {
    /// Any options, as long as they are equal byte for byte.
    Identical,
    /// Either no option, or only the timestamp, which may change. The merged header has the last timestamp.
    TimestampOnly,
    /// Either no option, or only the timestamp, whose TSval must not decrease. The merged header has the last
    /// timestamp.
    TimestampNotDecreasing,
}

/// The effect of a segment with PSH.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PshRule {
    /// PSH is set in the merged header, and nothing is flushed.
    Keep,
    /// The segment is appended and the aggregate is flushed.
    AppendThenClose,
    /// The segment is appended and the aggregate is flushed. If its flow holds nothing, a segment with PSH
    /// bypasses.
    AppendThenCloseAloneAsIs,
}

/// The effect of a segment with FIN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FinRule {
    /// A segment with FIN bypasses.
    Bypass,
    /// The segment is appended and the aggregate is flushed.
    AppendThenClose,
}

/// The treatment of data segments with ECE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EceRule {
    /// Segments with ECE are not coalesced.
    Bypass,
    /// Segments with ECE are coalesced, but only with each other.
    Equal,
}

/// The treatment of segments marked CE (Congestion Experienced, RFC 3168 section 5). These segments are never
/// merged with segments that lack the mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CeRule {
    /// Segments marked CE are not coalesced: a host that counts marks by packets (accurate ECN, RFC 9768
    /// section 3.2.2) must receive as many packets as were marked. This rule also applies to pure ACKs with
    /// [`PureAckRule::Single`].
    Bypass,
    /// Segments marked CE are coalesced, but only with each other: the receiver counts segments, not packets.
    Equal,
}

/// The IPv4 IDs that are allowed within an aggregate of TCP segments. Datagrams always follow
/// [`IdRule::Regular`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdRule {
    /// The IDs are equal, with DF set, or each ID is one more than the ID before. A segment that continues
    /// neither pattern starts another aggregate.
    Regular,
    /// The IDs may be any, as in the papers, which do not compare them.
    Any,
}

/// The payload sizes that are allowed within an aggregate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PayloadRule {
    /// Segments of any sizes may follow one another.
    Any,
    /// All segments have the size of the first. A shorter segment ends the aggregate, and a longer segment starts
    /// another. So a single segment size is enough to segment the aggregate again.
    SameThenShorter,
}

/// Decides how pure ACKs are delivered if they acknowledge more data or only change the window. Other pure ACKs
/// are never aggregated: duplicates, most ACKs with SACK blocks (see [`Policy::sack_superset`]), and ACKs whose
/// ACK number is lower, or whose ECN flags differ, compared with the preceding ACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PureAckRule {
    /// Each pure ACK is delivered as it arrived.
    Bypass,
    /// Pure ACKs are aggregated, and only the last is delivered: for a host that expects ordinary packets.
    Single,
    /// Pure ACKs are aggregated, and the receiver reads a record of each.
    Record,
}

/// Decides whether UDP datagrams are coalesced, by the rules of Linux with `rx-udp-gro-forwarding`. Datagrams
/// of one flow are coalesced if their headers differ only in predictable fields and their sizes are equal,
/// except that the last may be shorter. An aggregate has at most 64 datagrams. The fields `max_bytes`,
/// `buffer_bytes`, `extension_headers` and `hold` apply to datagrams too; the fields of [`Policy`] for TCP
/// headers do not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UdpRule {
    /// Each datagram is delivered as it arrived.
    Off,
    /// Datagrams of equal size are coalesced. The sink must be able to segment them (`GSO_UDP_L4`).
    Equal,
    /// [`UdpRule::Equal`] if the sink can segment the aggregates, otherwise [`UdpRule::Off`]. The code that
    /// creates the sink decides ([`Policy::with_udp_if`]); an engine with this rule coalesces no datagrams.
    Auto,
}

/// Decides whether TCP inside VXLAN and Geneve tunnels is coalesced, by the rules of Linux. The fields of
/// [`Policy`] for TCP headers apply to the inner headers, and `max_bytes` to the outer packet. The outer
/// headers must be equal, except for predictable fields. Pure ACKs inside tunnels are never coalesced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TunnelRule {
    /// Each tunnel packet is delivered as it arrived.
    Off,
    /// TCP inside tunnels is coalesced. The sink must be able to segment it
    /// (`VIRTIO_NET_F_GUEST_UDP_TUNNEL_GSO`).
    On,
    /// [`TunnelRule::On`] if the sink can segment the aggregates, otherwise [`TunnelRule::Off`]. The code
    /// that creates the sink decides ([`Policy::with_tunnels_if`]); an engine with this rule coalesces no
    /// tunnel packets.
    Auto,
}

/// Decides how long segments are held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hold {
    /// Segments are held until the end of the poll, so that nothing is held while the host is idle
    /// (work-conserving).
    EndOfPoll,
    /// Segments are held until every Nth end of a poll (delayed aggregation).
    EveryNthPoll(u32),
    /// Segments are held until every Nth packet (an interrupt window).
    EveryNPackets(u32),
    /// Segments are held until this time after the arrival of the aggregate's first segment.
    Within(Duration),
    /// Segments are held while the receiver is busy and more segments are expected within the budget (Oi and
    /// Nakajima 2009, section V); see [`Hold::AUTO`]. If the receiver's load is unknown, segments are held
    /// until the end of the poll. A single segment is never held beyond its poll.
    Auto {
        /// The longest time that a segment is held, from the arrival of the aggregate's first segment.
        budget: Duration,
        /// The maximum number of polls at whose end the flow may be held, including the poll of its first
        /// segment.
        most_polls: u32,
    },
}

impl Hold {
    /// Adaptive hold with its usual bounds: 50 µs and 8 polls.
    pub const AUTO: Self = Self::Auto { budget: Duration::from_micros(50), most_polls: AUTO_POLLS };
}

const AUTO_POLLS: u32 = 8;
/// The length of the largest IP packet, in bytes.
const MOST_IP_BYTES: u32 = 65_535;
/// The longest aggregate with records, in bytes: enough for `max_segments` jumbo frames of any profile that
/// limits the number of segments.
const MOST_RECORDED_BYTES: u32 = 1 << 20;
/// The maximum number of datagrams that Linux coalesces (`UDP_GRO_CNT_MAX`); a kernel refuses to segment more.
const MOST_DATAGRAMS: u32 = 64;

impl Policy {
    /// The limit of segments per aggregate for the kernel's profile on a live path. Above 16, the cost per
    /// byte hardly falls. A Linux sender's burst of 45 segments ends with PSH, so a limit of 16 or 20 leaves
    /// short remainders and an average below 16; a limit of 32 gives 18 to 20.
    pub const LIVE_MAX_SEGMENTS: u16 = 32;

    /// The maximum number of segments that one `writev` accepts: 1,024 pieces (`IOV_MAX`) without the two pieces
    /// for the `virtio_net_hdr` and the merged header. `writev` refuses more pieces. Only aggregates of segments
    /// with fewer than 64 bytes reach this limit before the length limit of an IP packet.
    pub const GATHERED_SEGMENTS: u16 = 1_022;

    /// Returns this policy with the defaults of live paths: `linux-gro`, whose own limit is far higher, gets
    /// [`Policy::LIVE_MAX_SEGMENTS`].
    #[must_use]
    pub fn live(self) -> Self {
        match self.name {
            "linux-gro" => Self { max_segments: Self::LIVE_MAX_SEGMENTS, ..self },
            _ => self,
        }
    }

    /// Returns this policy for a receiver that reads segment records, such as a TCP endpoint: aggregates may
    /// exceed the length of an IP packet.
    #[must_use]
    pub const fn for_records(mut self) -> Self {
        self.max_bytes = self.most_bytes();
        self
    }

    /// Returns the maximum valid value of `max_bytes`. It exceeds the length of an IP packet only if the receiver
    /// reads segment records, because such a receiver does not need the length in the merged IP header. Datagrams
    /// and tunnel packets have no records.
    #[must_use]
    pub const fn most_bytes(&self) -> u32 {
        match (self.needs_records, self.udp, self.tunnels) {
            (true, UdpRule::Off, TunnelRule::Off) => MOST_RECORDED_BYTES,
            _ => MOST_IP_BYTES,
        }
    }

    /// Returns `true` if `gso_size` alone is enough to segment an aggregate into its original packets, so
    /// that a kernel or a guest may forward it.
    #[must_use]
    pub const fn is_resegmentable(&self) -> bool {
        matches!(self.ack, AckRule::Equal)
            && matches!(self.window, WindowRule::Equal)
            && matches!(self.options, OptionRule::Identical)
            && matches!(self.payload, PayloadRule::SameThenShorter)
            && matches!(self.ip_id, IdRule::Regular)
            && matches!(self.psh, PshRule::AppendThenClose)
    }

    /// Returns the longest time that a segment is held beyond its poll; `None` if no segment is held that long.
    #[must_use]
    #[inline]
    pub const fn time_limit(&self) -> Option<Duration> {
        match self.hold {
            Hold::EndOfPoll => None,
            Hold::Within(limit) | Hold::Auto { budget: limit, .. } => Some(limit),
            Hold::EveryNthPoll(_) | Hold::EveryNPackets(_) => Some(self.max_hold),
        }
    }

    /// Returns the maximum number of pure ACKs held together. If it is below 2, no pure ACKs are held.
    #[must_use]
    pub(crate) fn ack_limit(&self) -> u32 {
        match self.pure_acks {
            _ if !self.coalesce => 0,
            PureAckRule::Bypass => 0,
            PureAckRule::Single => self.max_acks.min(self.keep_every).into(),
            PureAckRule::Record => self.max_acks.into(),
        }
    }

    /// Returns `true` if UDP datagrams are coalesced.
    #[must_use]
    #[inline]
    pub const fn takes_datagrams(&self) -> bool {
        self.coalesce && matches!(self.udp, UdpRule::Equal)
    }

    /// Replaces [`UdpRule::Auto`] by [`UdpRule::Equal`] if `can_segment` is `true` (the sink can segment UDP GSO
    /// frames); otherwise by [`UdpRule::Off`]. Changes nothing else.
    #[must_use]
    pub const fn with_udp_if(mut self, can_segment: bool) -> Self {
        if matches!(self.udp, UdpRule::Auto) {
            self.udp = if can_segment { UdpRule::Equal } else { UdpRule::Off };
        }
        self
    }

    /// Returns `true` if TCP inside tunnels is coalesced.
    #[must_use]
    #[inline]
    pub const fn takes_tunnels(&self) -> bool {
        self.coalesce && matches!(self.tunnels, TunnelRule::On)
    }

    /// Replaces [`TunnelRule::Auto`] by [`TunnelRule::On`] if `can_segment` is `true` (the sink can segment TCP
    /// inside tunnels); otherwise by [`TunnelRule::Off`]. Changes nothing else.
    #[must_use]
    pub const fn with_tunnels_if(mut self, can_segment: bool) -> Self {
        if matches!(self.tunnels, TunnelRule::Auto) {
            self.tunnels = if can_segment { TunnelRule::On } else { TunnelRule::Off };
        }
        self
    }

    /// Returns the maximum number of datagrams in an aggregate.
    #[inline]
    pub(crate) const fn most_datagrams(&self) -> u32 {
        let most = self.max_segments as u32;
        if most < MOST_DATAGRAMS { most } else { MOST_DATAGRAMS }
    }

    /// Returns `true` if a plain segment may still break a static rule of the policy.
    #[must_use]
    #[inline]
    pub(crate) const fn refuses_plain(&self) -> bool {
        self.needs_df || !self.zero_echo
    }
}
