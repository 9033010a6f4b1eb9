//! Tests with random captures, and with random changes of a byte.

use proptest::prelude::*;
use rxo_frame::LinkKind;

use super::*;

/// Generates times that advance, stand still, jump, and sometimes go back.
fn times() -> impl Strategy<Value = Vec<i64>> {
    prop::collection::vec(prop_oneof![5 => 0..50_000_i64, 1 => -2_000_000..2_000_000_i64], 1..50)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn any_capture_comes_back(
        script in scripts(100),
        times in times(),
        policy in 0..11_usize,
        poll in prop::sample::select(vec!["packets:1", "packets:7", "packets:64", "time:20us", "host:3us"]),
        checksums in prop::sample::select(vec![ChecksumMode::Verify, ChecksumMode::Partial, ChecksumMode::Trust]),
        snaps in prop::collection::vec(prop_oneof![4 => Just(usize::MAX), 1 => 0..200_usize], 1..20),
        interfaces in 1..4_u32,
    ) {
        let link = match script.setup.link {
            LinkKind::Ethernet => LinkType::ETHERNET,
            LinkKind::RawIp => LinkType::RAW,
        };
        let mut at = START_NS;
        let mut records: Vec<Plain> = Vec::new();
        for (number, frame) in script.frames().into_iter().enumerate() {
            at = at.wrapping_add_signed(times[number % times.len()]);
            let bytes = frame.bytes();
            let kept = bytes.len().min(snaps[number % snaps.len()]);
            let number = (number as u32 / 5) % interfaces;
            let whole = bytes.len() as u32;
            let record = (number, Instant::from_nanos(at), whole, bytes[..kept].to_vec(), Vec::new());
            records.push(record);
        }
        let described = vec![interface(link); interfaces as usize];
        let policy = Policy::all()[policy % Policy::all().len()];
        let policy = Policy { tunnels: TunnelRule::On, ..policy };
        let point = Point { policy, poll: poll.parse().unwrap() };
        round(&pcapng(&described, &records), Settings { point, checksums, seed: 3 });
    }

    #[test]
    fn a_changed_file_gives_an_error_or_what_was_written(
        at: prop::sample::Index,
        by in 1_u8..,
    ) {
        let mut packets = bulk(1, 12);
        packets.extend([arp(), seg().flow(3).pure_ack()]);
        let file = ethernet(&packets);
        let (mut coalesced, _) = coalesce(&file, remember()).unwrap();
        let at = at.index(coalesced.len());
        coalesced[at] = coalesced[at].wrapping_add(by);
        if Capture::from_reader("x", Box::new(Cursor::new(coalesced.clone()))).is_err() {
            return Ok(());
        }
        if let Ok((expanded, _)) = expand(&coalesced, None) {
            // The last records of a truncated file may be missing, but no record is different.
            let [before, after] = [&file, &expanded].map(|file| read(file).0);
            prop_assert!(before.iter().map(plain).take(after.len()).eq(after.iter().map(plain)));
        }
    }

    #[test]
    fn any_bytes_after_a_section_of_ours_are_an_error_or_records(bytes: Vec<u8>) {
        let (coalesced, _) = coalesce(&ethernet(&bulk(1, 12)), remember()).unwrap();
        for end in block_ends(&coalesced) {
            let mut file = coalesced[..end].to_vec();
            file.extend_from_slice(&bytes);
            _ = expand(&file, None);
        }
    }
}
