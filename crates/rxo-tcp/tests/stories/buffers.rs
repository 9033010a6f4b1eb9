//! Buffers that follow the path, on virtual time: the owner grants what is requested, unless a story says
//! otherwise.

use rxo_frame::{Duration, Instant, SharedBytes};
use rxo_tcp::{Buffers, CallError, Config, Events, State};

use crate::dsl::*;
use crate::link::{Link, Network};

const INITIAL: u32 = 64 << 10;
const LARGEST: u32 = 4 << 20;
/// The bandwidth-delay product: 100 Mbit/s for 40 ms.
const PATH_BYTES: u32 = 500_000;

fn growing() -> Config {
    Config {
        send_buffer_bytes: INITIAL,
        receive_buffer_bytes: INITIAL,
        largest_buffers: Some(Buffers { send_bytes: LARGEST, receive_bytes: LARGEST }),
        ..Config::default()
    }
}

/// Returns a connection against the peer of the stories.
fn scene() -> Scene {
    let config = Config { receive_pieces: 16, window_scaling: true, ..with_sack() };
    let Config { send_buffer_bytes, receive_buffer_bytes, largest_buffers, .. } = growing();
    Scene::established(Config {
        send_buffer_bytes,
        receive_buffer_bytes,
        largest_buffers,
        ..config
    })
}

/// Returns a link with a round trip of 40 ms.
fn path() -> Link {
    Link { delay: ms(20), queue: ms(40), ..Link::default() }
}

/// Sends `bytes` from client to server. The reader takes at most `bytes_per_ms`. Returns the elapsed time.
fn transfer(network: &mut Network, bytes: u32, bytes_per_ms: u64) -> Duration {
    let (start, mut sent, mut read) = (network.now, 0, 0_u32);
    while read < bytes {
        let [client, server] = &mut network.ends;
        while sent < bytes && client.send_room() > 0 {
            let data: Vec<u8> = (sent..bytes.min(sent + 4_096)).map(stream_byte).collect();
            sent += client.send(&data).expect("there is room") as u32;
        }
        let allowed = network.now.nanos_since(start) / 1_000_000 * bytes_per_ms;
        let most = u32::try_from(allowed).unwrap_or(u32::MAX).saturating_sub(read);
        let mut text = vec![0; server.readable_bytes().min(most as usize)];
        let count = server.receive(&mut text).unwrap_or(0) as u32;
        assert!(text.into_iter().eq((read..read + count).map(stream_byte)), "from byte {read}");
        read += count;
        if !network.step() {
            network.now = network.now + ms(1);
        }
        assert!(network.now - start < Duration::from_secs(100), "{read} of {bytes} bytes arrived");
    }
    network.now - start
}

const AT_ONCE: u64 = u64::MAX >> 32;

#[test]
fn both_buffers_grow_to_what_the_path_holds() {
    let mut network = Network::new(path(), growing(), growing());
    let time = transfer(&mut network, 10_000_000, AT_ONCE);
    let [client, server] = &network.ends;
    let (sent, received) = (client.buffers(), server.buffers());
    assert!(sent.send_bytes >= PATH_BYTES, "{sent:?}");
    assert!(received.receive_bytes >= PATH_BYTES, "{received:?}");
    // A direction without data keeps its size.
    assert_eq!((sent.receive_bytes, received.send_bytes), (INITIAL, INITIAL));
    // 0.83 s at the rate of the path, plus slow start.
    assert!(time < ms(1_300), "{time:?}");
}

/// Data beyond the peer's window is never in flight, so it needs no send buffer.
#[test]
fn the_send_buffer_stays_within_the_peers_window() {
    let small = Config { largest_buffers: None, ..growing() };
    let mut network = Network::new(path(), growing(), small);
    transfer(&mut network, 5_000_000, AT_ONCE);
    let sent = network.ends[0].buffers().send_bytes;
    assert!(sent <= 4 * INITIAL, "{sent} bytes for a window of {INITIAL}");
}

/// A side that only receives has no round-trip sample except that of the handshake, unless it uses the
/// timestamp echoes of its acknowledgements.
#[test]
fn a_path_that_becomes_longer_gets_a_larger_window() {
    let short = Link { delay: ms(2), queue: ms(40), ..Link::default() };
    let mut network = Network::new(short, growing(), growing());
    while network.ends[1].state() != State::Established {
        network.step();
    }
    network.set_delay(ms(40));
    let time = transfer(&mut network, 10_000_000, AT_ONCE);
    let window = network.ends[1].buffers().receive_bytes;
    assert!(window >= 2 * PATH_BYTES && time < ms(2_500), "{window} bytes, {time:?}");
}

/// Growing buffers cost no time: the transfer takes as long as with buffers that are large from the start.
#[test]
fn growth_costs_no_time() {
    for bytes in [1_000_000, 10_000_000] {
        let large = Config {
            send_buffer_bytes: LARGEST,
            receive_buffer_bytes: LARGEST,
            receive_pieces: 8_192,
            sent_ranges: 8_192,
            ..Config::default()
        };
        let [grown, fixed] = [growing(), large].map(|config| {
            transfer(&mut Network::new(path(), config.clone(), config), bytes, AT_ONCE)
        });
        let ratio = grown.as_secs_f64() / fixed.as_secs_f64();
        assert!(ratio < 1.02, "{bytes} bytes in {grown:?} and {fixed:?}");
    }
}

