//! Compares with another parser: `pcap-parser` finds the same records.

use pcap_parser::traits::PcapNGPacketBlock;
use pcap_parser::{Block, PcapBlockOwned, PcapError, create_reader};
use proptest::prelude::*;

use crate::files::{Clock, MICROS, NANOS, Order, PcapFile, PcapNgFile, option};
use crate::read::read;

/// Original length, packet, and time in the file's unit.
type Seen = (u32, Vec<u8>, u64);

/// Returns the records that the other parser finds. It supports ticks with resolutions that are powers of
/// ten.
fn other(file: &[u8]) -> Vec<Seen> {
    let mut reader = create_reader(1 << 20, file).expect("a capture");
    let mut seen = Vec::new();
    loop {
        match reader.next() {
            Ok((bytes, block)) => {
                seen.extend(packet(&block));
                reader.consume(bytes);
            }
            Err(PcapError::Eof) => return seen,
            Err(PcapError::Incomplete(_)) => reader.refill().expect("memory can be read"),
            Err(error) => panic!("{error:?}"),
        }
    }
}

fn packet(block: &PcapBlockOwned<'_>) -> Option<Seen> {
    match block {
        PcapBlockOwned::Legacy(record) => {
            let time = u64::from(record.ts_sec) << 32 | u64::from(record.ts_usec);
            Some((record.origlen, record.data.to_vec(), time))
        }
        PcapBlockOwned::NG(Block::EnhancedPacket(block)) => {
            let time = u64::from(block.ts_high) << 32 | u64::from(block.ts_low);
            Some((block.origlen, block.packet_data().to_vec(), time))
        }
        PcapBlockOwned::NG(Block::SimplePacket(block)) => {
            Some((block.origlen, block.packet_data().to_vec(), 0))
        }
        _ => None,
    }
}

fn order() -> impl Strategy<Value = Order> {
    prop_oneof![Just(Order::Little), Just(Order::Big)]
}

fn packets() -> impl Strategy<Value = Vec<(u32, u64, Vec<u8>)>> {
    let packet = prop::collection::vec(any::<u8>(), 0..200);
    prop::collection::vec((0..4_u32, any::<u64>(), packet), 0..20)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn pcap_records_are_the_same(order in order(), is_nanos: bool, packets in packets()) {
        let mut file = PcapFile::new(order, if is_nanos { NANOS } else { MICROS });
        for (extra, time, packet) in packets {
            let (seconds, fraction) = ((time >> 32) as u32, time as u32 % 1_000_000);
            let kept = packet.len() as u32;
            file = file.claiming([seconds, fraction], [kept, kept + extra], &packet);
        }
        let records = read(&file.bytes).sound();
        let found = records.iter().map(|record| {
            let nanos = record.at.as_nanos();
            let unit = if is_nanos { 1 } else { 1_000 };
            let time = ((nanos / 1_000_000_000) << 32) | (nanos % 1_000_000_000 / unit);
            (record.original_bytes, record.bytes.as_ref().to_vec(), time)
        });
        assert_eq!(found.collect::<Vec<_>>(), other(&file.bytes));
    }

    #[test]
    fn pcapng_records_are_the_same(
        order in order(),
        packets in packets(),
        comment in "[a-z]{0,9}",
    ) {
        let clock = Clock { resolution: Some(9), offset_s: None };
        let mut file = PcapNgFile::default().section(order).interface(1, 0, "eth0", clock);
        for (extra, ticks, packet) in packets {
            let length = packet.len() as u32;
            let comment = option(order, 1, comment.as_bytes());
            file = match extra {
                0 => file.simple(length, &packet),
                _ => file.enhanced(0, ticks, length + extra, &packet, &comment),
            };
        }
        let mut is_simple = other(&file.bytes).into_iter().map(|seen| seen.2 == 0);
        let records = read(&file.bytes).sound();
        let found = records.iter().map(|record| {
            // A simple packet has no time. This reader gives it the time of the previous one.
            let time = if is_simple.next() == Some(true) { 0 } else { record.at.as_nanos() };
            (record.original_bytes, record.bytes.as_ref().to_vec(), time)
        });
        assert_eq!(found.collect::<Vec<_>>(), other(&file.bytes));
    }
}
