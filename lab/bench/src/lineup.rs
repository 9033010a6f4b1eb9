//! The line-up of a race: every requested engine, in every configuration worth a row.

use clap::ValueEnum;
use rxo_coalesce::PureAckRule;
use rxo_testkit::{Traffic, Workload};
use rxo_wire::checksum::Summer;
use serde::Serialize;

use crate::contender::{Acks, Contender, Rxo};

/// The name of an engine on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum EngineName {
    /// This project's engine.
    Rxo,
    /// DPDK's `rte_gro`, lightweight mode.
    Dpdk,
    /// The Rust crate of that name.
    TunRs,
}

impl EngineName {
    /// The name in tables and JSON.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Rxo => "rxo",
            Self::Dpdk => "dpdk",
            Self::TunRs => "tun-rs",
        }
    }

    /// Returns the reason why this build does not have it; `None` if it has.
    pub(crate) const fn missing(self) -> Option<&'static str> {
        match self {
            Self::Dpdk if !cfg!(feature = "dpdk") => {
                Some("install libdpdk-dev and build with the feature `dpdk`")
            }
            Self::TunRs if !cfg!(feature = "tun-rs") => Some("build with the feature `tun-rs`"),
            _ => None,
        }
    }
}

/// Whether payloads are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Checksum {
    /// Headers only: the checksum is assumed to be right.
    Trusted,
    /// Every TCP checksum is computed.
    Verified,
}

/// The traffic of one workload, in two sizes. Contenders that read headers only, and those that
/// read payloads too, each get as much as fits into a second-level cache of 2 MiB.
pub(crate) struct Course {
    kind: Workload,
    headers: Traffic,
    payloads: Traffic,
}

/// Packets of a pass that reads headers only: 256 KiB of header lines.
const HEADER_PACKETS: usize = 2_048;
/// Packets of such a pass if the processor must not learn branches or tables by heart.
const LONG_HEADER_PACKETS: usize = 8_192;
/// Packets of a pass that reads payloads: 384 KiB, and as much again if they are copied.
const PAYLOAD_PACKETS: usize = 256;
const SEED: u64 = 1;
/// The ways to aggregate pure ACKs.
pub(crate) const PURE_ACKS: [(&str, Acks); 4] = [
    ("last ACK shown", Acks { rule: PureAckRule::Single, ..Acks::NONE }),
    ("ACKs recorded", Acks { rule: PureAckRule::Record, ..Acks::NONE }),
    ("shown, polls of 256", Acks { rule: PureAckRule::Single, batch_frames: 256 }),
    ("recorded, polls of 256", Acks { rule: PureAckRule::Record, batch_frames: 256 }),
];

/// The variant of DPDK whose caller reads the packet types.
pub(crate) const READS_TYPES: &str = "reads types";

impl Course {
    /// Makes the packets.
    pub(crate) fn new(kind: Workload) -> Self {
        let packets = match kind {
            Workload::Mixed | Workload::ManyFlows(_) => LONG_HEADER_PACKETS,
            _ => HEADER_PACKETS,
        };
        Self {
            kind,
            headers: Traffic::new(kind, packets, SEED),
            payloads: Traffic::new(kind, PAYLOAD_PACKETS, SEED),
        }
    }

    /// The workload's name.
    pub(crate) const fn name(&self) -> &'static str {
        self.kind.name()
    }

    /// The packets for contenders of this kind.
    pub(crate) const fn traffic(&self, checksum: Checksum) -> &Traffic {
        match checksum {
            Checksum::Trusted => &self.headers,
            Checksum::Verified => &self.payloads,
        }
    }

    /// All contenders of these engines.
    pub(crate) fn entries(&self, engines: &[EngineName]) -> Vec<Entry<'_>> {
        let asked = |engine| engines.contains(&engine);
        let mut entries = Vec::new();
        if asked(EngineName::Rxo) {
            entries.extend(self.rxo());
        }
        #[cfg(feature = "dpdk")]
        // This DPDK coalesces TCP over IPv4 only; a row for others would show how fast it does nothing.
        if asked(EngineName::Dpdk)
            && !matches!(self.kind, Workload::W9 | Workload::U1 | Workload::U2)
        {
            entries.extend(self.dpdk());
        }
        #[cfg(feature = "tun-rs")]
        if asked(EngineName::TunRs) {
            let contender = crate::contender::TunRs::new(&self.payloads);
            let entry = Entry::new(EngineName::TunRs, Checksum::Verified, "copies", contender);
            entries.push(entry.by_default());
        }
        entries
    }

    fn rxo(&self) -> Vec<Entry<'_>> {
        let entry = |checksum, variant, summer| {
            let contender = Rxo::borrowed(self.traffic(checksum), summer);
            Entry::new(EngineName::Rxo, checksum, variant, contender)
        };
        let verified = |summer: Summer| {
            let entry = entry(Checksum::Verified, summer.name(), Some(summer));
            if summer == Summer::detect() { entry.by_default() } else { entry }
        };
        let pooled = Rxo::pooled(&self.headers);
        let mut entries = vec![
            entry(Checksum::Trusted, "borrowed frames", None).by_default(),
            Entry::new(EngineName::Rxo, Checksum::Trusted, "pool buffers", pooled),
        ];
        entries.extend(Summer::available().map(verified));
        if self.kind == Workload::W8 {
            entries.extend(PURE_ACKS.map(|(variant, acks)| self.acks(variant, acks)));
        }
        entries
    }

    fn acks(&self, variant: &'static str, acks: Acks) -> Entry<'_> {
        let contender = Rxo::with_acks(&self.headers, acks);
        let entry = Entry::new(EngineName::Rxo, Checksum::Trusted, variant, contender);
        Entry { acks, ..entry }
    }

    #[cfg(feature = "dpdk")]
    fn dpdk(&self) -> [Entry<'_>; 3] {
        use crate::contender::{Caller, Dpdk};
        let entry = |variant, caller| {
            let contender = Dpdk::new(&self.headers, caller);
            Entry::new(EngineName::Dpdk, Checksum::Trusted, variant, contender)
        };
        [
            entry("as it is", Caller::DoesNothing).by_default(),
            entry("caller prefetches", Caller::Prefetches),
            entry(READS_TYPES, Caller::ReadsTypes),
        ]
    }
}

/// A contender, and the labels of its rows.
pub(crate) struct Entry<'a> {
    /// Which engine.
    pub(crate) engine: EngineName,
    /// Whether it reads payloads.
    pub(crate) checksum: Checksum,
    /// How it aggregates pure ACKs.
    pub(crate) acks: Acks,
    /// Name of its configuration, if the engine has several.
    pub(crate) variant: &'static str,
    /// True if this is the engine's default configuration.
    pub(crate) is_default: bool,
    /// The engine itself, loaded.
    pub(crate) contender: Box<dyn Contender + 'a>,
}

impl<'a> Entry<'a> {
    fn new(
        engine: EngineName,
        checksum: Checksum,
        variant: &'static str,
        contender: impl Contender + 'a,
    ) -> Self {
        Self {
            engine,
            checksum,
            acks: Acks::NONE,
            variant,
            is_default: false,
            contender: Box::new(contender),
        }
    }

    fn by_default(self) -> Self {
        Self { is_default: true, ..self }
    }
}
