//! Scripts for the hook before the engine: ACKs in every order relative to frames that they must not
//! overtake.

use rxo_testkit::Random;

const TURN: u8 = 0;
const ACK: u8 = 1;
const CHANGED: u8 = 2;
const TEXT: u8 = 3;
const PASS: u8 = 5;
const WRITE: u8 = 6;
const TOGGLE: u8 = 7;
/// Number of the second connection.
const OTHER: u8 = 8;
/// Number of the third connection, which shares a hash slot with the first.
const SHARES: u8 = 16;

/// Returns every script.
pub(super) fn scripts() -> Vec<(String, Vec<u8>)> {
    let bulk: Vec<u8> =
        [WRITE, 255, TURN, ACK, 60, 200, ACK, 128, 200, ACK, 255, 200, TURN].repeat(8);
    let between = [WRITE, 200, TURN, ACK, 100, 9, TEXT, 20, 0, ACK, 255, 9, TURN].repeat(6);
    let duplicates =
        [WRITE, 255, TURN, ACK, 0, 99, ACK, 0, 99, ACK, 0, 99, ACK, 0, 99, TURN].repeat(4);
    let both =
        [WRITE, 90, WRITE | OTHER, 90, TURN, ACK, 255, 9, ACK | OTHER, 255, 9, TURN].repeat(6);
    let closed =
        [WRITE, 255, TURN, ACK, 255, 0, TURN, PASS, 250, TURN, ACK, 255, 50, TURN].repeat(4);
    let toggled = [WRITE, 64, TURN, TOGGLE, 0, ACK, 255, 90, TURN, TOGGLE, 0x20].repeat(6);
    let flags =
        [WRITE, 64, TURN, ACK, 128, 90, CHANGED, 0, 33, 8, 1, 1, ACK, 255, 90, TURN].repeat(4);
    let beyond = [WRITE, 64, TURN, ACK, 254, 90, ACK, 255, 90, TURN].repeat(6);
    let shared = [
        [WRITE, 255, WRITE | SHARES, 255, TURN, ACK, 40, 9, ACK, 80, 9].as_slice(),
        &[ACK | SHARES, 60, 9, ACK, 120, 9, ACK, 160, 9, ACK, 160, 99, TURN],
    ];
    let shared = shared.concat().repeat(4);
    let locked = [
        [WRITE, 255, TEXT, 20, 0, TURN, ACK, 60, 9, ACK, 128, 9].as_slice(),
        &[TEXT, 9, 0, ACK, 160, 9, ACK, 200, 9, ACK, 255, 9, TURN],
    ];
    let locked = locked.concat().repeat(6);
    let burst = (0..12).flat_map(|n| [ACK, 20 * n, n]);
    let burst: Vec<u8> =
        [WRITE, 255, TEXT, 20, 0, TURN].into_iter().chain(burst).chain([TURN]).collect();
    let burst = burst.repeat(4);
    let held = [WRITE, 200, TURN, TEXT, 20, 0, TURN, ACK, 60, 9, TURN].repeat(6);
    let named = [
        ("bulk", bulk),
        ("between", between),
        ("duplicates", duplicates),
        ("both", both),
        ("closed-window", closed),
        ("toggled", toggled),
        ("flags", flags),
        ("beyond", beyond),
        ("shared", shared),
        ("locked", locked),
        ("burst", burst),
        ("held", held),
    ];
    let with = |settings: u8, script: &[u8]| [&[settings], script].concat();
    let mut files: Vec<(String, Vec<u8>)> =
        named.iter().map(|(name, script)| ((*name).to_owned(), with(0, script))).collect();
    files.extend(named.iter().map(|(name, script)| (format!("{name}-plain"), with(3, script))));
    files.extend(SETTINGS.iter().flat_map(|(setting, bits)| {
        named.iter().map(move |(name, script)| (format!("{name}-{setting}"), with(*bits, script)))
    }));
    for seed in 0..3 {
        let mut random = Random::new(seed);
        let bytes = (0..600).map(|_| random.next() as u8).collect();
        files.push((format!("random-{seed}"), bytes));
    }
    files
}

/// Settings of the harness, as bits: timestamps 1, no SACK 2, one ACK per turn 4, Ethernet 8, IPv6 16, held
/// beyond a poll 32, lock held 64, padded 128.
const SETTINGS: [(&str, u8); 6] = [
    ("ethernet", 8 | 1),
    ("padded", 128 | 8),
    ("v6", 16 | 8 | 1),
    ("held", 32),
    ("locked", 64 | 1),
    ("all", 64 | 32 | 16 | 8 | 2),
];