/// Memory that was taken back is requested again at the same rate.
#[test]
fn a_buffer_that_was_shrunk_grows_again() {
    let mut network = Network::new(path(), growing(), growing());
    transfer(&mut network, 10_000_000, AT_ONCE);
    let small = Buffers { send_bytes: INITIAL, receive_bytes: INITIAL };
    network.ends[1].set_buffers(small);
    let time = transfer(&mut network, 10_000_000, AT_ONCE);
    let window = network.ends[1].statistics().rcv_wnd;
    assert!(window >= PATH_BYTES, "{window} bytes");
    assert!(time < ms(1_300), "{time:?}");
}

/// A reader that takes 4 KB per round trip needs no more; one that takes 16 KB gets little more.
#[test]
fn a_slow_reader_keeps_its_small_buffer() {
    for (bytes_per_ms, most) in [(100, INITIAL), (400, 4 * INITIAL)] {
        let mut network = Network::new(path(), growing(), growing());
        transfer(&mut network, 1_000_000, bytes_per_ms);
        let received = network.ends[1].buffers();
        assert!(received.receive_bytes <= most, "{received:?}");
    }
}

/// After a retransmitted SYN the round-trip time is unknown; then the window serves as the clock.
#[test]
fn without_a_round_trip_time_it_grows_too() {
    let config = Config { timestamps: false, ..growing() };
    let mut network = Network::new(path(), config.clone(), config);
    while matches!(network.ends[1].state(), State::Listen) {
        network.step();
    }
    network.set_loss(1_000);
    while network.now < Instant::from_micros(2_500_000) {
        network.step();
    }
    network.set_loss(0);
    transfer(&mut network, 10_000_000, AT_ONCE);
    assert!(network.ends[1].buffers().receive_bytes >= PATH_BYTES);
}

#[test]
fn no_grant_no_growth() {
    let config = Config { largest_buffers: None, ..growing() };
    let mut network = Network::new(path(), config.clone(), config);
    transfer(&mut network, 1_000_000, AT_ONCE);
    let same = Buffers { send_bytes: INITIAL, receive_bytes: INITIAL };
    assert_eq!(network.ends.each_ref().map(|end| end.buffers()), [same; 2]);
}

/// Every second segment of a full window is lost: more gaps than there were pieces before the buffer grew.
/// All received text is kept, so that only lost segments are sent again.
#[test]
fn a_window_full_of_gaps_is_kept() {
    let mut scene = scene();
    let granted = Buffers { send_bytes: INITIAL, receive_bytes: 1 << 20 };
    assert_eq!(scene.tcp.set_buffers(granted), granted);
    scene.gets(seg().len(MSS));
    scene.out();
    assert!(scene.tcp.statistics().rcv_wnd >= granted.receive_bytes - MSS);
    let end = granted.receive_bytes / MSS * MSS;
    for first in [2, 1] {
        for at in (first * MSS + 1..end).step_by(2 * MSS as usize) {
            scene.gets(seg().seq(at).len(MSS));
            scene.out();
        }
    }
    assert!(scene.reads().into_iter().eq((1..=end).map(stream_byte)));
}

/// RFC 9293, section 3.8.6 (SHLD-14), and RFC 7323, section 2.4: when memory is taken back, the window closes
/// only as the peer fills it.
#[test]
fn an_offered_window_is_not_taken_back() {
    let mut scene = scene();
    let granted = Buffers { send_bytes: INITIAL, receive_bytes: 1 << 20 };
    scene.tcp.set_buffers(granted);
    scene.gets(seg().len(MSS));
    scene.out();
    let offered = scene.tcp.statistics().rcv_wnd;
    let small = Buffers { send_bytes: 10_000, receive_bytes: INITIAL };
    assert_eq!(scene.tcp.wants_buffers(scene.now), None);
    let kept = scene.tcp.set_buffers(small);
    assert_eq!(kept, Buffers { send_bytes: 10_000, receive_bytes: offered + MSS });
    let mut at = MSS + 1;
    while scene.tcp.statistics().rcv_wnd >= MSS {
        scene.gets(seg().seq(at).len(MSS));
        scene.out();
        at += MSS;
    }
    assert!(at > offered);
    assert!(scene.reads().into_iter().eq((1..at).map(stream_byte)));
    scene.out();
    // Memory kept for the old window is freed without another grant.
    scene.tcp.wants_buffers(scene.now);
    scene.now = scene.now + Duration::from_secs(1);
    scene.tcp.wants_buffers(scene.now);
    assert_eq!(scene.tcp.buffers(), small);
    assert!(scene.tcp.statistics().rcv_wnd <= INITIAL);
}

