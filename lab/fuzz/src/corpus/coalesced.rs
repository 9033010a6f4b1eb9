//! Captures before and after coalescing.

use rxo_coalesce::Policy;
use rxo_testkit::{Packet, arp, seg, udp};

use crate::expand::sample;

/// Returns a coalesced capture for every policy, and captures to coalesce.
pub(super) fn files() -> Vec<(String, Vec<u8>)> {
    let capture = pcap(&traffic());
    let coalesced = |policy: Policy| (policy.name.to_owned(), sample(&capture, policy));
    let mut files: Vec<_> = Policy::all().into_iter().map(coalesced).collect();
    let remember = files.iter().find(|(name, _)| name == "remember").cloned();
    if let Some((_, whole)) = remember {
        files.push(("remember-cut".to_owned(), whole[..whole.len() * 2 / 3].to_vec()));
    }
    files.push(("empty".to_owned(), sample(&pcap(&[]), Policy::linux_gro())));
    files.push(("still-to-be".to_owned(), capture));
    files
}

/// Makes three flows with small segments, and other packets between them.
fn traffic() -> Vec<Packet> {
    let mut packets = Vec::new();
    for n in 0..20 {
        packets.push(seg().seq(1 + 20 * n).len(20).id(n as u16).ts(n / 4, 1));
        packets.push(seg().flow(5).v6().seq(1 + 9 * n).len(9).ack(n).window(n as u16));
        packets.push(seg().flow(6).seq(1 + n).len(1).id(7).padded());
        packets.extend((n % 5 == 0).then(|| seg().pure_ack().ack(n).padded()));
    }
    packets.extend([arp(), udp().len(9), seg().seq(999).psh(), seg().fragment(3, true)]);
    packets
}

fn pcap(packets: &[Packet]) -> Vec<u8> {
    let mut file = Vec::new();
    for number in [0xa1b2_c3d4_u32, 4 << 16 | 2, 0, 0, 65_535, 1] {
        file.extend(number.to_le_bytes());
    }
    for (number, packet) in packets.iter().enumerate() {
        let bytes = packet.bytes();
        for number in [1_700_000_000, number as u32 * 17, bytes.len() as u32, bytes.len() as u32] {
            file.extend(number.to_le_bytes());
        }
        file.extend(bytes);
    }
    file
}
