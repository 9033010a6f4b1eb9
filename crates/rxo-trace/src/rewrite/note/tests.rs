//! Tests the codec with aggregates of the engine, and with damaged notes.

use proptest::prelude::*;
use rxo_coalesce::{Aggregate, Config, Delivery, Engine, Policy, TunnelRule};
use rxo_frame::{Frame, FrameBuffer, Instant, LinkKind};
use rxo_testkit::script::scripts;
use rxo_testkit::{Packet, geneve, seg, vxlan};
use rxo_wire::checksum::Summer;
use rxo_wire::{parse, parse_ip};

use super::*;
use crate::rewrite::merged;

/// A record, with bytes that the engine does not get.
#[derive(Clone, Debug, Default)]
struct Record {
    bytes: Vec<u8>,
    link_bytes: usize,
    original_bytes: u32,
    at_ns: u64,
    place: u64,
}

impl AsRef<[u8]> for Record {
    fn as_ref(&self) -> &[u8] {
        &self.bytes[self.link_bytes..]
    }
}

impl FrameBuffer for Record {}

impl Record {
    fn of(bytes: Vec<u8>, place: u64) -> Self {
        let original_bytes = bytes.len() as u32;
        Self { bytes, link_bytes: 0, original_bytes, at_ns: 1_700_000_000_000_000_000, place }
    }
}

/// An aggregate's merged packet and note, and the records to restore.
struct Written {
    packet: Vec<u8>,
    note: Vec<u8>,
    at_ns: u64,
    expected_place: u64,
    records: Vec<Restored>,
}

impl Written {
    fn of(aggregate: &Aggregate<'_, Record>) -> Self {
        let records: Vec<&Record> = aggregate.frames().map(|frame| &frame.bytes).collect();
        let (first, last) = (records[0], records[records.len() - 1]);
        let mut packet = Vec::new();
        let link = &first.bytes[..first.link_bytes];
        let at = merged::write(aggregate, link, Summer::detect(), &mut packet);
        let originals: Vec<Original<'_>> = records
            .iter()
            .map(|record| Original {
                bytes: &record.bytes,
                network: record.link_bytes + aggregate.network_at(),
                original_bytes: record.original_bytes,
                at_ns: record.at_ns,
                place: record.place,
            })
            .collect();
        let (mut note, at_ns, expected_place) = (Vec::new(), last.at_ns, last.place);
        let merged = Merged { bytes: &packet, at_ns, expected_place };
        write(merged, at, &originals, &mut note).unwrap();
        let records = records.into_iter().map(|record| Restored {
            bytes: record.bytes.clone().into(),
            original_bytes: record.original_bytes,
            at_ns: record.at_ns,
            place: record.place,
        });
        Self { records: records.collect(), packet, note, at_ns, expected_place }
    }

    fn merged(&self) -> Merged<'_> {
        Merged { bytes: &self.packet, at_ns: self.at_ns, expected_place: self.expected_place }
    }

    fn check(&self) {
        assert_eq!(read(self.merged(), &self.note).as_ref(), Ok(&self.records));
    }
}

/// Returns all aggregates that `policy` makes from `records` in one poll.
fn aggregates(policy: Policy, link: LinkKind, records: &[Record]) -> Vec<Written> {
    let policy = Policy { tunnels: TunnelRule::On, ..policy.with_udp_if(true) };
    let config = Config { link, trust_checksums: true, ..Config::new(policy, 1) };
    let mut engine = Engine::new(config).unwrap();
    let frame = |record: &Record| Frame::new(record.clone(), Instant::from_nanos(record.at_ns));
    let mut batch: Vec<Frame<Record>> = records.iter().map(frame).collect();
    let mut written = Vec::new();
    let mut take = |deliveries: rxo_coalesce::Deliveries<'_, Record>| {
        for delivery in deliveries.iter() {
            if let Delivery::Aggregate(aggregate) = delivery {
                written.push(Written::of(&aggregate));
            }
        }
    };
    engine.poll(&mut batch, Instant::ZERO, &mut take);
    engine.flush(Instant::ZERO, &mut take);
    written
}

