//! The rules of coalescing, as data.
//!
//! One engine implements every system of the papers: each system is a value of [`Policy`]. There is no field
//! for what no system may do: lose an ECN mark, or merge fragments, IP options, SYN, RST, URG, CWR or a
//! segment with a wrong checksum.

mod profiles;
mod settings;

use core::time::Duration;

pub use settings::{SettingError, UnknownPolicy};

use crate::Held;

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
    /// The profile's name.
    pub name: &'static str,
    /// Where the rules come from.
    pub paper: &'static str,
    /// Whether anything is coalesced at all.
    pub coalesce: bool,
    /// Most segments in an aggregate, 1 to 65,535.
    pub max_segments: u16,
    /// Most bytes of an aggregate's IP packet, headers included, up to [`Policy::most_bytes`].
    pub max_bytes: u32,
    /// Most payload bytes of an aggregate: the receive buffer of a device that fills one.
    pub buffer_bytes: u32,
    /// Most flows held at once, 1 to 4,096.
    pub flows: u16,
    /// What the acknowledgement number may do within an aggregate.
    pub ack: AckRule,
    /// What the window may do.
    pub window: WindowRule,
    /// Which TCP options may be there, and what they may do.
    pub options: OptionRule,
    /// What PSH does.
    pub psh: PshRule,
    /// What a FIN does.
    pub fin: FinRule,
    /// What segments with ECE do.
    pub ece: EceRule,
    /// What segments marked CE do.
    pub ce: CeRule,
    /// Whether DF must be set in a data segment over IPv4.
    pub needs_df: bool,
    /// Whether the timestamp of a data segment may echo zero.
    pub zero_echo: bool,
    /// Which payload sizes may follow each other.
    pub payload: PayloadRule,
    /// How pure ACKs are delivered.
    pub pure_acks: PureAckRule,
    /// Most pure ACKs in one delivery.
    pub max_acks: u16,
    /// In single form at least every Nth of a flow's pure ACKs is delivered, so that a sender whose
    /// window grows with their number is not starved (RFC 5681 section 3.1). The profiles have 64:
    /// of 2 to 64 none slowed Linux's Reno, CUBIC or BBR over 20 ms (`docs/repro/menon.md`).
    pub keep_every: u16,
    /// In single form, whether a pure ACK with SACK blocks may replace the one before it if its blocks cover
    /// the blocks of that one.
    pub sack_superset: bool,
    /// Whether UDP datagrams are coalesced.
    pub udp: UdpRule,
    /// Whether TCP inside tunnels is coalesced.
    pub tunnels: TunnelRule,
    /// Whether equal IPv6 extension headers may be merged.
    pub extension_headers: bool,
    /// How long a segment may be held.
    pub hold: Hold,
    /// The longest time that a segment is held if `hold` counts polls or packets.
    pub max_hold: Duration,
    /// Whether the receiver must be able to read each segment's acknowledgement number, window
    /// and timestamp: the merged header alone would mislead it.
    pub needs_records: bool,
}

/// What the acknowledgement number may do from one segment to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckRule {
    /// Stay equal.
    Equal,
    /// Change in any way. The merged header has the last.
    Latest,
    /// Stay or advance. The merged header has the last, and each segment's is kept.
    NotDecreasing,
}

/// What the window may do from one segment to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowRule {
    /// Stay equal.
    Equal,
    /// Change in any way. The merged header has the last, and each segment's is kept.
    Latest,
}

/// Which TCP options may be there, and what they may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OptionRule {
    /// Any, as long as they are equal byte for byte.
    Identical,
    /// None, or only the timestamp. The merged header has the last.
    TimestampOnly,
    /// None, or only the timestamp, whose TSval must not go back. The merged header has the last.
    TimestampNotDecreasing,
}

/// What PSH does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PshRule {
    /// Sets PSH in the merged header and flushes nothing.
    Keep,
    /// Appends the segment and flushes the aggregate.
    AppendThenClose,
    /// Appends the segment and flushes the aggregate. If nothing is held, a segment with PSH bypasses.
    AppendThenCloseAloneAsIs,
}

/// What FIN does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FinRule {
    /// The segment bypasses.
    Bypass,
    /// Appends the segment and flushes the aggregate.
    AppendThenClose,
}

/// What data segments with ECE do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EceRule {
    /// They are not coalesced.
    Bypass,
    /// They are coalesced with each other.
    Equal,
}

/// How segments marked CE are treated (Congestion Experienced, RFC 3168 section 5). They are never merged with
/// segments without that mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CeRule {
    /// They are not coalesced: a host that counts marks by packets (accurate ECN, RFC 9768 section 3.2.2)
    /// must see as many packets as were marked. So must a host that gets the last of several pure ACKs.
    Bypass,
    /// They are coalesced with each other: the receiver counts segments, not packets.
    Equal,
}

