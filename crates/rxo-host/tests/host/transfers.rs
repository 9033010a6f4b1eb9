//! Data in both directions, over links of all kinds.

use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;

use rxo_coalesce::Policy;
use rxo_device::MemoryOptions;
use rxo_host::SharedBytes;

use crate::world::{World, drain, fill, options, pattern};

/// Sends `bytes` bytes from the client to the server and back at the same time; all must arrive.
fn both_ways(world: &mut World, bytes: usize) {
    let listener = world.listen(1);
    let (stream, accepted) = world.connected(&listener);
    let data = pattern(bytes);
    let ends = [&stream, &accepted];
    let (mut sent, mut read) = ([0, 0], [Vec::new(), Vec::new()]);
    for _ in 0..1_000_000 {
        for side in 0..2 {
            sent[side] += fill(ends[side], &data[sent[side]..]);
            let (more, is_done) = drain(ends[1 - side]).unwrap();
            read[side].extend(more);
            assert!(!is_done);
        }
        if read.iter().all(|read| read.len() == bytes) {
            break;
        }
        world.pass(std::time::Duration::from_micros(100));
    }
    assert!(read[0] == data && read[1] == data, "{:?}", read.each_ref().map(Vec::len));
}

#[test]
fn whole_with_large_sends() {
    both_ways(&mut World::new(), 3_000_000);
}

#[test]
fn whole_with_single_frames() {
    let mut world = World::with(MemoryOptions { gso_bytes: 0, ..options() }, |_| {});
    both_ways(&mut world, 3_000_000);
    let counters = world.server.counters();
    assert!(counters.engine.aggregates > 0, "frames are coalesced");
}

#[test]
fn whole_without_coalescing() {
    let mut world = World::with(MemoryOptions { gso_bytes: 0, ..options() }, |config| {
        config.engine.policy = Policy::none();
    });
    both_ways(&mut world, 1_000_000);
    assert_eq!(world.server.counters().engine.aggregates, 0);
}

#[test]
fn whole_over_a_small_queue_that_drops() {
    let options = MemoryOptions { gso_bytes: 0, most_packets: 20, ..options() };
    let mut world = World::with(options, |_| {});
    both_ways(&mut world, 500_000);
    assert!(world.client.counters().sink.dropped > 0, "it did drop");
}

/// If the kernel refuses to segment, no data is lost, and the kernel is not asked again for every GSO send.
#[test]
fn whole_over_a_device_that_refuses_large_sends() {
    let mut world = World::new();
    world.there.refuse_aggregates();
    both_ways(&mut world, 3_000_000);
    let (refused, taken) = (world.client.counters(), world.server.counters());
    assert_eq!((refused.sink.dropped, taken.tcp.refused_sends), (0, 0));
    assert_eq!(refused.tcp.refused_sends, refused.sink.fallbacks);
    assert!((1..10).contains(&refused.tcp.refused_sends), "{}", refused.tcp.refused_sends);
}

/// Headers are written and data is lent, as by a file server. All lent data is dropped once it has arrived.
#[test]
fn lent_and_written_text_arrive_in_order() {
    for options in [
        options(),
        MemoryOptions { gso_bytes: 0, ..options() },
        MemoryOptions { gso_bytes: 0, most_packets: 20, ..options() },
    ] {
        lend_and_write(&mut World::with(options, |_| {}));
    }
}

