//! The engine's targets: nanoseconds per packet, and the ratio of DPDK's time to the engine's.

use crate::contender::Acks;
use crate::lineup::{Cache, Checksum, Entry};

/// Workload on which DPDK's row with parsed packet types is compared, because parsing is the work there.
pub(super) const READING: &str = "bad-case";

/// Returns the target ratio of DPDK's time to rxo's; `None` if there is no target.
pub(super) fn times_faster(workload: &str, cache: Cache) -> Option<f64> {
    let (_, warm, cold) = *AGAINST_DPDK.iter().find(|(name, ..)| *name == workload)?;
    match cache {
        Cache::Warm => Some(warm),
        Cache::Cold => cold,
    }
}

/// Target ratios by workload, with warm and with cold packets.
const AGAINST_DPDK: [(&str, f64, Option<f64>); 7] = [
    ("W1", 2.0, Some(2.0)),
    ("W2", 2.0, Some(2.0)),
    ("W3", 2.0, Some(2.0)),
    ("W4", 2.0, Some(2.0)),
    ("W5", 2.0, Some(2.0)),
    ("W7", 1.8, Some(1.5)),
    (READING, 1.0 / 1.2, None),
];

/// Returns rxo's target in nanoseconds per packet; `None` if there is none.
pub(super) fn target(workload: &str, cache: Cache, entry: &Entry<'_>) -> Option<f64> {
    let of = |targets: &[(&str, f64)]| {
        targets.iter().find(|(name, _)| *name == workload).map(|(_, most)| *most)
    };
    match (entry.checksum, cache) {
        (Checksum::Trusted, Cache::Warm) if entry.acks != Acks::NONE => Some(AGGREGATED_ACKS_WARM),
        (Checksum::Trusted, Cache::Warm) if entry.is_default => of(&TRUSTED_WARM),
        (Checksum::Trusted, Cache::Cold) if entry.is_default => of(&TRUSTED_COLD),
        (Checksum::Verified, Cache::Warm) if workload == "W1" => {
            VERIFIED_W1_WARM.iter().find(|(name, _)| *name == entry.variant).map(|(_, most)| *most)
        }
        (Checksum::Verified, Cache::Cold) if workload == "W1" && entry.variant != "portable" => {
            Some(VERIFIED_W1_COLD)
        }
        _ => None,
    }
}

const TRUSTED_WARM: [(&str, f64); 10] = [
    ("W1", 8.0),
    ("W2", 20.0),
    ("W3", 13.0),
    ("W4", 20.0),
    ("W5", 18.0),
    ("W6", 12.0),
    ("W7", 13.0),
    ("W8", 10.0),
    ("W9", 14.0),
    (READING, 25.0),
];
/// Target in nanoseconds for W8 with aggregated pure ACKs.
const AGGREGATED_ACKS_WARM: f64 = 12.0;
const TRUSTED_COLD: [(&str, f64); 3] = [("W1", 18.0), ("W2", 30.0), ("W5", 28.0)];
const VERIFIED_W1_WARM: [(&str, f64); 2] = [("avx2", 45.0), ("avx512-vnni", 32.0)];
const VERIFIED_W1_COLD: f64 = 125.0;
