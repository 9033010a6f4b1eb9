//! Tests with a configurable number of random bursts and random headers.

use std::collections::BTreeMap;
use std::fmt::Debug;

use crate::gro::Rxo;
use crate::whole::Whole;
use crate::world::Kernel;
use crate::{Test, burst, cut};

pub(crate) const TESTS: &[Test] =
    &[("random_bursts_and_headers_fare_as_with_the_kernel", || ask(BURSTS))];
pub(crate) const LONG_TESTS: &[Test] =
    &[("many_random_bursts_and_headers_fare_as_with_the_kernel", || {
        ask(number("RXO_BURSTS", MANY_BURSTS))
    })];

/// The seeds of bursts in which a difference was found that has been on the list since.
const ONCE_UNLISTED: [u64; 4] = [493_967, 2_817_405, 7_046_890, 9_644_112];

/// The number of times that each difference was found, by its list and name.
type Found = BTreeMap<String, u64>;

/// Compares `count` bursts, the aggregates that rxo makes of them, and `count` headers with the kernel.
fn ask(count: u64) {
    let mut kernel = Kernel::new();
    let mut rxo = Rxo::new(&mut kernel);
    let first = number("RXO_SEED", SEED);
    let (mut found, mut frames) = (Found::new(), 0);
    for seed in ONCE_UNLISTED {
        burst_of(seed, &mut kernel, &mut rxo, &mut Found::new());
    }
    for seed in first..first + count {
        frames += burst_of(seed, &mut kernel, &mut rxo, &mut found);
        header_of(seed, &mut kernel, &mut found);
        if (seed - first + 1).is_multiple_of(PROGRESS) {
            eprintln!("{} bursts and headers, {frames} frames: {found:?}", seed - first + 1);
        }
    }
    let again = kernel.repeated;
    eprintln!(
        "{count} bursts and headers from seed {first} on, {frames} frames, {again} sent again: {found:?}"
    );
}

/// Compares the burst of `seed`. Returns its number of frames.
fn burst_of(seed: u64, kernel: &mut Kernel, rxo: &mut Rxo, found: &mut Found) -> usize {
    let mut burst = burst::random(seed);
    let mut delivered = kernel.coalesce(&mut burst);
    let mut compared = rxo.compare(&burst, &delivered);
    while compared.is_err() {
        // The kernel's clock may advance before its change is visible here: a result that the kernel does not
        // repeat was not one poll.
        let again = kernel.coalesce(&mut burst);
        if again == delivered {
            break;
        }
        kernel.repeated += 1;
        compared = rxo.compare(&burst, &again);
        delivered = again;
    }
    match compared {
        Ok(differences) => {
            differences.into_iter().for_each(|one| count(found, "coalescing", one));
        }
        Err(why) => {
            let (burst, why) = shrunk(kernel, rxo, burst, why);
            panic!("seed {seed}: a difference that is not listed\n{}{why}", burst::show(&burst));
        }
    }
    for aggregate in rxo.deliver(&burst).iter().filter(|one| !one.frames.is_empty()) {
        match cut::recover(kernel, aggregate) {
            Ok(losses) => losses.into_iter().for_each(|one| count(found, "aggregates", one)),
            Err(why) => panic!("seed {seed}: {why}\n{}", burst::show(&burst)),
        }
    }
    burst.len()
}

fn header_of(seed: u64, kernel: &mut Kernel, found: &mut Found) {
    let whole = cut::random(seed);
    let frames = kernel.cut(&whole);
    match cut::compare(&whole, frames.as_deref()) {
        Ok(difference) => {
            difference.into_iter().for_each(|one| count(found, "segmentation", one));
        }
        Err(why) => panic!("seed {seed}: a difference that is not listed\n{why}"),
    }
}

fn count(found: &mut Found, part: &str, difference: impl Debug) {
    *found.entry(format!("{part} {difference:?}")).or_default() += 1;
}

/// Returns the smallest part of `burst` for which kernel and rxo still differ, and a description of the
/// difference.
fn shrunk(
    kernel: &mut Kernel,
    rxo: &mut Rxo,
    mut burst: Vec<Whole>,
    mut why: String,
) -> (Vec<Whole>, String) {
    for at in (0..burst.len()).rev() {
        let mut fewer = burst.clone();
        fewer.remove(at);
        let delivered = kernel.coalesce(&mut fewer);
        if let Err(still) = rxo.compare(&fewer, &delivered) {
            (burst, why) = (fewer, still);
        }
    }
    (burst, why)
}

/// Returns a number from the environment, or `otherwise`.
fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).map_or(otherwise, |text| text.parse().unwrap())
}

const BURSTS: u64 = 5_000;
const MANY_BURSTS: u64 = 200_000;
const SEED: u64 = 1;
const PROGRESS: u64 = 100_000;
