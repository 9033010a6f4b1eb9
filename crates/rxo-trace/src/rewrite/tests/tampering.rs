//! Changes every byte of a coalesced file: the original is restored, or the file is refused.

use super::*;

/// The result of expanding a changed file.
#[derive(Debug)]
enum Outcome {
    /// The whole file was restored and verified.
    Whole(Vec<u8>),
    /// The file was truncated; this is the part before the cut.
    Partial(Vec<u8>),
    /// The file was refused.
    Refused,
}

fn outcome(file: &[u8]) -> Outcome {
    let Ok(mut capture) = Capture::from_reader("x", Box::new(Cursor::new(file.to_vec()))) else {
        return Outcome::Refused;
    };
    let mut batch = Vec::new();
    let mut read = capture.read_batch(&mut batch, 50);
    let mut file = Vec::new();
    let Ok(mut expander) = Expander::new(&capture, &mut file, None) else {
        return Outcome::Refused;
    };
    let is_whole = loop {
        match read {
            Ok(0) => break expander.finish().map(|_| true),
            Err(error) => {
                break expander.finish_partial(Some(&error)).map(|_| false);
            }
            Ok(_) => {
                if expander.take(&mut batch).is_err() {
                    return Outcome::Refused;
                }
            }
        }
        read = capture.read_batch(&mut batch, 50);
    };
    match is_whole {
        Ok(true) => Outcome::Whole(file),
        Ok(false) => Outcome::Partial(file),
        Err(_) => Outcome::Refused,
    }
}

/// Changes every byte of `coalesced` in each of these ways. A whole restored file must be `original`. A
/// partial one must be a prefix of `original`.
fn tamper(original: &[u8], coalesced: &[u8], ways: &[u8]) {
    let Outcome::Whole(untouched) = outcome(coalesced) else { panic!("it does not come back") };
    assert!(untouched == original);
    let all: Vec<_> = read(original).0.iter().map(whole).collect();
    let mut refused = 0;
    for at in 0..coalesced.len() {
        for by in ways {
            let mut changed = coalesced.to_vec();
            changed[at] ^= *by;
            match outcome(&changed) {
                Outcome::Refused => refused += 1,
                Outcome::Whole(file) => {
                    assert!(file == original, "byte {at} ^ {by:#x}: another file is given back");
                }
                Outcome::Partial(file) => {
                    let given: Vec<_> = read(&file).0.iter().map(whole).collect();
                    let is_part = all.starts_with(&given);
                    assert!(is_part, "byte {at} ^ {by:#x}: another packet is given back");
                    let same = around(&file).0 == around(original).0;
                    assert!(same, "byte {at} ^ {by:#x}: another header is given back");
                }
            }
        }
    }
    // Padding, comments and the length of the section are not restored.
    assert!(refused * 4 > coalesced.len() * ways.len(), "only {refused} changes were noticed");
}

const WAYS: [u8; 4] = [0x01, 0x10, 0x80, 0xff];

/// Returns the changes to try for each byte: many for the policy with the longest notes, one for the other
/// policies.
fn ways(policy: Policy) -> &'static [u8] {
    if policy.name == "remember" { &WAYS } else { &WAYS[3..] }
}

/// Returns interleaved segments of two flows, pure ACKs, and another packet; few, because every byte is
/// changed.
fn packets() -> Vec<Packet> {
    let data = |flow: u32, n: u32| seg().flow(flow).seq(1 + 9 * n).len(9).id(n as u16).ack(5 + n);
    let mut packets: Vec<Packet> =
        (0..6).map(|n| data(n % 2, n / 2).window(9 * n as u16)).collect();
    packets.extend([arp(), seg().flow(3).pure_ack(), data(0, 3).psh(), data(1, 3).v6().padded()]);
    packets
}

#[test]
fn no_byte_of_a_coalesced_pcap_file_changes_what_is_given_back() {
    let records: Vec<_> = packets()
        .iter()
        .enumerate()
        .map(|(n, packet)| {
            let fraction = if n == 3 { 2_000_000_000 } else { n as u32 };
            (7, fraction, packet.bytes().len() as u32, packet.bytes())
        })
        .collect();
    for (policy, magic) in Policy::all().into_iter().zip(MAGICS.into_iter().cycle()) {
        let file = pcap(magic, 96_000, 1, &records);
        let (coalesced, _) = coalesce(&file, settings(policy)).unwrap();
        tamper(&file, &coalesced, ways(policy));
    }
    // A file that ends within a record, and one without records.
    for file in [pcap(MAGICS[0], 96, 1, &records), pcap(MAGICS[3], 96, 1, &[])] {
        let file = &file[..file.len().min(400)];
        tamper(file, &coalesce(file, remember()).unwrap().0, &WAYS);
    }
}

#[test]
fn no_byte_of_a_coalesced_pcapng_file_changes_what_is_given_back() {
    let described = |n: u32| Interface {
        snap_bytes: Some(262_144 + n),
        name: Some(format!("eth{n}")),
        ..interface(LinkType::ETHERNET)
    };
    let records: Vec<Plain> = packets()
        .iter()
        .enumerate()
        .map(|(n, packet)| {
            let at = Instant::from_nanos(START_NS + n as u64);
            let options = if n % 3 == 1 { vec![(1, b"seen".to_vec())] } else { Vec::new() };
            ((n as u32) / 5, at, packet.bytes().len() as u32, packet.bytes(), options)
        })
        .collect();
    let file = pcapng(&[described(0), described(1)], &records);
    for policy in Policy::all() {
        let (coalesced, _) = coalesce(&file, settings(policy)).unwrap();
        tamper(&file, &coalesced, ways(policy));
    }
    let empty = pcapng(&[described(0)], &[]);
    tamper(&empty, &coalesce(&empty, remember()).unwrap().0, &WAYS);
}

#[test]
fn of_a_cut_file_the_header_is_still_checked() {
    let file = pcap(MAGICS[0], 96_000, 1, &[(7, 1, 42, arp().bytes()), (8, 1, 42, arp().bytes())]);
    let (mut coalesced, _) = coalesce(&file, remember()).unwrap();
    coalesced.truncate(coalesced.len() - 5);
    assert!(matches!(outcome(&coalesced), Outcome::Partial(part) if part.starts_with(&file[..24])));
    let at = coalesced.windows(24).position(|bytes| bytes == &file[..24]).unwrap();
    for byte in at..at + 24 {
        let mut changed = coalesced.clone();
        changed[byte] ^= 4;
        assert!(matches!(outcome(&changed), Outcome::Refused), "byte {byte}");
    }
}