/// Which payload sizes an aggregate may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PayloadRule {
    /// Any.
    Any,
    /// All as the first. A shorter one ends the aggregate, a longer one starts another. Then one number is
    /// enough to segment the aggregate.
    SameThenShorter,
}

/// How pure ACKs that advance, or that only change the window, are delivered. Others (duplicates, SACK, ACK
/// numbers that go back, ECN marks that change) are never aggregated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PureAckRule {
    /// They are delivered as they come.
    Bypass,
    /// Aggregated; only the last is delivered. For a host that expects ordinary packets.
    Single,
    /// Aggregated; the receiver reads a record of each.
    Record,
}

/// Whether UDP datagrams are coalesced, as Linux does it with `rx-udp-gro-forwarding`: datagrams of one flow
/// whose headers differ only in what follows from the one before, all of one size but the last, which may be
/// shorter, at most 64 together. The fields `max_bytes`, `buffer_bytes`, `extension_headers` and `hold` apply to
/// them too; those that name something of TCP do not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UdpRule {
    /// They are delivered as they come.
    Off,
    /// Datagrams of equal size are coalesced. The sink must be able to segment them (`GSO_UDP_L4`).
    Equal,
    /// [`UdpRule::Equal`] where the sink can segment them, otherwise [`UdpRule::Off`]. Whoever knows the sink
    /// decides; an engine that gets this coalesces none.
    Auto,
}

/// Whether TCP inside the datagrams of VXLAN and Geneve is coalesced, as Linux does it: the fields that name something
/// of TCP apply to the inner headers, `max_bytes` to the outer packet, and the headers around are equal but in what
/// follows from the one before. Pure ACKs inside tunnels are delivered as they come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TunnelRule {
    /// Packets of tunnels are delivered as they come.
    Off,
    /// TCP inside them is coalesced. The sink must be able to segment it (`VIRTIO_NET_F_GUEST_UDP_TUNNEL_GSO`).
    On,
    /// [`TunnelRule::On`] where the sink can segment it, otherwise [`TunnelRule::Off`]. Whoever knows the sink decides;
    /// an engine that gets this coalesces none.
    Auto,
}

/// How long segments are held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hold {
    /// Until the end of the poll: never while the host is idle (work-conserving).
    EndOfPoll,
    /// Until every Nth end of poll (delayed aggregation).
    EveryNthPoll(u32),
    /// Until every Nth packet (an interrupt window).
    EveryNPackets(u32),
    /// Until this long after the aggregate's first segment arrived.
    Within(Duration),
    /// While the receiver is busy and more segments are expected within the budget (Oi and Nakajima 2009,
    /// section V); see [`Hold::AUTO`]. If the receiver's load is unknown, until the end of the poll. A single
    /// segment never waits.
    Auto {
        /// The longest time that a segment is held, from the arrival of the aggregate's first segment.
        budget: Duration,
        /// The most polls at whose end anything may be in hand, the poll in which it came included.
        most_polls: u32,
    },
}

impl Hold {
    /// Adaptive hold with its usual bounds: 50 µs and 8 polls.
    pub const AUTO: Self = Self::Auto { budget: Duration::from_micros(50), most_polls: AUTO_POLLS };
}

const AUTO_POLLS: u32 = 8;
/// The largest IP packet.
const MOST_IP_BYTES: u32 = 65_535;
/// The longest aggregate of records: more than `max_segments` of any profile that has some, in jumbo frames.
const MOST_RECORDED_BYTES: u32 = 1 << 20;
/// Most datagrams that Linux coalesces (`UDP_GRO_CNT_MAX`); a kernel refuses larger ones to segment.
const MOST_DATAGRAMS: u32 = 64;

impl Policy {
    /// Most segments in an aggregate of the kernel's profile on a live path. From 16 on the cost for a byte
    /// hardly falls any more. A Linux sender's burst of 45 segments ends with PSH, so a limit of 16 or 20 leaves
    /// short rests and fewer than 16 on average; with 32 it is 18 to 20.
    pub const LIVE_MAX_SEGMENTS: u16 = 32;

    /// This policy as live paths use it unless the user says otherwise: `linux-gro`, which has no limit of its
    /// own, gets [`Policy::LIVE_MAX_SEGMENTS`].
    #[must_use]
    pub fn live(self) -> Self {
        match self.name {
            "linux-gro" => Self { max_segments: Self::LIVE_MAX_SEGMENTS, ..self },
            _ => self,
        }
    }

    /// This policy for a receiver that reads records, such as a TCP endpoint: aggregates may be longer than an IP packet.
    #[must_use]
    pub const fn for_records(mut self) -> Self {
        self.max_bytes = self.most_bytes();
        self
    }

