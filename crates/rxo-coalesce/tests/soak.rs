//! Sends as many random packets as requested through the engine, and compares it with the oracle.
//!
//! ```sh
//! RXO_PACKETS=100000000 cargo test --release -p rxo-coalesce --test soak -- --nocapture
//! ```
//!
//! The seed is printed first. `RXO_SEED=…` starts from another one; a script that fails prints its own seed
//! first. Without `RXO_PACKETS` the test is short.

mod harness;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use rxo_testkit::Random;
use rxo_testkit::promise::{check_promises, matches_the_oracle};
use rxo_testkit::script::Script;
use rxo_testkit::sender::senders_agree;

/// The default number of packets: enough to show that the test works.
const PACKETS: u64 = 20_000;
const SEED: u64 = 2026;
const EVENTS: u64 = 150;
/// The number of packets between two lines of progress.
const PROGRESS: u64 = 10_000_000;

#[test]
fn random_packets_do_what_the_oracle_says() {
    let packets = number("RXO_PACKETS", PACKETS);
    let seed = number("RXO_SEED", SEED);
    let threads = thread::available_parallelism().map_or(1, usize::from);
    println!("soak: {packets} packets from seed {seed} on in {threads} threads");
    let (done, next) = (AtomicU64::new(0), AtomicU64::new(seed));
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while done.load(Ordering::Relaxed) < packets {
                    let count = check_seed(next.fetch_add(1, Ordering::Relaxed));
                    let before = done.fetch_add(count, Ordering::Relaxed);
                    if before / PROGRESS != (before + count) / PROGRESS {
                        println!("soak: {} packets", before + count);
                    }
                }
            });
        }
    });
    let (done, next) = (done.into_inner(), next.into_inner());
    println!("soak: {done} packets, seeds {seed} to {}: all as the oracle says", next - 1);
    assert!(done >= packets);
}

/// Checks the script of `seed`; every third script is about acknowledgements, every fifth has little memory.
/// Returns its number of packets.
fn check_seed(seed: u64) -> u64 {
    let mut random = Random::new(seed);
    let events = 1 + random.below(EVENTS);
    let bytes: Vec<u8> = (0..8 + 6 * events).map(|_| random.next() as u8).collect();
    let is_of_acks = seed.is_multiple_of(3);
    let mut script = match is_of_acks {
        true => Script::acks_from_bytes(&bytes),
        false => Script::from_bytes(&bytes),
    };
    let is_small = seed.is_multiple_of(5);
    if is_small {
        script.setup.batch_frames = 1 + script.setup.seed as usize % 16;
    }
    let check = || {
        let observed = harness::run(&script);
        check_promises(&script, &observed);
        if is_of_acks {
            senders_agree(&script, &observed);
        }
        if !is_small {
            matches_the_oracle(&script, &observed);
        }
    };
    if catch_unwind(AssertUnwindSafe(check)).is_err() {
        panic!("the script of seed {seed} fails; again with RXO_SEED={seed} RXO_PACKETS=1");
    }
    script.frame_count() as u64
}

/// Returns the number in the environment variable `name`, or `default` if it is not set.
fn number(name: &str, default: u64) -> u64 {
    let Ok(text) = std::env::var(name) else { return default };
    let digits = text.replace('_', "");
    digits.parse().unwrap_or_else(|_| panic!("{name}={text} is no number"))
}
