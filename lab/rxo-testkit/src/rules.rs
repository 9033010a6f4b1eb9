//! The policy table of the design, typed in once more.
//!
//! Not derived from the engine's `Policy`: were a profile wrong there, the oracle would agree.

use rxo_frame::Duration;

/// The rules of one policy.
#[derive(Clone, Debug)]
pub struct Rules {
    pub(crate) coalesce: bool,
    pub(crate) max_segments: usize,
    /// The whole IP packet.
    pub(crate) max_bytes: usize,
    /// Payload only.
    pub(crate) max_payload: usize,
    pub(crate) flows: usize,
    pub(crate) ack: Change,
    pub(crate) window: Change,
    pub(crate) options: Options,
    pub(crate) psh: Psh,
    pub(crate) appends_fin: bool,
    pub(crate) any_size: bool,
    /// True if data segments with ECE join their equals.
    pub(crate) merges_ece: bool,
    /// True if segments marked CE join their equals.
    pub(crate) merges_ce: bool,
    /// True if DF must be set.
    pub(crate) needs_df: bool,
    /// True if a timestamp may echo zero.
    pub(crate) zero_echo: bool,
    pub(crate) merges_extensions: bool,
    pub(crate) hold: HoldRule,
    /// The bound of a hold that outlasts a poll.
    pub(crate) max_hold: Duration,
    pub(crate) pure_acks: PureAcks,
    pub(crate) max_acks: usize,
    /// In single form: of so many ACKs in a row at least one is delivered.
    pub(crate) keep_every: usize,
    pub(crate) sack_superset: bool,
    /// True if UDP datagrams of equal size join.
    pub(crate) udp: bool,
    /// True if TCP joins inside tunnels.
    pub(crate) tunnels: bool,
}

/// The treatment of pure ACKs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PureAcks {
    /// They pass.
    Bypass,
    /// They are aggregated; the receiver sees the last.
    Single,
    /// They are aggregated; the receiver sees a record of each.
    Record,
}

/// The permitted changes of a number from segment to segment.
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
    /// Closes; with nothing held it is not held.
    ClosesAloneAsIs,
}

/// Until when segments are held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HoldRule {
    /// The end of the poll.
    EndOfPoll,
    /// Every so many polls.
    Polls(u32),
    /// Every so many packets.
    Packets(u32),
    /// So long after the first arrived.
    Time(Duration),
    /// As the receiver's load allows.
    Auto {
        /// The longest time.
        budget: Duration,
        /// The most polls.
        polls: u32,
    },
}

const BIGGEST_PACKET: usize = 65_535;
const KIB: usize = 1024;
const MTU: usize = 1500;

impl Rules {
    /// The column of the table with this name.
    ///
    /// # Panics
    /// When there is none.
    #[must_use]
    pub fn of(policy: &str) -> Self {
        let inet_lro = Self::inet_lro();
        match policy {
            "inet-lro" => inet_lro,
            "gallatin-2007" => Self { pure_acks: PureAcks::Single, ..inet_lro },
            "menon-2008" => Self {
                max_segments: 20,
                max_bytes: BIGGEST_PACKET,
                flows: 64,
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
            max_segments: usize::MAX,
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
            merges_extensions: true,
            ..inet_lro
        }
    }

    /// Returns true if tunnels are looked into.
    #[must_use]
    pub fn looks_inside(&self) -> bool {
        self.coalesce && self.tunnels
    }

    /// Returns the number of pure ACKs one delivery may have; below 2 none are aggregated.
    #[must_use]
    pub fn ack_limit(&self) -> usize {
        match self.pure_acks {
            PureAcks::Single if self.coalesce => self.max_acks.min(self.keep_every),
            PureAcks::Record if self.coalesce => self.max_acks,
            _ => 0,
        }
    }

    /// Returns the longest time for which a segment may be held; `None` if only a poll's end bounds it.
    #[must_use]
    pub fn time_limit(&self) -> Option<Duration> {
        match self.hold {
            HoldRule::EndOfPoll => None,
            HoldRule::Time(limit) | HoldRule::Auto { budget: limit, .. } => Some(limit),
            HoldRule::Polls(_) | HoldRule::Packets(_) => Some(self.max_hold),
        }
    }
}