/// A peer that has sent its FIN needs no window: only text that waits for the application uses memory.
#[test]
fn a_peer_that_is_done_needs_no_receive_buffer() {
    let mut scene = scene();
    let granted = Buffers { send_bytes: INITIAL, receive_bytes: 1 << 20 };
    scene.tcp.set_buffers(granted);
    scene.gets(seg().len(MSS));
    scene.gets(seg().seq(1 + MSS).fin());
    let unread = Buffers { send_bytes: INITIAL, receive_bytes: MSS };
    assert_eq!(scene.tcp.buffers(), unread);
    assert_eq!(scene.tcp.set_buffers(granted), unread);
    assert_eq!(scene.reads().len(), MSS as usize);
    assert_eq!(scene.tcp.buffers(), Buffers { receive_bytes: 0, ..unread });
}

/// The window is offered in units of 128 bytes here, so a buffer of one byte would never be offered.
#[test]
fn the_smallest_buffer_is_still_offered() {
    let mut scene = scene();
    let kept = scene.tcp.set_buffers(Buffers { send_bytes: 1, receive_bytes: 1 });
    assert!(kept.receive_bytes > 1, "{kept:?}");
    let mut at = 1;
    for _ in 0..1_000 {
        let bytes = scene.tcp.statistics().rcv_wnd.min(MSS);
        assert!(bytes > 0, "the window is closed at byte {at}");
        scene.gets(seg().seq(at).len(bytes));
        scene.reads();
        scene.out();
        at += bytes;
    }
    assert_eq!(
        scene.tcp.set_buffers(Buffers { send_bytes: 1, receive_bytes: 1 }).receive_bytes,
        256
    );
}

/// Unacknowledged data stays, and an application that waits for space is notified of new space.
#[test]
fn data_to_be_sent_stays() {
    let mut scene = scene();
    scene.sends(INITIAL);
    assert_eq!(scene.tcp.send_room(), 0);
    scene.tcp.take_events();
    let more = Buffers { send_bytes: 2 * INITIAL, receive_bytes: INITIAL };
    scene.tcp.set_buffers(more);
    assert!(scene.tcp.take_events().contains(Events::WRITABLE));
    assert_eq!(scene.tcp.send_room(), INITIAL as usize);
    let less = Buffers { send_bytes: 1, receive_bytes: INITIAL };
    assert_eq!(scene.tcp.set_buffers(less).send_bytes, INITIAL);
    scene.gets(seg().ack(1 + MSS));
    assert_eq!(scene.tcp.set_buffers(less).send_bytes, INITIAL - MSS);
    assert_eq!(scene.tcp.unacknowledged_bytes(), (INITIAL - MSS) as usize);
}

/// Text that is sent keeps its place in the buffer until it is acknowledged, but does not count as unsent, as
/// with Linux's `TCP_NOTSENT_LOWAT`.
#[test]
fn what_is_sent_makes_room_for_as_much_unsent_text() {
    let config = Config { most_unsent_bytes: Some(4_000), ..plain() };
    let mut scene = Scene::established(config);
    scene.tcp.take_events();
    assert_eq!(scene.tcp.send(&[7; 9_000]), Ok(4_000));
    assert_eq!((scene.tcp.send(&[7]), scene.tcp.send_room()), (Err(CallError::NotYet), 0));
    assert!(!scene.tcp.has_much_send_room());
    let mut text = SharedBytes::from(vec![7; 9_000]);
    assert_eq!(scene.tcp.send_shared(&mut text), Err(CallError::NotYet));
    scene.out();
    assert!(scene.tcp.take_events().contains(Events::WRITABLE), "before anything is acknowledged");
    assert!(scene.tcp.has_much_send_room());
    assert_eq!((scene.tcp.send_shared(&mut text), text.len()), (Ok(4_000), 5_000));
    assert_eq!(scene.tcp.unacknowledged_bytes(), 8_000);
}

/// The limit bounds what is written from then on. Half of it must be free before a writer is worth waking.
#[test]
fn the_limit_of_unsent_text_changes_while_the_connection_is_open() {
    let mut scene = Scene::established(plain());
    // The peer's window takes ten segments; what else is written stays unsent.
    scene.gets(seg().win(10_000));
    scene.sends(10_000);
    assert_eq!(scene.tcp.send(&[7; 3_000]), Ok(3_000));
    scene.tcp.set_most_unsent(Some(2_000)).unwrap();
    assert_eq!(scene.tcp.send_room(), 0);
    scene.answers(seg().ack(2_001).win(10_000));
    assert_eq!((scene.tcp.statistics().unsent, scene.tcp.send_room()), (1_000, 1_000));
    assert!(scene.tcp.has_much_send_room());
    scene.tcp.take_events();
    scene.tcp.set_most_unsent(Some(1_500)).unwrap();
    assert_eq!(scene.tcp.send_room(), 500);
    assert!(scene.tcp.take_events().is_empty());
    scene.tcp.set_most_unsent(None).unwrap();
    assert!(scene.tcp.take_events().contains(Events::WRITABLE), "a writer may have waited");
    assert!(scene.tcp.send_room() > 100_000);
    let said = scene.tcp.set_most_unsent(Some(0)).unwrap_err().to_string();
    assert_eq!(said, "most_unsent_bytes is 0; choose 1 to 1073741823");
}