    /// The most that `max_bytes` may be. Only a receiver of records does without the length in the merged IP header,
    /// and neither datagrams nor tunnels have records.
    #[must_use]
    pub const fn most_bytes(&self) -> u32 {
        match (self.needs_records, self.udp, self.tunnels) {
            (true, UdpRule::Off, TunnelRule::Off) => MOST_RECORDED_BYTES,
            _ => MOST_IP_BYTES,
        }
    }

    /// Whether `gso_size` alone is enough to segment an aggregate into its original packets, so that a kernel
    /// or a guest may forward it.
    #[must_use]
    pub const fn is_resegmentable(&self) -> bool {
        matches!(self.ack, AckRule::Equal)
            && matches!(self.window, WindowRule::Equal)
            && matches!(self.options, OptionRule::Identical)
            && matches!(self.payload, PayloadRule::SameThenShorter)
            && matches!(self.psh, PshRule::AppendThenClose)
    }

    /// The longest time that a segment is held; `None` if nothing is held beyond its poll.
    #[must_use]
    #[inline]
    pub const fn time_limit(&self) -> Option<Duration> {
        match self.hold {
            Hold::EndOfPoll => None,
            Hold::Within(limit) | Hold::Auto { budget: limit, .. } => Some(limit),
            Hold::EveryNthPoll(_) | Hold::EveryNPackets(_) => Some(self.max_hold),
        }
    }

    /// Most pure ACKs that may be held together; below 2, none is held.
    #[must_use]
    pub(crate) fn ack_limit(&self) -> u32 {
        match self.pure_acks {
            _ if !self.coalesce => 0,
            PureAckRule::Bypass => 0,
            PureAckRule::Single => self.max_acks.min(self.keep_every).into(),
            PureAckRule::Record => self.max_acks.into(),
        }
    }

    /// Whether UDP datagrams are coalesced.
    #[must_use]
    #[inline(always)]
    pub const fn takes_datagrams(&self) -> bool {
        self.coalesce && matches!(self.udp, UdpRule::Equal)
    }

    /// This policy for a sink that can segment UDP datagrams, or for one that cannot: decides
    /// [`UdpRule::Auto`] and changes nothing else.
    #[must_use]
    pub const fn with_udp_if(mut self, can_segment: bool) -> Self {
        if matches!(self.udp, UdpRule::Auto) {
            self.udp = if can_segment { UdpRule::Equal } else { UdpRule::Off };
        }
        self
    }

    /// Whether TCP inside tunnels is coalesced.
    #[must_use]
    #[inline(always)]
    pub const fn takes_tunnels(&self) -> bool {
        self.coalesce && matches!(self.tunnels, TunnelRule::On)
    }

    /// This policy for a sink that can segment TCP inside tunnels, or for one that cannot: decides
    /// [`TunnelRule::Auto`] and changes nothing else.
    #[must_use]
    pub const fn with_tunnels_if(mut self, can_segment: bool) -> Self {
        if matches!(self.tunnels, TunnelRule::Auto) {
            self.tunnels = if can_segment { TunnelRule::On } else { TunnelRule::Off };
        }
        self
    }

    /// Most datagrams in an aggregate.
    #[inline(always)]
    pub(crate) const fn most_datagrams(&self) -> u32 {
        let most = self.max_segments as u32;
        if most < MOST_DATAGRAMS { most } else { MOST_DATAGRAMS }
    }

    /// Whether a segment that is plain may still break a rule of the policy by itself.
    #[must_use]
    #[inline(always)]
    pub(crate) const fn refuses_plain(&self) -> bool {
        self.needs_df || !self.zero_echo
    }

    /// Whether one more segment like the last may be appended to `held`.
    #[inline(always)]
    pub(crate) fn has_room(&self, held: &Held) -> bool {
        held.segments < u32::from(self.max_segments)
            && held.packet_bytes() + held.last_payload_bytes <= self.max_bytes
            && held.payload_bytes + held.last_payload_bytes <= self.buffer_bytes
    }

    /// The number of segments like the last that may still be appended to `held`, up to `most`.
    #[inline(always)]
    pub(crate) fn room(&self, held: &Held, most: u32) -> u32 {
        let segments = u32::from(self.max_segments).saturating_sub(held.segments).min(most);
        let packet = self.max_bytes.saturating_sub(held.packet_bytes());
        let bytes = packet.min(self.buffer_bytes.saturating_sub(held.payload_bytes));
        // A division costs more than the rest of this function, and most aggregates are far from a limit.
        match u64::from(segments) * u64::from(held.last_payload_bytes) <= u64::from(bytes) {
            true => segments,
            false => bytes / held.last_payload_bytes.max(1),
        }
    }
}