/// Returns `count` ordinary segments of one flow with 1448 bytes each.
fn bulk(count: u32) -> Vec<Packet> {
    let packet = |number: u32| {
        let base = seg().seq(1_000 + number * 1_448).len(1_448).id(number as u16);
        base.ts(5_000 + number / 16, 77)
    };
    (0..count).map(packet).collect()
}

fn records(packets: &[Packet]) -> Vec<Record> {
    let record = |(place, packet): (usize, &Packet)| {
        let record = Record::of(packet.bytes(), place as u64);
        Record { at_ns: record.at_ns + place as u64 * 12_000, ..record }
    };
    packets.iter().enumerate().map(record).collect()
}

fn one(records: &[Record]) -> Written {
    let mut all = aggregates(Policy::by_name("remember").unwrap(), LinkKind::Ethernet, records);
    assert_eq!(all.len(), 1, "one aggregate");
    all.remove(0)
}

#[test]
fn a_steady_stream_takes_three_bytes_a_segment() {
    let written = one(&records(&bulk(44)));
    written.check();
    let per_segment = written.note.len() as f64 / 44.0;
    assert!(per_segment < 3.0, "{per_segment} bytes a segment");
}

#[test]
fn a_steady_stream_in_a_tunnel_takes_no_more() {
    let outers = [vxlan(), vxlan().checksum(), geneve().v6().checksum(), vxlan().v6()];
    for (outer, is_v6) in
        outers.into_iter().flat_map(|outer| [(outer.clone(), false), (outer, true)])
    {
        let within = |(n, packet): (usize, Packet)| {
            let packet = if is_v6 { packet.v6() } else { packet };
            packet.within(outer.clone().id(9 + n as u16))
        };
        let packets: Vec<_> = bulk(44).into_iter().enumerate().map(within).collect();
        let written = one(&records(&packets));
        written.check();
        let per_segment = written.note.len() as f64 / 44.0;
        assert!(per_segment < 3.0, "{per_segment} bytes a segment: {outer:?}");
    }
}

#[test]
fn acknowledgements_windows_and_timestamps_come_back() {
    let changed: Vec<Packet> = bulk(20)
        .into_iter()
        .enumerate()
        .map(|(n, packet)| packet.ack(100 + 7 * n as u32).window(500 + n as u16 % 3))
        .collect();
    one(&records(&changed)).check();
}

#[test]
fn padding_original_lengths_and_gaps_in_the_order_come_back() {
    let tiny = |n: u32| seg().seq(100 + n).len(1).id(n as u16).padded_with(n as u8);
    let mut records = records(&(0..5).map(tiny).collect::<Vec<_>>());
    for (n, record) in records.iter_mut().enumerate() {
        record.place = 10 + 3 * n as u64;
        record.original_bytes += n as u32 * 4;
        record.at_ns -= n as u64 * 1_000_007;
    }
    one(&records).check();
}

#[test]
fn link_headers_that_the_engine_is_not_shown_come_back() {
    let mut records = records(&bulk(6).into_iter().map(Packet::raw_ip).collect::<Vec<_>>());
    for (n, record) in records.iter_mut().enumerate() {
        // Link headers of different lengths and contents, because nothing guarantees that they are
        // alike.
        record.link_bytes = 16 + n / 4 * 4;
        let link: Vec<u8> = (0..record.link_bytes).map(|at| (at + n / 2) as u8).collect();
        record.bytes.splice(0..0, link);
        record.original_bytes = record.bytes.len() as u32;
    }
    let all = aggregates(Policy::by_name("remember").unwrap(), LinkKind::RawIp, &records);
    assert_eq!(all.len(), 1);
    all[0].check();
}

#[test]
fn wrong_checksums_that_were_trusted_come_back_and_the_merged_one_is_right() {
    let mut packets = bulk(4);
    packets[1] = packets[1].clone().bad_checksum();
    packets[3] = packets[3].clone().partial();
    let written = one(&records(&packets));
    written.check();
    let parsed = parse(&written.packet).unwrap();
    let summer = Summer::detect();
    assert!(rxo_wire::checksum::verify_transport(&parsed, &written.packet, summer));
}

