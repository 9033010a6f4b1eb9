//! The congestion window of a whole connection, round trip by round trip, against the formulas.
//!
//! The path loses only what a story loses. Each segment is acknowledged separately, all at the end of the
//! round trip in which they left. Windows are in segments.

use rxo_frame::Duration;
use rxo_tcp::{Algorithm, Config};

use crate::dsl::*;

const RTT: Duration = ms(100);

/// A sender that always has more to send.
struct Path {
    scene: Scene,
    /// The acknowledged and the sent stream positions; 1 is the first byte, as in all stories.
    acked: u32,
    left: u32,
}

impl Path {
    fn new(congestion: Algorithm) -> Self {
        Self::with(Config { congestion, ..with_sack() })
    }

    fn with(config: Config) -> Self {
        let config = Config {
            window_scaling: true,
            send_buffer_bytes: 1 << 24,
            sent_ranges: 8_192,
            ..config
        };
        let mut scene = Scene::established(config);
        // The round-trip time is known from the start, and the peer's window never limits.
        scene.gets(seg().win(u16::MAX));
        let mut path = Self { scene, acked: 1, left: 1 };
        path.leave();
        path
    }

    /// Keeps the buffer full and sends everything permitted. Returns the number of segments sent.
    fn leave(&mut self) -> u32 {
        let room = self.scene.tcp.send_room();
        if room > 1 << 23 {
            self.scene.tcp.send(&vec![0; room]).expect("there is room");
        }
        let mut segments = 0;
        while let Some(transmit) = self.scene.tcp.poll_transmit(self.scene.now) {
            assert_eq!(transmit.payload_bytes(), MSS as usize);
            segments += 1;
        }
        let statistics = self.scene.tcp.statistics();
        self.left = self.acked + (statistics.snd_nxt - statistics.snd_una) as u32;
        segments
    }

    /// Runs a round trip: data outstanding at its start is acknowledged, one segment at a time.
    fn round(&mut self) {
        self.round_of(RTT);
    }

    fn round_of(&mut self, rtt: Duration) {
        self.scene.now = self.scene.now + rtt;
        let end = self.left;
        while self.acked < end {
            self.acked += MSS;
            self.scene.gets(seg().win(u16::MAX).ack(self.acked));
            self.leave();
        }
    }

    /// Runs a round trip in which the first segment is lost, and the next round trip, in which it is
    /// repaired.
    fn lose_one(&mut self) {
        self.scene.now = self.scene.now + RTT;
        let (hole, end) = (self.acked, self.left);
        for at in (hole + 2 * MSS..=end).step_by(MSS as usize) {
            self.scene.gets(seg().win(u16::MAX).ack(hole).sack(&[(hole + MSS, at)]));
            self.leave();
        }
        // Data sent meanwhile is acknowledged in the round trip after this one.
        self.scene.now = self.scene.now + RTT;
        self.acked = end;
        self.scene.gets(seg().win(u16::MAX).ack(self.acked));
        self.leave();
    }

    fn window(&self) -> f64 {
        f64::from(self.scene.tcp.statistics().cwnd) / f64::from(MSS)
    }

    fn threshold(&self) -> f64 {
        f64::from(self.scene.tcp.statistics().ssthresh) / f64::from(MSS)
    }

    fn rounds(&mut self, rounds: u32) {
        (0..rounds).for_each(|_| self.round());
    }
}

fn both() -> [Path; 2] {
    [Algorithm::Reno, Algorithm::Cubic].map(Path::new)
}

/// RFC 6928, section 2 (a), and RFC 5681, section 3.1 (b): ten segments, then exactly twice as many
/// each round trip.
#[test]
fn slow_start_doubles_the_window() {
    for mut path in both() {
        for expected in [10.0, 20.0, 40.0, 80.0, 160.0, 320.0] {
            assert_eq!(path.window(), expected);
            path.round();
        }
    }
}

/// RFC 5681, section 3.1 (c, d): the window falls to half of the data in flight, then grows by exactly one
/// segment per round trip. RFC 5681, section 3.2 (d): recovery ends with the window at the threshold.
#[test]
fn reno_is_a_saw() {
    let mut path = Path::new(Algorithm::Reno);
    path.rounds(3);
    for _ in 0..3 {
        let before = path.window();
        path.lose_one();
        assert_eq!(path.threshold(), before / 2.0);
        assert_eq!(path.window(), path.threshold());
        let start = path.window();
        for round in 1..=30 {
            path.round();
            assert!((path.window() - start - f64::from(round)).abs() < 1.01, "round {round}");
        }
    }
}

/// RFC 5681, section 3.1 (c), and RFC 9438, section 4.6: the reduction is based on the data in flight before
/// the loss showed. A peer that aggregates acknowledges at once everything that arrived before the loss, and
/// nothing leaves before its second ACK shows the loss. Then as much leaves as the threshold allows.
#[test]
fn a_loss_lowers_the_flight_and_not_what_is_left_of_it() {
    for (congestion, share) in [(Algorithm::Reno, 0.5), (Algorithm::Cubic, 0.7)] {
        let mut path = Path::new(congestion);
        path.rounds(2);
        let (hole, end) = (path.acked + 20 * MSS, path.left);
        path.scene.now = path.scene.now + RTT;
        path.scene.gets(seg().win(u16::MAX).ack(hole));
        path.scene.gets(seg().win(u16::MAX).ack(hole).sack(&[(hole + MSS, end)]));
        assert_eq!(path.threshold(), 40.0 * share, "{congestion:?}");
        assert_eq!(f64::from(path.leave()), path.threshold(), "{congestion:?}");
    }
}

