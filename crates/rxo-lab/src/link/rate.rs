//! Rate limits: the kernel's token bucket (`tbf`) on an interface.

use std::io;

use netlink_packet_core::{DefaultNla, NLM_F_CREATE, NLM_F_REPLACE};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::tc::{TcAttribute, TcHandle, TcMessage, TcOption};

use super::Interface;
use crate::error::{Context, LabError, Result, usage};

/// Limits what the interface sends.
pub(crate) fn limit_rate(interface: &Interface<'_>, bytes_per_s: u64) -> Result<()> {
    if bytes_per_s == 0 {
        return Err(usage("a rate limit must be above 0 bytes a second"));
    }
    let mut message = TcMessage::default();
    message.header.index = interface.index()?.cast_signed();
    message.header.parent = TcHandle::ROOT;
    message.attributes =
        vec![TcAttribute::Kind("tbf".into()), TcAttribute::Options(options(bytes_per_s))];
    let request = RouteNetlinkMessage::NewQueueDiscipline(message);
    match interface.change(request, NLM_F_CREATE | NLM_F_REPLACE) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(LabError::Unsupported(
            "this kernel has no token bucket (sch_tbf); limit the senders instead".into(),
        )),
        other => other.context(|| interface.cannot("limit the rate of")),
    }
}

/// The attributes of `tbf` (linux/pkt_sched.h). The kernel works out everything that the
/// parameter block leaves at zero from the 64-bit rate and the burst.
fn options(bytes_per_s: u64) -> Vec<TcOption> {
    let option = |kind, value: Vec<u8>| TcOption::Other(DefaultNla::new(kind, value));
    vec![
        option(TCA_TBF_PARMS, parameters(bytes_per_s)),
        option(TCA_TBF_RATE64, bytes_per_s.to_ne_bytes().to_vec()),
        option(TCA_TBF_BURST, BURST_BYTES.to_ne_bytes().to_vec()),
    ]
}

/// `struct tc_tbf_qopt`: two rate specifications of twelve bytes, then limit, buffer and mtu.
fn parameters(bytes_per_s: u64) -> Vec<u8> {
    let rate = u32::try_from(bytes_per_s).unwrap_or(u32::MAX);
    let mut block = vec![0; 12 + 12 + 12];
    // Byte 1 is the link layer, without which the kernel wants a rate table: Ethernet.
    block[1] = TC_LINKLAYER_ETHERNET;
    block[8..12].copy_from_slice(&rate.to_ne_bytes());
    block[24..28].copy_from_slice(&QUEUE_BYTES.to_ne_bytes());
    block
}

const TCA_TBF_PARMS: u16 = 1;
const TCA_TBF_RATE64: u16 = 4;
const TCA_TBF_BURST: u16 = 6;
const TC_LINKLAYER_ETHERNET: u8 = 1;
/// Above the largest packet that crosses without segmentation, so that none is ever stuck.
const BURST_BYTES: u32 = 256 * 1024;
/// What waits beyond the bucket before frames are dropped.
const QUEUE_BYTES: u32 = 2 * 1024 * 1024;
