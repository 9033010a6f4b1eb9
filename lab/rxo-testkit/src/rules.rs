//! A second copy of the design's policy table, for the oracle.
//!
//! It is not derived from the engine's `Policy`; otherwise the oracle would share a mistake in a profile.

use rxo_frame::Duration;

/// The rules of one policy.
#[derive(Clone, Debug)]
pub struct Rules {
    pub(crate) coalesce: bool,
    pub(crate) max_segments: usize,
    /// Largest merged IP packet, in bytes.
    pub(crate) max_bytes: usize,
    /// Largest merged payload, in bytes.
    pub(crate) max_payload: usize,
    pub(crate) flows: usize,
    pub(crate) ack: Change,
    pub(crate) window: Change,
    pub(crate) options: Options,
    pub(crate) psh: Psh,
    pub(crate) appends_fin: bool,
    pub(crate) any_size: bool,
    /// `true` if the IPv4 IDs of TCP segments may be any.
    pub(crate) any_id: bool,
    /// `true` if data segments with ECE join others with ECE.
    pub(crate) merges_ece: bool,
    /// `true` if segments marked CE join others marked CE.
    pub(crate) merges_ce: bool,
    /// `true` if only segments with DF may join.
    pub(crate) needs_df: bool,
    /// `true` if a timestamp's TSecr may be zero.
    pub(crate) zero_echo: bool,
    pub(crate) merges_extensions: bool,
    pub(crate) hold: HoldRule,
    /// Time limit of a hold that outlasts a poll.
    pub(crate) max_hold: Duration,
    pub(crate) pure_acks: PureAcks,
    pub(crate) max_acks: usize,
    /// Limit for aggregated ACKs in single form: at least one of this many consecutive ACKs is delivered.
    pub(crate) keep_every: usize,
    pub(crate) sack_superset: bool,
    /// `true` if UDP datagrams of equal size join.
    pub(crate) udp: bool,
    /// `true` if TCP segments inside tunnels join.
    pub(crate) tunnels: bool,
}

/// The treatment of pure ACKs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PureAcks {
    /// Pure ACKs pass unchanged.
    Bypass,
    /// Pure ACKs are aggregated; the receiver gets only the last.
    Single,
    /// Pure ACKs are aggregated; the receiver gets a record of each.
    Record,
}

/// The permitted changes of a field from segment to segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    None,
    Forward,
    Any,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Options {
    Identical,
    OnlyTimestamp { may_go_back: bool },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Psh {
    Kept,
    Closes,
    /// Ends the aggregate; a segment without a held aggregate passes.
    ClosesAloneAsIs,
}

/// The condition that ends a hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HoldRule {
    /// The end of the poll.
    EndOfPoll,
    /// Every n-th poll.
    Polls(u32),
    /// Every n-th packet.
    Packets(u32),
    /// This time after the first segment arrived.
    Time(Duration),
    /// A time that follows the receiver's load.
    Auto {
        /// Longest time of a hold.
        budget: Duration,
        /// Most polls of a hold.
        polls: u32,
    },
}

const BIGGEST_PACKET: usize = 65_535;
const KIB: usize = 1024;
const MTU: usize = 1500;

impl Rules {
    /// Returns the rules of the policy with this name.
    ///
    /// # Panics
    /// If there is no such policy.
    #[must_use]
    pub fn of(policy: &str) -> Self {
        let inet_lro = Self::inet_lro();
        match policy {
            "inet-lro" => inet_lro,
            "gallatin-2007" => Self { pure_acks: PureAcks::Single, ..inet_lro },
            "menon-2008" => Self {
                max_segments: 20,
                max_bytes: BIGGEST_PACKET,
                flows: 1024,
                ack: Change::Forward,
                options: Options::OnlyTimestamp { may_go_back: true },
                merges_ece: true,
                zero_echo: true,
                ..inet_lro
            },
            "rsc-2006" => Self::rsc(inet_lro, usize::MAX),
            "rsc2" => Self::rsc(inet_lro, 2),
            "rsc3" => Self::rsc(inet_lro, 3),
            "rsc5" => Self::rsc(inet_lro, 5),
            "xen-delayed" => {
                Self { max_bytes: BIGGEST_PACKET, hold: HoldRule::Polls(2), ..inet_lro }
            }
            "linux-gro" => Self::linux_gro(inet_lro),
            "none" => Self { coalesce: false, ..Self::linux_gro(inet_lro) },
            "remember" => Self {
                max_bytes: BIGGEST_PACKET,
                flows: 1024,
                ack: Change::Forward,
                psh: Psh::Closes,
                merges_ece: true,
                merges_ce: true,
                any_id: false,
                zero_echo: true,
                pure_acks: PureAcks::Record,
                ..inet_lro
            },
            other => panic!("the design has no policy '{other}'"),
        }
    }

    const fn inet_lro() -> Self {
        Self {
            coalesce: true,
            max_segments: 64,
            max_bytes: 64 * KIB - MTU,
            max_payload: usize::MAX,
            flows: 8,
            ack: Change::Any,
            window: Change::Any,
            options: Options::OnlyTimestamp { may_go_back: false },
            psh: Psh::Kept,
            appends_fin: false,
            any_size: true,
            any_id: true,
            merges_ece: false,
            merges_ce: false,
            needs_df: false,
            zero_echo: false,
            merges_extensions: false,
            hold: HoldRule::EndOfPoll,
            max_hold: Duration::from_millis(1),
            pure_acks: PureAcks::Bypass,
            max_acks: 64,
            keep_every: 64,
            sack_superset: false,
            udp: false,
            tunnels: false,
        }
    }

    fn rsc(inet_lro: Self, max_segments: usize) -> Self {
        Self {
            max_segments,
            max_bytes: BIGGEST_PACKET,
            max_payload: 8 * KIB,
            flows: 4,
            options: Options::OnlyTimestamp { may_go_back: true },
            psh: Psh::ClosesAloneAsIs,
            needs_df: true,
            zero_echo: true,
            hold: HoldRule::Packets(20),
            ..inet_lro
        }
    }

    fn linux_gro(inet_lro: Self) -> Self {
        Self {
            // One gathered write takes no more.
            max_segments: 1_022,
            max_bytes: BIGGEST_PACKET,
            flows: 64,
            ack: Change::None,
            window: Change::None,
            options: Options::Identical,
            psh: Psh::Closes,
            appends_fin: true,
            merges_ece: true,
            zero_echo: true,
            any_size: false,
            any_id: false,
            merges_extensions: true,
            ..inet_lro
        }
    }

    /// Returns `true` if the packets inside tunnels are parsed.
    #[must_use]
    pub fn looks_inside(&self) -> bool {
        self.coalesce && self.tunnels
    }

    /// Returns the largest number of pure ACKs in a delivery; below 2 none are aggregated.
    #[must_use]
    pub fn ack_limit(&self) -> usize {
        match self.pure_acks {
            PureAcks::Single if self.coalesce => self.max_acks.min(self.keep_every),
            PureAcks::Record if self.coalesce => self.max_acks,
            _ => 0,
        }
    }

    /// Returns the longest time for which a segment may be held; `None` if only the end of a poll bounds it.
    #[must_use]
    pub fn time_limit(&self) -> Option<Duration> {
        match self.hold {
            HoldRule::EndOfPoll => None,
            HoldRule::Time(limit) | HoldRule::Auto { budget: limit, .. } => Some(limit),
            HoldRule::Polls(_) | HoldRule::Packets(_) => Some(self.max_hold),
        }
    }
}