/// RFC 5681, section 3.1 (d), and RFC 9438, section 4.6: the threshold is at least two segments, however
/// little is in flight.
#[test]
fn a_threshold_is_two_segments_at_least() {
    for congestion in [Algorithm::Reno, Algorithm::Cubic] {
        let mut scene = Scene::established(Config { congestion, ..plain() });
        scene.sends(MSS);
        scene.after(ms(1_000));
        assert_eq!(scene.tcp.statistics().ssthresh, 2 * MSS);
    }
}

/// RFC 5681, section 3.1 (b), and RFC 3465, section 2.2 (a): slow start adds the bytes that an
/// acknowledgement covers, many segments or part of one.
#[test]
fn slow_start_counts_bytes() {
    let mut path = Path::new(Algorithm::Reno);
    for (bytes, gain) in [(5 * MSS, 5.0), (MSS, 1.0), (2 * MSS, 2.0), (MSS / 2, 0.5)] {
        let before = path.window();
        path.acked += bytes;
        path.scene.gets(seg().win(u16::MAX).ack(path.acked));
        path.leave();
        assert_eq!(path.window() - before, gain, "for {bytes} bytes");
    }
}

/// RFC 9438, section 4.10, and RFC 9406, section 4.2 (b): a growing queue ends slow start without a loss,
/// five round trips after the delay has risen.
#[test]
fn slow_start_ends_when_the_delay_rises() {
    for mut path in both() {
        path.rounds(3);
        let before = path.window();
        for _ in 0..7 {
            path.round_of(ms(120));
        }
        // Not a factor of 2^7: the window doubles once more, then grows by a quarter in each round trip.
        assert!(path.threshold() <= path.window(), "{}", path.threshold());
        assert!(path.window() / before < 8.0, "{before} to {}", path.window());
        let ended = path.window();
        path.round_of(ms(120));
        assert!(path.window() < ended * 1.1);
    }
}

/// RFC 9438, sections 4.2, 4.4 and 4.5: the window stays within 2 % of the cubic function, growing ever more
/// slowly below the old window and ever faster above it.
#[test]
fn cubic_follows_its_function() {
    let mut path = Path::new(Algorithm::Cubic);
    path.rounds(5);
    path.lose_one();
    // RFC 9438, section 4.6: the window falls to 0.7 of the data in flight.
    let (old, start) = (320.0, path.window());
    assert_eq!(start, 224.0);
    path.round();
    let k = ((old - start) / 0.4_f64).cbrt();
    let began = path.scene.now;
    let mut windows = Vec::new();
    for _ in 0..100 {
        path.round();
        let t = path.scene.now.since(began) + RTT;
        let expected = 0.4 * (t.as_secs_f64() - k).powi(3) + old;
        let window = path.window();
        assert!((window / expected - 1.0).abs() < 0.02, "{window} at {t:?}, not {expected}");
        windows.push(window);
    }
    let gain = |round: usize| windows[round + 10] - windows[round];
    assert!(gain(0) > gain(20) && gain(20) > gain(45), "{windows:?}");
    assert!(gain(70) > gain(60) && gain(89) > gain(70), "{windows:?}");
}

/// RFC 9438, section 4.3: a small window follows Reno's estimate: 9/17 of a segment per round trip until the
/// old window is reached, then a segment.
#[test]
fn a_small_cubic_window_grows_as_renos() {
    let mut path = Path::new(Algorithm::Cubic);
    path.lose_one();
    assert_eq!(path.window(), 7.0);
    path.round();
    let start = path.window();
    for round in 1..=10 {
        path.round();
        let expected = start + f64::from(round) * 9.0 / 17.0;
        if expected < 10.0 {
            assert!((path.window() - expected).abs() < 0.6, "{} not {expected}", path.window());
        }
    }
    assert!(path.window() >= 12.0);
}

/// RFC 9438, section 4.7: a second loss below the old window lowers the plateau to 0.85 of the window at that
/// loss, which leaves capacity to other connections.
#[test]
fn fast_convergence_gives_way() {
    let mut path = Path::new(Algorithm::Cubic);
    path.rounds(5);
    path.lose_one();
    path.rounds(5);
    let second = path.window();
    assert!(second < 320.0);
    path.lose_one();
    path.round();
    // After the time K the window is on the plateau, where the function is flat.
    let plateau = second * 0.85;
    let k = ((plateau - path.window()) / 0.4_f64).cbrt();
    path.rounds((k * 10.0) as u32);
    assert!((path.window() / plateau - 1.0).abs() < 0.02, "{} not {plateau}", path.window());
}

