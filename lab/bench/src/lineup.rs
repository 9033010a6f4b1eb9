//! The line-up of a race: every requested engine, in every configuration that gets a row.

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
    /// The Rust crate tun-rs.
    TunRs,
}

impl EngineName {
    /// Returns the engine's name in tables and JSON.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Rxo => "rxo",
            Self::Dpdk => "dpdk",
            Self::TunRs => "tun-rs",
        }
    }

    /// Returns the reason why this build lacks the engine; `None` if it has it.
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

/// The cache level of the packets when a pass begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Cache {
    /// First- or second-level cache: a pass over the same packets has just ended.
    Warm,
    /// No cache: every line of every packet was flushed. The engine's tables stay warm, and so does the array
    /// of frames or mbufs that a driver has just filled.
    Cold,
}

/// The treatment of checksums, which decides whether payloads are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Checksum {
    /// Headers only are read: the checksum is assumed to be right.
    Trusted,
    /// Every TCP checksum is computed.
    Verified,
}

/// The traffic of one workload, in two sizes: one for contenders that read headers only, one for those that
/// read payloads. Each fits into a second-level cache of 2 MiB.
pub(crate) struct Course {
    kind: Workload,
    headers: Traffic,
    payloads: Traffic,
}

/// Packets of a pass that reads headers only: 256 KiB of header lines.
const HEADER_PACKETS: usize = 2_048;
/// Packets of a header-only pass in workloads where the processor must not learn the branches or tables.
const LONG_HEADER_PACKETS: usize = 8_192;
/// Packets of a pass that reads payloads: 384 KiB, and the same again if they are copied.
const PAYLOAD_PACKETS: usize = 256;
const SEED: u64 = 1;
/// The variants of pure ACK aggregation, with their names.
pub(crate) const PURE_ACKS: [(&str, Acks); 4] = [
    ("last ACK shown", Acks { rule: PureAckRule::Single, ..Acks::NONE }),
    ("ACKs recorded", Acks { rule: PureAckRule::Record, ..Acks::NONE }),
    ("shown, polls of 256", Acks { rule: PureAckRule::Single, batch_frames: 256 }),
    ("recorded, polls of 256", Acks { rule: PureAckRule::Record, batch_frames: 256 }),
];

/// Name of the DPDK variant whose caller parses the packet types.
pub(crate) const READS_TYPES: &str = "reads types";

impl Course {
    /// Makes the packets of the workload.
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

    /// Returns the workload's name.
    pub(crate) const fn name(&self) -> &'static str {
        self.kind.name()
    }

    /// Returns the packets for contenders with this treatment of checksums.
    pub(crate) const fn traffic(&self, checksum: Checksum) -> &Traffic {
        match checksum {
            Checksum::Trusted => &self.headers,
            Checksum::Verified => &self.payloads,
        }
    }

    /// Returns all contenders of these engines.
    pub(crate) fn entries(&self, engines: &[EngineName]) -> Vec<Entry<'_>> {
        let asked = |engine| engines.contains(&engine);
        let mut entries = Vec::new();
        if asked(EngineName::Rxo) {
            entries.extend(self.rxo());
        }
        #[cfg(feature = "dpdk")]
        // This DPDK coalesces TCP over IPv4 only, so a row for another workload would time no work.
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

/// A contender with the labels of its rows.
pub(crate) struct Entry<'a> {
    /// The contender's engine.
    pub(crate) engine: EngineName,
    /// The contender's treatment of checksums.
    pub(crate) checksum: Checksum,
    /// The contender's aggregation of pure ACKs.
    pub(crate) acks: Acks,
    /// Name of the configuration, if the engine has several; otherwise empty.
    pub(crate) variant: &'static str,
    /// `true` for the engine's default configuration.
    pub(crate) is_default: bool,
    /// The engine, loaded with the workload.
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