#[test]
fn every_policy_and_both_versions_of_ip_come_back() {
    let mut made = 0;
    for policy in Policy::all() {
        let (v6, v4): (Vec<_>, Vec<_>) = (bulk(9).into_iter().map(Packet::v6).collect(), bulk(9));
        for packets in [v4, v6] {
            for written in aggregates(policy, LinkKind::Ethernet, &records(&packets)) {
                written.check();
                made += 1;
            }
        }
    }
    assert!(made > 20, "{made}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn whatever_the_engine_coalesces_comes_back(script in scripts(120), skew: u64, times: Vec<i32>) {
        let link = script.setup.link;
        let mut at_ns = 1_700_000_000_000_000_000_u64;
        let mut records = Vec::new();
        for (place, frame) in script.frames().into_iter().enumerate() {
            let step = times.get(place % times.len().max(1)).copied().unwrap_or(1_000);
            at_ns = at_ns.wrapping_add_signed(step.into());
            let place = skew.wrapping_add(place as u64);
            records.push(Record { at_ns, ..Record::of(frame.bytes().to_vec(), place) });
        }
        for policy in Policy::all() {
            for written in aggregates(policy, link, &records) {
                written.check();
                let parsed = link.read(&written.packet, parse, parse_ip);
                let parsed = parsed.unwrap();
                prop_assert!(merged::has_right_checksums(&written.packet, &parsed));
            }
        }
    }

    #[test]
    fn one_changed_byte_is_found(at: prop::sample::Index, by in 1_u8.., in_packet: bool) {
        let mut written = one(&records(&bulk(5)));
        let bytes = if in_packet { &mut written.packet } else { &mut written.note };
        let at = at.index(bytes.len());
        bytes[at] = bytes[at].wrapping_add(by);
        if let Ok(records) = read(written.merged(), &written.note) {
            // Some bytes of the merged packet are not needed for restoring the records.
            prop_assert_eq!(records, written.records);
        }
    }

    #[test]
    fn any_note_is_read_or_refused(note: Vec<u8>, packet in prop::collection::vec(any::<u8>(), 0..300)) {
        let merged = Merged { bytes: &packet, at_ns: 0, expected_place: 0 };
        prop_assert!(read(merged, &note).is_err());
    }

    #[test]
    fn a_cut_note_is_refused(keep: prop::sample::Index) {
        let written = one(&records(&bulk(5)));
        let note = &written.note[..keep.index(written.note.len())];
        prop_assert!(read(written.merged(), note).is_err());
    }
}

/// Builds a note that claims `segments` segments of one byte each in a packet of `payload_bytes`.
fn claiming(payload_bytes: usize, segments: u64) -> Result<Vec<Restored>, BadNote> {
    let packet = [seg().len(0).bytes(), vec![7; payload_bytes]].concat();
    let mut note = Vec::new();
    put_signed(&mut note, 0);
    put_number(&mut note, segments);
    [14, 20, 20].into_iter().for_each(|bytes| put_number(&mut note, bytes));
    note.push(Shape::REGULAR.0);
    put_number(&mut note, 1);
    // One byte per segment, which says that it is as predicted.
    note.resize(note.len() + segments as usize, 0);
    note.extend([0; CHECK_BYTES]);
    read(Merged { bytes: &packet, at_ns: 0, expected_place: 0 }, &note)
}

#[test]
fn a_note_describes_no_more_than_an_aggregate_can_hold() {
    let refused = |payload_bytes, segments| claiming(payload_bytes, segments).unwrap_err().0;
    assert!(refused(65_535, 65_535).contains("does not fit the packet"), "only its check is wrong");
    assert!(refused(65_536, 65_535).contains("none can be so long"));
    assert!(refused(4_000_000, 65_535).contains("none can be so long"));
    assert!(refused(65_535, 65_536).contains("invalid size"));
    assert!(refused(4_000_000, 4_000_000).contains("invalid size"));
}
