//! Random bursts: frames that arrive in one poll.

use rxo_frame::LinkKind;
use rxo_testkit::{Packet, Random, Script};

use crate::whole::Whole;

/// Creates the burst of `seed`: mostly segments and datagrams in order, of one to eight flows, some of them
/// altered.
pub(crate) fn random(seed: u64) -> Vec<Whole> {
    let mut random = Random::new(seed);
    let events = 1 + random.below(MOST_EVENTS);
    let mut bytes: Vec<u8> = (0..8 + 6 * events).map(|_| random.next() as u8).collect();
    // These bytes select Ethernet and few flows.
    bytes[5] &= !1;
    bytes[6] = random.below(6) as u8;
    let script = Script::from_bytes(&bytes);
    debug_assert_eq!(script.setup.link, LinkKind::Ethernet);
    let frames = script.frames().into_iter().take(MOST_FRAMES);
    // A tag is not removed before a TAP, and a kernel takes no frame without an Ethernet header.
    frames
        .filter(|frame| frame.bytes.len() >= 14 + 20)
        .map(|frame| {
            let mut frame = frame.clone();
            frame.vlan = None;
            Whole::of(frame.borrowed())
        })
        .collect()
}

/// Creates the burst of these packets.
pub(crate) fn of(packets: &[Packet]) -> Vec<Whole> {
    packets.iter().map(|packet| Whole::of(packet.frame().borrowed())).collect()
}

/// Formats one line for each frame of a burst, for a person who reads a failed test.
pub(crate) fn show(burst: &[Whole]) -> String {
    use std::fmt::Write as _;
    let mut text = String::new();
    for (number, whole) in burst.iter().enumerate() {
        let said = &whole.header;
        _ = writeln!(text, "{number}: {} bytes, header {said:02x?}", whole.bytes.len());
        let start = &whole.bytes[..whole.bytes.len().min(SHOWN_BYTES)];
        _ = writeln!(
            text,
            "   {}",
            start.iter().map(|byte| format!("{byte:02x}")).collect::<String>()
        );
    }
    text
}

const MOST_EVENTS: u64 = 14;
const MOST_FRAMES: usize = 24;
const SHOWN_BYTES: usize = 100;
