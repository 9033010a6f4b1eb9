//! The configuration of a script's engine.

use rxo_frame::{Duration, LinkKind};

use crate::rules::{HoldRule, PureAcks, Rules};

/// Every policy of the design, by name.
pub(crate) const POLICIES: [&str; 11] = [
    "linux-gro",
    "remember",
    "menon-2008",
    "rsc-2006",
    "rsc2",
    "rsc3",
    "rsc5",
    "inet-lro",
    "gallatin-2007",
    "xen-delayed",
    "none",
];

/// The engine's configuration, independent of the engine's types.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Name of the profile.
    pub policy: &'static str,
    /// Override of the profile's `max_segments`.
    pub max_segments: Option<u16>,
    /// Override of the profile's `max_bytes`.
    pub max_bytes: Option<u32>,
    /// Override of the profile's number of flows.
    pub flows: Option<u16>,
    /// Override of the profile's hold.
    pub hold: Option<HoldRule>,
    /// Time limit of holds that outlast a poll.
    pub max_hold: Duration,
    /// Override of the profile's rule for pure ACKs.
    pub pure_acks: Option<PureAcks>,
    /// Override of the profile's `max_acks`.
    pub max_acks: Option<u16>,
    /// Override of the profile's `keep_every`.
    pub keep_every: Option<u16>,
    /// Override: `true` if a SACK list may be replaced by a later one that covers it.
    pub sack_superset: Option<bool>,
    /// Override: `true` if segments marked CE merge with each other.
    pub merges_ce: Option<bool>,
    /// Override: `true` if data segments with ECE merge with each other.
    pub merges_ece: Option<bool>,
    /// Override: `true` if the IPv4 IDs of TCP segments may be any.
    pub any_id: Option<bool>,
    /// Override: `true` if only segments with DF merge.
    pub needs_df: Option<bool>,
    /// Override: `true` if a timestamp's TSecr may be zero.
    pub zero_echo: Option<bool>,
    /// Override: `true` if UDP datagrams merge.
    pub udp: Option<bool>,
    /// Override: `true` if TCP segments inside tunnels merge.
    pub tunnels: Option<bool>,
    /// Kind of the first header of the frames.
    pub link: LinkKind,
    /// `true` if an unknown checksum is assumed to be right.
    pub trusts_checksums: bool,
    /// The contents of the TCP checksum field in a merged header.
    pub form: Form,
    /// Most frames expected in one poll.
    pub batch_frames: usize,
    /// Seed of the flow hash.
    pub seed: u64,
}

/// The forms of a merged header's TCP checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// The folded sum of the pseudo-header.
    PseudoHeader,
    /// The complete checksum.
    Complete,
    /// The first segment's checksum, unchanged.
    Verified,
}

impl Setup {
    /// Makes the profile's own configuration: Ethernet, checksums verified, memory for every frame of a test.
    #[must_use]
    pub fn new(policy: &'static str) -> Self {
        Self {
            policy,
            max_segments: None,
            max_bytes: None,
            flows: None,
            hold: None,
            max_hold: Duration::from_millis(1),
            pure_acks: None,
            max_acks: None,
            keep_every: None,
            sack_superset: None,
            merges_ce: None,
            merges_ece: None,
            any_id: None,
            needs_df: None,
            zero_echo: None,
            udp: None,
            tunnels: None,
            link: LinkKind::Ethernet,
            trusts_checksums: false,
            form: Form::PseudoHeader,
            batch_frames: 4096,
            seed: 1,
        }
    }

    /// Returns the names of all policies.
    #[must_use]
    pub const fn policies() -> [&'static str; 11] {
        POLICIES
    }

    /// Returns the rules of this configuration.
    #[must_use]
    pub fn rules(&self) -> Rules {
        let profile = Rules::of(self.policy);
        Rules {
            max_segments: self.max_segments.map_or(profile.max_segments, usize::from),
            max_bytes: self.max_bytes.map_or(profile.max_bytes, |bytes| bytes as usize),
            flows: self.flows.map_or(profile.flows, usize::from),
            hold: self.hold.unwrap_or(profile.hold),
            max_hold: self.max_hold,
            pure_acks: self.pure_acks.unwrap_or(profile.pure_acks),
            max_acks: self.max_acks.map_or(profile.max_acks, usize::from),
            keep_every: self.keep_every.map_or(profile.keep_every, usize::from),
            sack_superset: self.sack_superset.unwrap_or(profile.sack_superset),
            merges_ce: self.merges_ce.unwrap_or(profile.merges_ce),
            merges_ece: self.merges_ece.unwrap_or(profile.merges_ece),
            any_id: self.any_id.unwrap_or(profile.any_id),
            needs_df: self.needs_df.unwrap_or(profile.needs_df),
            zero_echo: self.zero_echo.unwrap_or(profile.zero_echo),
            udp: self.udp.unwrap_or(profile.udp),
            tunnels: self.tunnels.unwrap_or(profile.tunnels),
            ..profile
        }
    }

    /// Returns `true` if segmenting an aggregate must restore its packets.
    #[must_use]
    pub fn is_resegmentable(&self) -> bool {
        self.policy == "linux-gro" && self.any_id != Some(true)
    }
}
