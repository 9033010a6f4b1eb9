//! Rate limits: the kernel's token bucket (`tbf`) on an interface.

use std::io;

use rxo_netlink::Request;

use super::Interface;
use crate::error::{Context, LabError, Result, usage};

/// The parameters of a token bucket, which limits the rate of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateLimit {
    /// The rate in bytes per second, including link-layer headers.
    pub bytes_per_s: u64,
    /// The number of bytes that may be sent at once after a pause. Must exceed both the largest packet and the
    /// bytes that the rate allows during the delay of a kernel timer (50 to 100 µs).
    pub burst_bytes: u32,
    /// The number of bytes that may wait before frames are dropped.
    pub queue_bytes: u32,
}

impl RateLimit {
    /// Creates a rate limit with a burst of 256 KiB and a queue of 2 MiB. The burst exceeds the largest GSO
    /// frame, so that the token bucket can pass every frame.
    #[must_use]
    pub const fn new(bytes_per_s: u64) -> Self {
        Self { bytes_per_s, burst_bytes: 256 * 1024, queue_bytes: 2 * 1024 * 1024 }
    }

    /// Creates a rate limit that sends as evenly as a wire: the interface sends at most two full frames at
    /// once, or the bytes that the rate allows in 100 µs if that is more. For interfaces that carry no GSO
    /// frames.
    #[must_use]
    pub fn even(bytes_per_s: u64, queue_bytes: u32) -> Self {
        let late = u32::try_from(bytes_per_s / 10_000).unwrap_or(u32::MAX);
        Self { bytes_per_s, burst_bytes: late.max(TWO_FRAMES_BYTES), queue_bytes }
    }
}

/// The length of two Ethernet frames with 1,500 bytes of IP each, plus a margin, in bytes.
const TWO_FRAMES_BYTES: u32 = 3_100;

/// Limits the rate at which the interface sends.
pub(crate) fn limit_rate(interface: &Interface<'_>, limit: RateLimit) -> Result<()> {
    if limit.bytes_per_s == 0 {
        return Err(usage("a rate limit must be above 0 bytes a second"));
    }
    match interface.change(&request(interface.index()?, limit)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(LabError::Unsupported(
            "this kernel has no token bucket (sch_tbf); limit the senders instead".into(),
        )),
        other => other.context(|| interface.cannot("limit the rate of")),
    }
}

/// Returns the request for a token bucket (`tbf`, linux/pkt_sched.h). The header of the request is the
/// structure `tcmsg` in words: family, index, handle, parent, and a word that is not used here. The kernel
/// computes the fields of the parameter block that are 0 from the 64-bit rate and the burst.
fn request(index: u32, limit: RateLimit) -> Request {
    let header = [0, index, 0, TC_H_ROOT, 0].map(u32::to_ne_bytes);
    let options: [(u16, &[u8]); 3] = [
        (TCA_TBF_PARMS, &parameters(limit)),
        (TCA_TBF_RATE64, &limit.bytes_per_s.to_ne_bytes()),
        (TCA_TBF_BURST, &limit.burst_bytes.to_ne_bytes()),
    ];
    Request::new(libc::RTM_NEWQDISC, &header.concat())
        .flags(libc::NLM_F_CREATE | libc::NLM_F_REPLACE)
        .string(libc::TCA_KIND, "tbf")
        .nest(libc::TCA_OPTIONS, &options)
}

/// Returns the bytes of `struct tc_tbf_qopt`: two rate specifications of twelve bytes, then limit, buffer and mtu.
fn parameters(limit: RateLimit) -> [u8; 36] {
    let rate = u32::try_from(limit.bytes_per_s).unwrap_or(u32::MAX);
    let mut block = [0; 12 + 12 + 12];
    // Byte 1 is the link layer (Ethernet). Without it, the kernel requires a rate table.
    block[1] = TC_LINKLAYER_ETHERNET;
    block[8..12].copy_from_slice(&rate.to_ne_bytes());
    block[24..28].copy_from_slice(&limit.queue_bytes.to_ne_bytes());
    block
}

const TC_H_ROOT: u32 = u32::MAX;
const TCA_TBF_PARMS: u16 = 1;
const TCA_TBF_RATE64: u16 = 4;
const TCA_TBF_BURST: u16 = 6;
const TC_LINKLAYER_ETHERNET: u8 = 1;
