//! For each difference in segmentation, a GSO frame and its header in which the difference occurs.

use rxo_testkit::{Packet, seg, udp};

use crate::cut_difference::Difference;
use crate::whole::Whole;

/// Creates the frame in which this difference occurs.
pub(crate) fn of(difference: Difference) -> Whole {
    let tcp = || large(seg());
    let datagrams = || large(udp());
    match difference {
        Difference::OneSegment => without_checksum(with(tcp(), 4, 3_000)),
        Difference::ManyDatagrams => with(datagrams(), 4, 10),
        Difference::HeaderLength => with(tcp(), 2, 9_999),
        Difference::OddExtensions => large(seg().v6().extension(43, &[0, 0])),
        Difference::Fragmentation => kind(datagrams(), 3),
        Difference::Trailing => bytes(tcp(), |bytes| bytes.extend([1; 9])),
        Difference::CutShort => bytes(tcp(), |bytes| bytes.truncate(bytes.len() - 9)),
        Difference::LargestSize => with(tcp(), 4, u16::MAX),
        Difference::OddDatagrams => kind(datagrams(), 0x85),
        Difference::Seed => bytes(tcp(), |bytes| bytes[50] ^= 1),
        Difference::Fragments => large(seg().fragment(0, true)),
        Difference::DatagramLength => large(udp().udp_length_lie(-4)),
        Difference::EarlyChecksum => with(Whole::of(seg().partial().frame().borrowed()), 6, 16),
        Difference::Version => bytes(tcp(), |bytes| bytes[14] = 0x65),
    }
}

fn large(packet: Packet) -> Whole {
    Whole::of(packet.len(2_500).already_aggregated(1_000).frame().borrowed())
}

/// Writes this number at this offset of the header.
fn with(mut whole: Whole, at: usize, number: u16) -> Whole {
    whole.header[at..at + 2].copy_from_slice(&number.to_ne_bytes());
    whole
}

/// Clears the flags of the header, so that it has no information about the checksum.
fn without_checksum(mut whole: Whole) -> Whole {
    whole.header[0] = 0;
    whole
}

fn kind(mut whole: Whole, kind: u8) -> Whole {
    whole.header[1] = kind;
    whole
}

fn bytes(mut whole: Whole, change: impl FnOnce(&mut Vec<u8>)) -> Whole {
    change(&mut whole.bytes);
    whole
}
