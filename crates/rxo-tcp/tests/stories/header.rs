//! Headers: options on every kind of segment, and the rules for all segments sent.

use rxo_tcp::{Config, SegmentOptions};
use rxo_wire::TcpFlags;

use crate::dsl::*;

/// RFC 9293, section 3.1 (MUST-5): after the handshake, options of a SYN change nothing, and the segment is
/// processed normally.
#[test]
fn any_segment_may_carry_options() {
    let mut scene = Scene::established(Config { window_scaling: true, ..with_sack() });
    let before = scene.tcp.statistics();
    scene.gets(seg().len(10).mss(Some(200)).scale(9).sack_permitted());
    let after = scene.tcp.statistics();
    assert_eq!((after.mss, after.snd_wnd), (before.mss, 50_000 << 3));
    assert_eq!(scene.tcp.readable_bytes(), 10);
}

/// RFC 9293, section 3.1 (MUST-6): unknown options are skipped, and so are known ones with a wrong length.
#[test]
fn unknown_options_are_passed_over() {
    let read = SegmentOptions::read(&[253, 6, 1, 2, 3, 4, 4, 3, 0, 2, 4, 5, 0xb4]);
    let expected = SegmentOptions { maximum_segment_size: Some(1460), ..SegmentOptions::default() };
    assert_eq!(read, expected);
}

/// Returns kind and length of each option in `bytes`.
fn kinds(bytes: &[u8]) -> Vec<(u8, usize)> {
    let (mut kinds, mut at) = (Vec::new(), 0);
    while at < bytes.len() {
        let length = match bytes[at] {
            0 => {
                assert!(bytes[at..].iter().all(|byte| *byte == 0), "padding: {bytes:?}");
                break;
            }
            1 => 1,
            _ => usize::from(bytes[at + 1]),
        };
        kinds.push((bytes[at], length));
        at += length;
    }
    assert!(at <= bytes.len() && bytes.len().is_multiple_of(4), "{bytes:?}");
    kinds
}

/// Returns, for each segment that leaves now, `true` if it has a SYN, and its options.
fn leaving(scene: &mut Scene) -> Vec<(bool, Vec<(u8, usize)>)> {
    let mut seen = Vec::new();
    while let Some(transmit) = scene.tcp.poll_transmit(scene.now) {
        seen.push((transmit.flags.contains(TcpFlags::SYN), kinds(transmit.options.as_slice())));
    }
    seen
}

/// RFC 9293, section 3.1 (MUST-65, MUST-68): each option has its length, and the segment size appears in SYNs
/// only. RFC 7323, section 3.2 (b): once negotiated, timestamps appear in every segment.
#[test]
fn every_header_that_leaves_is_well_formed() {
    let mut scene =
        Scene::passive(Config { maximum_segment_size: MSS as u16, ..Config::default() });
    scene.gets(syn().scale(2).sack_permitted().ts(1, 0));
    let mut seen = leaving(&mut scene);
    scene.gets(seg().ts(2, 0));
    // Text, a gap, a duplicate, a retransmission, a window probe, the end.
    assert_eq!(scene.tcp.send(&[7; 3_000]), Ok(3_000));
    seen.extend(leaving(&mut scene));
    scene.gets(seg().seq(501).len(100).ts(3, 0));
    scene.gets(seg().seq(501).len(100).ts(4, 0));
    seen.extend(leaving(&mut scene));
    for win in [0, 50_000] {
        scene.now = scene.now + ms(3_000);
        scene.tcp.on_timeout(scene.now);
        seen.extend(leaving(&mut scene));
        scene.gets(seg().win(win).ts(5, 0));
        seen.extend(leaving(&mut scene));
    }
    scene.tcp.shutdown().unwrap();
    seen.extend(leaving(&mut scene));
    assert!(seen.len() > 5, "{seen:?}");
    for (is_syn, kinds) in seen {
        assert_eq!(kinds.contains(&(2, 4)), is_syn, "{kinds:?}");
        assert!(kinds.contains(&(8, 10)), "{kinds:?}");
        let lengths = |(kind, length): &(u8, usize)| match kind {
            1 => *length == 1,
            2 => *length == 4,
            3 => *length == 3,
            4 => *length == 2,
            5 => *length > 2 && (length - 2).is_multiple_of(8),
            8 => *length == 10,
            _ => false,
        };
        assert!(kinds.iter().all(lengths), "{kinds:?}");
    }
}

/// RFC 9293, section 3.1 (MUST-1, REC-1): the upper half of the window field is not negative, scaled or not.
#[test]
fn a_window_has_no_sign() {
    let mut scene = Scene::established(Config { window_scaling: true, ..plain() });
    scene.gets(seg().win(u16::MAX));
    assert_eq!(scene.tcp.statistics().snd_wnd, 65_535 << 3);
    assert_eq!(scene.sends(1_000).len(), 1);

    let mut scene = Scene::active(Config { window_scaling: true, ..plain() });
    scene.out();
    scene.gets(syn().ack(1).scale(14));
    scene.gets(seg().win(u16::MAX));
    assert_eq!(scene.tcp.statistics().snd_wnd, 65_535 << 14);
    assert_eq!(scene.sends(1_000).len(), 1);
}
