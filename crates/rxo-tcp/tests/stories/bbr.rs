//! BBR over a bottleneck: rate, queue, fairness and path changes.

use rxo_frame::Duration;
use rxo_tcp::{Algorithm, Buffers, Config, RecoveryPhase};

use crate::bottleneck::{Bottleneck, Path};
use crate::dsl::*;

/// A path with 20 Mbit/s, a round trip of 40 ms, and a queue of 100 ms.
const PATH: Path = Path { bytes_per_ms: 2_500, delay: ms(20), queue: ms(100), loss: 0 };

fn config(congestion: Algorithm) -> Config {
    Config {
        congestion,
        send_buffer_bytes: 64 << 10,
        receive_buffer_bytes: 64 << 10,
        largest_buffers: Some(Buffers { send_bytes: 4 << 20, receive_bytes: 4 << 20 }),
        ..Config::default()
    }
}

fn network(path: Path, flows: usize) -> Bottleneck {
    Bottleneck::new(path, &vec![config(Algorithm::Bbr); flows])
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// Returns the share of the link that `bytes` bytes of text used in `time`.
fn share(path: Path, bytes: u64, time: Duration) -> f64 {
    let most = path.bytes_per_ms as f64 * time.as_secs_f64() * 1_000.0 * 1_448.0 / 1_514.0;
    bytes as f64 / most
}

#[test]
fn it_fills_the_link_and_not_the_queue() {
    let mut network = network(PATH, 1);
    network.run(seconds(2));
    let bytes = network.run(seconds(10))[0];
    assert!(share(PATH, bytes, seconds(10)) > 0.93, "{}", share(PATH, bytes, seconds(10)));
    assert!(network.mean_wait() < ms(10), "{:?}", network.mean_wait());
    assert_eq!(network.waits.2, 0);
}

/// In the first seconds BBR uses its share of the link as well, because startup reaches the rate within a few
/// round trips.
#[test]
fn it_starts_as_fast_as_slow_start() {
    let [bbr, cubic] = [Algorithm::Bbr, Algorithm::Cubic]
        .map(|congestion| Bottleneck::new(PATH, &[config(congestion)]).run(ms(600))[0]);
    assert!(bbr as f64 > 0.8 * cubic as f64, "{bbr} and {cubic} bytes");
}

/// One segment in a hundred is lost, whatever is sent; this is no congestion.
#[test]
fn random_loss_does_not_slow_it() {
    let path = Path { loss: 10, ..PATH };
    let [bbr, cubic] = [Algorithm::Bbr, Algorithm::Cubic].map(|congestion| {
        let mut network = Bottleneck::new(path, &[config(congestion)]);
        network.run(seconds(2));
        share(path, network.run(seconds(20))[0], seconds(20))
    });
    assert!(bbr > 0.9 && cubic < 0.5, "{bbr:.2}, CUBIC {cubic:.2}");
}

/// Four connections, each starting a second after the last: in the long run each gets its share.
#[test]
fn it_is_fair_to_itself() {
    let mut network = network(PATH, 4);
    for active in 1..=4 {
        for (number, flow) in network.flows.iter_mut().enumerate() {
            flow.is_active = number < active;
        }
        network.run(seconds(1));
    }
    network.run(seconds(20));
    let bytes = network.run(seconds(30));
    let (sum, squares) = bytes.iter().fold((0.0, 0.0), |(sum, squares), bytes| {
        (sum + *bytes as f64, squares + (*bytes as f64).powi(2))
    });
    let fairness = sum * sum / (4.0 * squares);
    assert!(fairness > 0.9, "{fairness:.2}: {bytes:?}");
    assert!(sum > 0.93 * share_bytes(PATH, seconds(30)), "{bytes:?}");
    assert!(network.mean_wait() < ms(60), "{:?}", network.mean_wait());
}

fn share_bytes(path: Path, time: Duration) -> f64 {
    1.0 / share(path, 1, time)
}

#[test]
fn it_follows_the_path() {
    let mut network = network(PATH, 1);
    network.run(seconds(5));
    let slower = Path { bytes_per_ms: 625, ..PATH };
    let longer = Path { delay: ms(80), ..PATH };
    for path in [slower, PATH, longer, PATH] {
        network.path = path;
        network.run(seconds(15));
        let bytes = network.run(seconds(5))[0];
        let share = share(path, bytes, seconds(5));
        assert!(share > 0.85, "{share:.2} of {} bytes/ms, {:?}", path.bytes_per_ms, path.delay);
    }
    assert!(network.mean_wait() < ms(15), "{:?}", network.mean_wait());
}

/// After idle time BBR sends at the rate that it knows, without a burst.
#[test]
fn it_resumes_at_the_rate() {
    let mut network = network(Path { queue: ms(15), ..PATH }, 1);
    network.run(seconds(5));
    network.flows[0].is_active = false;
    network.run(seconds(3));
    network.flows[0].is_active = true;
    let bytes = network.run(ms(500))[0];
    assert!(share(PATH, bytes, ms(500)) > 0.8, "{}", share(PATH, bytes, ms(500)));
    assert!(network.waits.2 < 5, "{} dropped", network.waits.2);
}

/// The same seed gives the same bytes at the same times.
#[test]
fn it_is_deterministic() {
    let run = || network(Path { loss: 10, ..PATH }, 2).run(seconds(3));
    assert_eq!(run(), run());
}

/// A small first message with a delayed acknowledgement shows far less than the rate of the path, and must
/// not slow BBR. Here the path takes 1 ms.
#[test]
fn a_small_first_message_does_not_slow_it() {
    let mut scene = Scene::established(scene_config());
    scene.sends(100);
    scene.after(ms(200));
    scene.gets(seg().ack(101));
    scene.sends(200 * MSS);
    let bytes: u32 = (0..20).map(|_| round(&mut scene, ms(1))).sum();
    assert!(bytes >= 150 * MSS, "{bytes} bytes in 20 ms");
}

/// If segments become larger while a part of a burst is left, the rest of the text still leaves.
#[test]
fn it_goes_on_with_larger_segments() {
    for more in (0..6_000).step_by(100) {
        let mut scene = Scene::established(Config {
            maximum_segment_size: 1_460,
            nagle: false,
            ..scene_config()
        });
        scene.sends(1_460);
        let seq = scene.tcp.statistics().snd_una;
        scene.tcp.on_packet_too_big(scene.now, seq, 1_300);
        drain(&mut scene);
        scene.after(Duration::from_secs(601));
        scene.sends(1_460 + more);
        drain(&mut scene);
        scene.sends(20_000);
        drain(&mut scene);
        let after = scene.tcp.statistics();
        assert_eq!((after.mss, after.path.raised), (1_460, 1), "{more} more");
    }
}

/// Runs round trips of 10 ms until everything is acknowledged.
fn drain(scene: &mut Scene) {
    for _ in 0..100 {
        round(scene, ms(10));
    }
    assert_eq!(scene.tcp.unacknowledged_bytes(), 0, "it stands still");
}

/// A recovery before the first new acknowledgement keeps the initial window.
#[test]
fn its_first_recovery_without_sack_is_no_flood() {
    let mut scene = Scene::established(Config { sack: false, ..scene_config() });
    assert_eq!(scene.sends(100 * MSS).len(), 10);
    // The first ACK sets a scaled window; the next three are duplicates.
    for _ in 0..4 {
        scene.gets(seg().ack(1));
        scene.out();
    }
    assert!(scene.tcp.statistics().recovery.phase != RecoveryPhase::Open);
    let cwnd = scene.cwnd_segments();
    assert!(cwnd <= 10, "{cwnd} segments");
}

fn scene_config() -> Config {
    Config {
        congestion: Algorithm::Bbr,
        window_scaling: true,
        send_buffer_bytes: 1 << 20,
        ..with_sack()
    }
}

/// Runs a round trip of `rtt`, after which the peer acknowledges everything sent. Returns the number of
/// bytes.
fn round(scene: &mut Scene, rtt: Duration) -> u32 {
    scene.after(rtt);
    let seen = scene.tcp.statistics();
    let bytes = seen.snd_nxt - seen.snd_una;
    scene.gets(seg().ack((seen.snd_nxt - scene.iss()) as u32));
    scene.out();
    bytes as u32
}
