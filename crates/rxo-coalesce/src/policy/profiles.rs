//! Profiles: the published systems of receive coalescing, each as a policy.

use core::time::Duration;

use super::{
    AckRule, CeRule, EceRule, FinRule, Hold, IdRule, OptionRule, PayloadRule, Policy, PshRule,
    PureAckRule, TunnelRule, UdpRule, WindowRule,
};

const MAX_PACKET_BYTES: u32 = 65_535;
impl Policy {
    /// Returns every profile, in the order in which they are listed to users.
    #[must_use]
    pub fn all() -> [Self; 11] {
        [
            Self::linux_gro(),
            Self::remember(),
            Self::menon_2008(),
            Self::rsc_2006(),
            Self::rsc2(),
            Self::rsc3(),
            Self::rsc5(),
            Self::inet_lro(),
            Self::gallatin_2007(),
            Self::xen_delayed(),
            Self::none(),
        ]
    }

    /// Returns the policy that coalesces nothing: every frame is delivered as it arrived, in the same
    /// batches.
    #[must_use]
    pub const fn none() -> Self {
        let mut policy = Self::linux_gro();
        policy.name = "none";
        policy.paper = "the baseline of every comparison";
        policy.coalesce = false;
        policy.udp = UdpRule::Off;
        policy.tunnels = TunnelRule::Off;
        policy
    }

    /// Returns the policy of Linux's generic receive offload (GRO). Its aggregates can be segmented into the
    /// original packets. This policy is the default for delivery to a kernel or a guest. Linux limits only the
    /// bytes of an aggregate; this policy also limits its segments, to [`Policy::GATHERED_SEGMENTS`].
    #[must_use]
    pub const fn linux_gro() -> Self {
        Self {
            name: "linux-gro",
            paper: "Linux GRO, as its self-test states it",
            max_bytes: MAX_PACKET_BYTES,
            max_segments: Self::GATHERED_SEGMENTS,
            flows: 64,
            ack: AckRule::Equal,
            window: WindowRule::Equal,
            options: OptionRule::Identical,
            psh: PshRule::AppendThenClose,
            fin: FinRule::AppendThenClose,
            ece: EceRule::Equal,
            ip_id: IdRule::Regular,
            zero_echo: true,
            payload: PayloadRule::SameThenShorter,
            udp: UdpRule::Auto,
            tunnels: TunnelRule::Auto,
            extension_headers: true,
            ..Self::BASE
        }
    }

    /// Returns the policy that merges every segment whose differences the records preserve. It is for a
    /// receiver that reads the records.
    #[must_use]
    pub const fn remember() -> Self {
        Self {
            name: "remember",
            paper: "rxo: after Menon 2008 section 3.4, extended to window and timestamp",
            max_bytes: MAX_PACKET_BYTES,
            flows: 1_024,
            ack: AckRule::NotDecreasing,
            psh: PshRule::AppendThenClose,
            ece: EceRule::Equal,
            ce: CeRule::Equal,
            ip_id: IdRule::Regular,
            zero_echo: true,
            pure_acks: PureAckRule::Record,
            needs_records: true,
            ..Self::BASE
        }
    }

    /// Returns the policy of receive aggregation with an aggregation limit of 20 (Menon and Zwaenepoel 2008).
    #[must_use]
    pub const fn menon_2008() -> Self {
        Self {
            name: "menon-2008",
            paper: "Menon & Zwaenepoel 2008, section 3",
            max_segments: 20,
            max_bytes: MAX_PACKET_BYTES,
            flows: 1_024,
            ack: AckRule::NotDecreasing,
            options: OptionRule::TimestampOnly,
            ece: EceRule::Equal,
            zero_echo: true,
            ..Self::BASE
        }
    }

    /// Returns the policy of Linux's first large receive offload, `inet_lro`.
    #[must_use]
    pub const fn inet_lro() -> Self {
        Self::BASE
    }

    /// Returns the policy of `inet_lro` as changed for Myri10GE, which aggregates pure ACKs (Gallatin 2007).
    /// Unlike the original, this policy does not aggregate duplicate ACKs, ACKs with SACK blocks, or ACKs whose
    /// ECN flags change.
    #[must_use]
    pub const fn gallatin_2007() -> Self {
        Self {
            name: "gallatin-2007",
            paper: "Gallatin 2007, LRO ack aggregation",
            pure_acks: PureAckRule::Single,
            ..Self::BASE
        }
    }

    /// Returns the policy of receive side coalescing in a network card with four cache entries, 8 KiB buffers
    /// and an interrupt every 20 packets, about 200 µs at 1 Gb/s (Makineni et al. 2006).
    #[must_use]
    pub const fn rsc_2006() -> Self {
        Self {
            name: "rsc-2006",
            paper: "Makineni et al. 2006, section 4.1",
            max_segments: u16::MAX,
            max_bytes: MAX_PACKET_BYTES,
            buffer_bytes: 8_192,
            flows: 4,
            options: OptionRule::TimestampOnly,
            psh: PshRule::AppendThenCloseAloneAsIs,
            needs_df: true,
            zero_echo: true,
            hold: Hold::EveryNPackets(20),
            max_hold: Duration::from_micros(200),
            ..Self::BASE
        }
    }

    /// Returns the policy `rsc-2006` limited to two packets per aggregate (the paper's RSC_2).
    #[must_use]
    pub const fn rsc2() -> Self {
        Self { name: "rsc2", max_segments: 2, ..Self::rsc_2006() }
    }

    /// Returns the policy `rsc-2006` limited to three packets per aggregate (the paper's RSC_3).
    #[must_use]
    pub const fn rsc3() -> Self {
        Self { name: "rsc3", max_segments: 3, ..Self::rsc_2006() }
    }

    /// Returns the policy `rsc-2006` limited to five packets per aggregate (the paper's RSC_5).
    #[must_use]
    pub const fn rsc5() -> Self {
        Self { name: "rsc5", max_segments: 5, ..Self::rsc_2006() }
    }

    /// Returns the policy of large receive offload in Xen with delayed aggregation: delivers every second
    /// poll (Oi and Nakajima 2009).
    #[must_use]
    pub const fn xen_delayed() -> Self {
        Self {
            name: "xen-delayed",
            paper: "Oi & Nakajima 2009, section II.C",
            max_bytes: MAX_PACKET_BYTES,
            hold: Hold::EveryNthPoll(2),
            ..Self::BASE
        }
    }
}
