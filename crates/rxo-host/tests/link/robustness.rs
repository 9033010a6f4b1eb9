//! Random input: nothing panics, nothing grows, and sent frames are valid.

use proptest::prelude::*;

use crate::harness;
use crate::peer::*;

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_script_holds(data in proptest::collection::vec(any::<u8>(), 0..2_000)) {
        harness::run(&data);
    }

    /// Real frames with a few bytes changed, with or without corrected checksums.
    #[test]
    fn changed_frames_hold(
        which in 0_usize..6,
        changes in proptest::collection::vec((0_usize..120, any::<u8>()), 0..4),
        step in any::<u8>(),
        questions in proptest::collection::vec(any::<u16>(), 0..12),
    ) {
        let mut script = vec![0];
        for question in questions {
            script.push(5);
            script.extend(question.to_be_bytes());
        }
        let mut frame = frames()[which].clone();
        for (place, byte) in changes {
            let place = place % frame.len();
            frame[place] = byte;
        }
        script.extend([step / 8 * 8, 0, frame.len() as u8]);
        script.extend(frame);
        harness::run(&script);
    }
}

fn frames() -> [Vec<u8>; 6] {
    let quoted = ipv4(6, "10.0.0.2", "1.2.3.4", &[0x13, 0x88, 0, 80, 0, 0, 0, 77]);
    let error = [&[0, 0, 5, 0x78][..], &quoted].concat();
    [
        arp(ALL, 1, (PEER, "10.0.0.9"), ([0; 6], "10.0.0.2")),
        arp(OURS, 2, (PEER, "10.0.0.9"), (OURS, "10.0.0.2")),
        solicitation("fd00::9", "fd00::2", true),
        advertisement("fd00::9", 0x60),
        ethernet(OURS, PEER, 0x0800, &icmp("10.0.0.9", "10.0.0.2", 8, 0, &[1; 20])),
        ethernet(OURS, PEER, 0x0800, &icmp("10.0.0.1", "10.0.0.2", 3, 4, &error)),
    ]
}