fn lend_and_write(world: &mut World) {
    let listener = world.listen(1);
    let (stream, accepted) = world.connected(&listener);
    let (data, page) = (pattern(2_000_000), Arc::new(()));
    let (mut rest, mut read, mut lent) = (&data[..], Vec::new(), SharedBytes::default());
    for turn in 0..1_000_000 {
        if lent.is_empty() {
            let taken = fill(&stream, &rest[..rest.len().min(turn % 701)]);
            rest = &rest[taken..];
            let bytes = rest.len().min(turn * 977 % 100_000);
            let (text, after) = rest.split_at(bytes);
            (lent, rest) = (SharedBytes::from_owner(Page(text.to_vec(), Arc::clone(&page))), after);
        }
        if let Err(error) = stream.write_shared(&mut lent) {
            assert_eq!(error.kind(), ErrorKind::WouldBlock);
        }
        read.extend(drain(&accepted).unwrap().0);
        assert_eq!(read, data[..read.len()]);
        if read.len() == data.len() {
            break;
        }
        world.pass(std::time::Duration::from_micros(100));
    }
    assert_eq!(read.len(), data.len());
    drop(lent);
    world.pass(std::time::Duration::from_secs(1));
    assert_eq!(Arc::strong_count(&page), 1, "all pages are free again");
}

/// Lent data that has not arrived is dropped with the connection.
#[test]
fn lent_text_is_dropped_with_the_connection() {
    let mut world = World::new();
    let listener = world.listen(1);
    let (stream, accepted) = world.connected(&listener);
    let page = Arc::new(());
    let mut text = SharedBytes::from_owner(Page(pattern(10_000_000), Arc::clone(&page)));
    while stream.write_shared(&mut text).is_ok() {
        world.pass(std::time::Duration::from_millis(1));
    }
    assert!(text.len() > 1_000_000, "no more than the buffers hold: {} left", text.len());
    drop(text);
    assert_eq!(Arc::strong_count(&page), 2);
    accepted.abort();
    world.pass(std::time::Duration::from_millis(1));
    assert_eq!(Arc::strong_count(&page), 1);
    let error = stream.write_shared(&mut SharedBytes::from(vec![0; 5_000])).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
}

struct Page(Vec<u8>, #[expect(dead_code, reason = "it is counted")] Arc<()>);

impl AsRef<[u8]> for Page {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

/// Of a head and lent data, as much as fits goes into the send buffer, the head first. The caller keeps the
/// rest.
#[test]
fn a_head_and_lent_text_arrive_in_order() {
    let mut world = World::new();
    let listener = world.listen(4);
    let (stream, accepted) = world.connected(&listener);
    stream.set_nonblocking(true).unwrap();
    let (page, mut expected, mut got) = (pattern(50_000), Vec::new(), Vec::new());
    for round in 0..20 {
        let head = format!("head {round}");
        let (mut head, mut text) = (head.as_bytes(), SharedBytes::from(page.clone()));
        expected.extend_from_slice(head);
        expected.extend_from_slice(&text);
        while !head.is_empty() || !text.is_empty() {
            let before = text.len();
            match stream.write_both(head, &mut text) {
                Ok(bytes) => head = &head[bytes - (before - text.len())..],
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::WouldBlock);
                    assert_eq!(text.len(), before);
                    world.pass(Duration::from_millis(1));
                    got.extend(drain(&accepted).unwrap().0);
                }
            }
        }
    }
    while got.len() < expected.len() {
        world.pass(Duration::from_millis(1));
        got.extend(drain(&accepted).unwrap().0);
    }
    assert!(got == expected);
}

/// The answer of a web server: the head is copied, the file is lent, and the first frame contains both.
#[test]
fn a_head_and_the_start_of_a_file_leave_in_one_gso_frame() {
    let mut world = World::new();
    let listener = world.listen(4);
    let (_client, accepted) = world.connected(&listener);
    let (head, file) = (b"HTTP/1.1 200 OK\r\n\r\n", pattern(50_000));
    let written = accepted.write_both(head, &mut SharedBytes::from(file.clone())).unwrap();
    assert_eq!(written, head.len() + file.len());
    world.server.turn(world.now).unwrap();
    let frames = world.back.take_all();
    let [frame] = frames.as_slice() else { panic!("{} frames", frames.len()) };
    assert!(frame.offload.gso.is_some());
    let at = frame.bytes.windows(head.len()).position(|bytes| bytes == head).unwrap();
    let text = &frame.bytes[at + head.len()..];
    assert!(text.len() > 8_000 && file.starts_with(text), "{} bytes of text", text.len());
}
