//! The data sent before the first acknowledgement. Segments have 8,948 bytes, and RFC 6928 allows two of
//! them.

use rxo_frame::Duration;
use rxo_tcp::{Algorithm, Config, InitialWindow};

use crate::dsl::*;

const JUMBO: u16 = 8_948;
/// The number of bytes to send, more than two flights of ten segments.
const ALL: u32 = 400_000;

fn beginning_with(initial_window: InitialWindow) -> Config {
    Config {
        initial_window,
        maximum_segment_size: JUMBO,
        window_scaling: true,
        send_buffer_bytes: 1 << 20,
        ..with_sack()
    }
}

fn ten() -> Config {
    beginning_with(InitialWindow::Segments(10))
}

/// Returns a connection whose handshake took `round_trip`, with a large window of the peer.
fn established(config: Config, round_trip: Duration) -> Scene {
    let mut scene = Scene::active(config);
    scene.out();
    scene.after(round_trip);
    scene.gets(syn().mss(Some(JUMBO)).scale(3).sack_permitted().ack(1));
    scene.gets(seg().win(u16::MAX));
    assert_eq!(scene.out().len(), 1);
    scene
}

/// Returns the number of segments that leave at once, and then in each millisecond up to `end`.
fn flight(scene: &mut Scene, end: u64) -> Vec<usize> {
    let at_once = scene.sends(ALL).len();
    let later = (0..end).map(|_| scene.after(ms(1)).len());
    [at_once].into_iter().chain(later).collect()
}

/// Two segments are sent before the first acknowledgement, and no more (RFC 6928, section 2 (a)).
#[test]
fn two_segments_leave_and_no_more() {
    let mut scene = established(beginning_with(InitialWindow::Rfc6928), ms(40));
    assert_eq!(flight(&mut scene, 39).iter().sum::<usize>(), 2);
}

#[test]
fn ten_segments_leave_in_half_a_round_trip() {
    for congestion in [Algorithm::Cubic, Algorithm::Reno, Algorithm::Bbr] {
        let mut scene = established(Config { congestion, ..ten() }, ms(40));
        let flight = flight(&mut scene, 39);
        // Two segments leave at once, as RFC 6928 allows, then two in each fifth of half a round trip.
        let expected: Vec<_> =
            (0..40).map(|ms| if ms % 4 == 0 && ms < 20 { 2 } else { 0 }).collect();
        assert_eq!(flight, expected, "{congestion:?}");
    }
}

#[test]
fn a_first_text_that_comes_late_is_paced_too() {
    let mut scene = established(ten(), ms(40));
    scene.after(Duration::from_secs(7));
    assert_eq!(flight(&mut scene, 5)[..5], [2, 0, 0, 0, 2]);
}

#[test]
fn on_a_short_path_ten_segments_leave_at_once() {
    let mut scene = established(ten(), ms(1));
    assert_eq!(scene.sends(ALL).len(), 10);
}

/// RFC 6928 allows ten segments of the usual size at once.
#[test]
fn small_segments_are_not_paced() {
    let config = Config { maximum_segment_size: MSS as u16, ..ten() };
    let mut scene = established(config, ms(40));
    assert_eq!(scene.sends(ALL).len(), 10);
}

#[test]
fn slow_start_goes_on_from_ten() {
    let mut scene = established(ten(), ms(40));
    assert_eq!(flight(&mut scene, 40).iter().sum::<usize>(), 10);
    for segment in 1..=10 {
        scene.gets(seg().win(u16::MAX).ack(1 + segment * u32::from(JUMBO)));
        scene.out();
    }
    assert_eq!(scene.cwnd_segments(), 20);
}

/// After a lost SYN one segment is sent (RFC 5681, section 3.1 (g), and RFC 6928, section 2 (b)).
#[test]
fn a_lost_syn_leaves_one_segment() {
    let mut scene = Scene::active(ten());
    scene.out();
    assert_eq!(scene.after(Duration::from_secs(1)).len(), 1);
    scene.after(ms(40));
    scene.gets(syn().mss(Some(JUMBO)).scale(3).sack_permitted().ack(1));
    scene.out();
    assert_eq!(flight(&mut scene, 39).iter().sum::<usize>(), 1);
}

/// RFC 5681, section 4.1: the restart window is the initial window.
#[test]
fn after_idle_time_it_begins_with_ten_again() {
    let mut scene = established(Config { restart_after_idle: true, ..ten() }, ms(40));
    scene.sends(ALL);
    while scene.tcp.unacknowledged_bytes() > 0 {
        scene.after(ms(40));
        let sent = scene.tcp.statistics().snd_nxt - scene.iss();
        scene.gets(seg().win(u16::MAX).ack(sent as u32));
        scene.out();
    }
    assert!(scene.cwnd_segments() > 10);
    scene.after(Duration::from_secs(5));
    let flight = flight(&mut scene, 39);
    assert_eq!((flight[0], flight.iter().sum::<usize>()), (2, 10), "{flight:?}");
}
