//! Scripts of `vhost-live`: front ends that work, that stop in the middle, and that do anything.

use rxo_testkit::Random;

/// Split rings without more, with all features, and packed ones.
const FEATURES: [(&str, u16); 3] = [("split", 0), ("all", u16::MAX), ("packed", 1 << 15)];

/// Returns every script.
pub(super) fn scripts() -> Vec<(String, Vec<u8>)> {
    let mut scripts = Vec::new();
    for (name, features) in FEATURES {
        let begin = |places: &[u8]| [&[0][..], &features.to_le_bytes(), places].concat();
        let quiet = [begin(&[0]), start(), traffic(8)].concat();
        // The second thread writes descriptors and the indices of rings.
        let places =
            [5, 2, 0x04, 1, 0, 2, 0x14, 1, 0, 12, 0, 2, 0, 8, 0x10, 0, 1, 14, 0x10, 0x80, 0];
        let written = [begin(&places), start(), traffic(12)].concat();
        let shrinks =
            [begin(&[0]), start(), traffic(2), vec![6, 8, 0], traffic(2), vec![7, 0]].concat();
        let returns = [begin(&[0]), start(), traffic(2), vec![8, 0], start(), traffic(2)].concat();
        let named =
            [("quiet", quiet), ("written", written), ("shrinks", shrinks), ("returns", returns)];
        scripts.extend(named.map(|(what, bytes)| (format!("{name}-{what}"), bytes)));
    }
    scripts.extend((1..=8).map(|n| {
        let mut random = Random::new(n);
        (format!("random-{n}"), (0..100 * n).map(|_| random.next() as u8).collect())
    }));
    scripts
}

fn start() -> Vec<u8> {
    vec![0, 1]
}

/// Buffers for the first pair of rings: one to write, then one with a frame.
fn traffic(count: u16) -> Vec<u8> {
    let buffer = |n: u16| {
        let at = (n * 0x800).to_le_bytes();
        let empty = [&[2, 0, 2][..], &at, &2_000_u16.to_le_bytes(), &[0, 0, 0]].concat();
        let frame = [&[2, 1, 0][..], &at, &80_u16.to_le_bytes(), &[0, 0, 1]].concat();
        [empty, frame].concat()
    };
    (0..count).flat_map(buffer).collect()
}
