//! Scripts for virtqueues: random ones for each form of the ring, with and without each feature.

use rxo_testkit::Random;

/// Returns every script.
pub(super) fn scripts() -> Vec<(String, Vec<u8>)> {
    let script = |features: u8| {
        let mut random = Random::new(features.into());
        // Few descriptors, so that the ring wraps often.
        let start = [features, 1 + features % 3];
        let bytes = start.into_iter().chain((0..500).map(|_| random.next() as u8)).collect();
        (format!("features-{features}"), bytes)
    };
    // Bits: packed ring, event index, indirect descriptors; a value of 31 above them places the areas
    // anywhere.
    (0..8).chain([0xf8, 0xf9, 0xfe, 0xff]).map(script).collect()
}
