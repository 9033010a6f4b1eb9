//! Windows count bytes: everything inside an offered window is kept, whatever the size of the peer's
//! segments.

use rxo_tcp::Config;

use crate::dsl::*;

/// Fills the window with segments of 100 bytes while the reader pauses: twelve times as many segments as
/// buffers.
fn fill(scene: &mut Scene, starts: impl Iterator<Item = u32>) {
    for start in starts {
        scene.gets(seg().seq(start).len(100));
        scene.out();
    }
}

fn few_buffers() -> Scene {
    Scene::established(Config { receive_pieces: 50, ..with_sack() })
}

fn whole_window() -> Vec<u8> {
    (1..60_001).map(stream_byte).collect()
}

/// RFC 9293, section 3.8.6: all of the text is acknowledged.
#[test]
fn small_segments_fill_the_window() {
    let mut scene = few_buffers();
    fill(&mut scene, (1..60_001).step_by(100));
    let last = scene.tcp.statistics();
    assert_eq!((last.rcv_nxt - PEER_ISS, last.rcv_wnd), (60_001, 0));
    // RFC 9293, section 3.8.6.2.2: space that returns is announced at once.
    assert_eq!(scene.reads(), whole_window());
    assert_eq!(scene.out(), [". 1:1 ack 60001"]);
    assert_eq!(scene.tcp.statistics().rcv_wnd, 60_000);
    fill(&mut scene, (60_001..90_001).step_by(100));
    assert_eq!(scene.reads().len(), 30_000);
}

/// RFC 9293, section 3.10.7.4 (SHLD-31): text out of order is kept too; only the gap is sent again.
#[test]
fn small_segments_behind_a_gap_are_kept() {
    let mut scene = few_buffers();
    fill(&mut scene, (101..60_001).step_by(100));
    assert_eq!(scene.answers(seg().len(100)), [". 1:1 ack 60001"]);
    assert_eq!(scene.reads(), whole_window());
}

/// The segments arrive from the last to the first, so that each lies before all others.
#[test]
fn small_segments_that_come_backwards_are_kept() {
    let mut scene = few_buffers();
    fill(&mut scene, (1..60_001).step_by(100).collect::<Vec<_>>().into_iter().rev());
    assert_eq!(scene.tcp.statistics().rcv_nxt - PEER_ISS, 60_001);
    assert_eq!(scene.reads(), whole_window());
}

/// Text kept by reference and copied text, read in small parts, arrive in order and once.
#[test]
fn pieces_of_both_kinds_are_read_in_order() {
    let mut scene = few_buffers();
    let (mut read, mut seq) = (Vec::new(), 1);
    for turn in 0..400_u32 {
        let room = scene.tcp.statistics().rcv_wnd;
        let bytes = (1 + turn * 37 % 900).min(room);
        if bytes > 0 {
            scene.gets(seg().seq(seq).len(bytes));
            seq += bytes;
        }
        scene.out();
        let mut text = vec![0; turn as usize * 53 % 700];
        let count = scene.tcp.receive(&mut text).unwrap_or(0);
        read.extend(&text[..count]);
    }
    read.extend(scene.reads());
    assert!(read.iter().copied().eq((1..seq).map(stream_byte)));
}
