//! The longest pause in a transfer: it never stalls without losses, and a loss at most doubles the wait.
//!
//! Data, acknowledgements, window updates, probes and retransmissions are lost at random, with every
//! congestion control, with and without SACK and timestamps, and with a reader that pauses until the window
//! is closed.

use rxo_frame::{Duration, Instant};
use rxo_tcp::{Algorithm, Config};

use crate::dsl::ms;
use crate::link::{Link, Network};

/// More than the retransmission timeout on this path: at least 200 ms, and more while round-trip times vary
/// because segments queue.
const LEAST_WAIT: Duration = ms(800);
const BYTES: usize = 300_000;

/// A reader that takes everything, except while it pauses.
struct Reader {
    read: usize,
    /// The number of bytes after which it pauses once, and the length of the pause.
    pause: Option<(usize, Duration)>,
    paused_until: Instant,
}

impl Reader {
    /// Reads available text. Returns `true` if it has read anything or has paused, after which the
    /// measurement starts anew.
    fn reads(&mut self, network: &mut Network) -> bool {
        let now = network.now;
        if let Some((_, time)) = self.pause.take_if(|(after, _)| self.read >= *after) {
            self.paused_until = now + time;
        }
        if now < self.paused_until {
            return true;
        }
        let tcp = &mut network.ends[1];
        let bytes = tcp.readable().map(<[u8]>::len).sum();
        tcp.consume(bytes);
        self.read += bytes;
        bytes > 0
    }
}

/// Returns the longest wait, as a multiple of the wait that the losses during it explain.
fn longest_quiet(link: Link, config: &Config, pause: Option<(usize, Duration)>) -> f64 {
    let receiver = Config { receive_buffer_bytes: 40_000, ..config.clone() };
    let mut network = Network::new(link, config.clone(), receiver);
    let mut reader = Reader { read: 0, pause, paused_until: network.now };
    let (mut sent, mut longest) = (0, 0.0_f64);
    let (mut quiet_since, mut lost_before) = (network.now, 0);
    while reader.read < BYTES {
        if sent < BYTES {
            let room = network.ends[0].send_room().min(BYTES - sent);
            sent += network.ends[0].send(&vec![7; room]).unwrap_or(0);
        }
        assert!(
            network.step(),
            "nothing will happen any more: {} of {BYTES} were read",
            reader.read
        );
        let has_begun = reader.read > 0;
        if !has_begun || reader.reads(&mut network) {
            let losses = (network.lost - lost_before).min(60) as i32;
            let wait = network.now.since(quiet_since).as_secs_f64();
            if has_begun && network.now >= reader.paused_until {
                longest = longest.max(wait / LEAST_WAIT.as_secs_f64() / 2_f64.powi(losses));
            }
            (quiet_since, lost_before) = (network.now, network.lost);
        }
        if !has_begun {
            reader.reads(&mut network);
        }
    }
    longest
}

fn configs() -> impl Iterator<Item = Config> {
    let base = || Config { send_buffer_bytes: 200_000, ..Config::default() };
    [
        base(),
        Config { congestion: Algorithm::Reno, ..base() },
        Config { congestion: Algorithm::Bbr, ..base() },
        Config { sack: false, ..base() },
        Config { timestamps: false, ..base() },
        Config { timestamps: false, sack: false, ..base() },
    ]
    .into_iter()
}

/// Runs `check` for every kind of loss, with many seeds.
fn each_case(mut check: impl FnMut(String, Link, &Config)) {
    for (number, config) in configs().enumerate() {
        for loss in [10, 50, 150] {
            for seed in 1..60 {
                let poll = if seed % 2 == 0 { ms(1) } else { Duration::ZERO };
                let link = Link { seed, loss, poll, reordering: seed % 3 * 10, ..Link::default() };
                check(
                    format!("settings {number}, {loss} of 1000 lost, seed {seed}"),
                    link,
                    &config,
                );
            }
        }
    }
}

/// The regression: a round-trip sample was taken from the first of two retransmissions, although the ACK of
/// the first was lost. It measured our own timeout, and timeouts grew up to two minutes on a path of 20 ms.
#[test]
fn a_quiet_time_is_explained_by_the_losses_in_it() {
    each_case(|case, link, config| {
        let quiet = longest_quiet(link, config, None);
        assert!(quiet <= 1.0, "{case}: {quiet:.2}");
    });
}

/// RFC 9293, section 3.8.6.1: after a lost window update, a probe comes after at most the time that the
/// window was closed.
#[test]
fn a_reader_that_pauses_is_found_again() {
    let pause = ms(2_000);
    each_case(|case, link, config| {
        let quiet = longest_quiet(link, config, Some((100_000, pause)));
        let most = 1.0 + pause.as_secs_f64() / LEAST_WAIT.as_secs_f64();
        assert!(quiet <= most, "{case}: {quiet:.2}");
    });
}