/// RFC 9438, section 4.8, and RFC 5681, section 3.1 (e): after a timeout, slow start goes from one segment to
/// the threshold, 0.7 or 0.5 of the data in flight, followed by congestion avoidance.
#[test]
fn a_timeout_begins_anew() {
    for (mut path, factor) in both().into_iter().zip([0.5, 0.7]) {
        path.rounds(3);
        let threshold = path.window() * factor;
        // Nothing is acknowledged until the timer fires.
        while path.window() > 1.0 {
            path.scene.now = path.scene.tcp.poll_at().expect("a timer runs");
            path.scene.tcp.on_timeout(path.scene.now);
            path.leave();
        }
        assert_eq!(path.threshold(), threshold.floor());
        // All segments except the first had arrived.
        let end = path.left;
        path.scene.now = path.scene.now + RTT;
        path.acked = end;
        path.scene.gets(seg().win(u16::MAX).ack(end));
        path.leave();
        let mut windows = vec![path.window()];
        while path.window() < threshold.floor() {
            path.round();
            windows.push(path.window());
        }
        assert!(windows.len() > 4, "{windows:?}");
        let doubles = |pair: &[f64]| (pair[1] - (2.0 * pair[0]).min(pair[1])).abs() < 1.0;
        assert!(windows.windows(2).all(doubles), "{windows:?}");
        let before = path.window();
        path.round();
        assert!(path.window() - before < before * 0.2, "{before} to {}", path.window());
    }
}

/// RFC 9438, section 5.8: a window that is not filled does not grow.
#[test]
fn a_window_that_is_not_filled_stays() {
    for congestion in [Algorithm::Reno, Algorithm::Cubic] {
        let mut scene = Scene::established(Config { congestion, ..with_sack() });
        for number in 0..100 {
            scene.sends(3_000);
            scene.after(ms(10));
            scene.gets(seg().ack(1 + (number + 1) * 3_000));
        }
        assert_eq!(scene.cwnd_segments(), 10);
    }
}

/// After an idle time longer than a timeout, the window falls back to the initial one (RFC 5681, section
/// 4.1).
#[test]
fn an_idle_window_is_the_first_again() {
    let [cwnd, at_once, in_round_trip] = window_after_a_pause(true);
    assert_eq!([cwnd, at_once, in_round_trip], [10, 10, 10]);
}

/// After a shorter idle time the window is kept, and its data is sent within a round trip, with no larger
/// burst than the initial window (RFC 7661, sections 4.3 (a) and 4.4.2 (b)).
#[test]
fn an_idle_window_is_paced() {
    let [cwnd, at_once, in_round_trip] = window_after_a_pause(false);
    assert!(cwnd > 20, "{cwnd}");
    assert_eq!([at_once, in_round_trip], [10, cwnd]);
}

/// RFC 7661, section 4.4.1 (a): after a loss in an unused window, the new window follows the data in flight,
/// not the old window.
#[test]
fn a_loss_in_an_unused_window_counts_what_was_sent() {
    let config = Config { congestion: Algorithm::Reno, ..with_sack() };
    let (mut scene, start) = with_a_grown_window(config);
    scene.after(Duration::from_secs(5));
    assert_eq!(scene.sends(8 * MSS).len(), 8);
    assert!(scene.cwnd_segments() > 20);
    for at in 2..=8 {
        scene.gets(seg().ack(start).sack(&[(start + MSS, start + at * MSS)]));
        scene.out();
    }
    assert_eq!(scene.tcp.statistics().ssthresh, 4 * MSS);
}

/// Returns three numbers of segments after a pause: the window, the first burst, and the total of the next
/// round trip.
fn window_after_a_pause(restart_after_idle: bool) -> [u32; 3] {
    let (mut scene, _) = with_a_grown_window(Config { restart_after_idle, ..with_sack() });
    let grown = scene.cwnd_segments();
    scene.after(ms(199));
    assert_eq!(scene.cwnd_segments(), grown);
    scene.after(ms(1_000));
    let at_once = scene.sends(100_000).len();
    let (cwnd, mut sent) = (scene.cwnd_segments(), at_once);
    let end = scene.now + ms(9);
    while let Some(at) = scene.tcp.poll_at().filter(|at| *at <= end) {
        scene.now = at;
        scene.tcp.on_timeout(at);
        sent += scene.out().len();
    }
    [cwnd, at_once as u32, sent as u32]
}

/// Returns a connection with a window above 20 segments and a round trip of 10 ms, and the next byte to be
/// sent.
fn with_a_grown_window(config: Config) -> (Scene, u32) {
    let mut scene = Scene::established(Config { window_scaling: true, ..config });
    let mut acked = 1;
    for _ in 0..3 {
        // Twice the window is written, so that the window limits the sender.
        let segments = scene.tcp.statistics().cwnd / MSS;
        scene.sends(2 * segments * MSS);
        for _ in 0..2 {
            scene.after(ms(10));
            for _ in 0..segments {
                acked += MSS;
                scene.gets(seg().ack(acked));
                scene.out();
            }
        }
    }
    assert!(scene.cwnd_segments() > 20, "{}", scene.cwnd_segments());
    (scene, acked)
}
