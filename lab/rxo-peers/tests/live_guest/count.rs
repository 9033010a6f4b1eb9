//! Tests that exactly a guest's own instructions are counted.

use rxo_peers::{Guest, Processor};

use super::start::Test;
use super::tap::{TIMEOUT, content, network_with};

pub(crate) const TESTS: &[Test] = &[
    ("a_loop_counts_as_many_instructions_as_it_has", a_loop_counts_as_many_instructions_as_it_has),
    ("a_transfer_is_counted_by_function", a_transfer_is_counted_by_function),
    ("a_guest_that_is_not_counted_says_so", a_guest_that_is_not_counted_says_so),
];

/// Number of rounds of the loop; the next constant is the instructions per round.
const ROUNDS: u32 = 20_000_000;
const ROUND: u64 = 2;

/// Returns an x86-64 Linux program that counts `rounds` down to zero and exits.
fn countdown(rounds: u32) -> Vec<u8> {
    const BASE: u64 = 0x40_0000;
    const HEADERS: u64 = 64 + 56;
    // dec ecx; jnz; then exit(0)
    let tail = [0xff, 0xc9, 0x75, 0xfc, 0xb8, 60, 0, 0, 0, 0x31, 0xff, 0x0f, 0x05];
    let code = [&[0xb9], rounds.to_le_bytes().as_slice(), &tail].concat();
    let (size, words) = (HEADERS + code.len() as u64, |words: &[u64]| {
        words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>()
    });
    let mut program = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x02\0\x3e\0\x01\0\0\0".to_vec();
    program.extend(words(&[BASE + HEADERS, 64, 0]));
    program.extend([0, 0, 0, 0, 64, 0, 56, 0, 1, 0, 0, 0, 0, 0, 0, 0]);
    program.extend([1, 0, 0, 0, 5, 0, 0, 0]);
    program.extend(words(&[0, BASE, BASE, size, size, 0x1000]));
    program.extend(code);
    program
}

/// Returns the instructions outside the kernel while the guest runs a countdown, including its shell's.
fn counted(guest: &mut Guest, rounds: u32) -> u64 {
    let bytes = countdown(rounds);
    let digits: String = bytes.iter().map(|byte| format!("\\{byte:03o}")).collect();
    guest.run(&format!("printf '{digits}' >/tmp/count; chmod +x /tmp/count"), TIMEOUT).unwrap();
    let before = guest.profile().unwrap();
    guest.run("/tmp/count", TIMEOUT).unwrap();
    guest.profile().unwrap().since(&before).user()
}

fn a_loop_counts_as_many_instructions_as_it_has() {
    let (_network, mut guest) = network_with(Processor::Counted);
    let (short, long) = (counted(&mut guest, 1), counted(&mut guest, ROUNDS));
    let expected = u64::from(ROUNDS) * ROUND;
    let counted = long - short;
    assert!(counted.abs_diff(expected) < expected / 100, "{counted} instructions, not {expected}");
}

fn a_transfer_is_counted_by_function() {
    let (network, mut guest) = network_with(Processor::Counted);
    let symbols = guest.symbols().unwrap();
    let (before, total) = (guest.profile().unwrap(), guest.instructions().unwrap());
    let bytes_before = guest.received_bytes().unwrap();
    let content = content();
    guest.send(&network, &content, TIMEOUT).unwrap();
    assert!(guest.received_bytes().unwrap() - bytes_before > content.len() as u64);
    let (after, total) =
        (guest.profile().unwrap().since(&before), guest.instructions().unwrap() - total);
    // The hash is computed outside the kernel, at some instructions per byte.
    assert!(after.user() > 5 * content.len() as u64, "{} outside the kernel", after.user());
    assert!(after.kernel() > content.len() as u64 / 8, "{} in the kernel", after.kernel());
    assert!(after.user() + after.kernel() <= total);
    let functions = after.functions(&symbols);
    assert_eq!(functions.iter().map(|(_, count)| count).sum::<u64>(), after.kernel());
    let copies = functions.iter().take(10).any(|(name, _)| name.contains("copy"));
    assert!(copies, "no copying among {:?}", &functions[..10]);
    let nameless = functions.iter().find(|(name, _)| *name == "?").map_or(0, |(_, count)| *count);
    assert!(nameless < after.kernel() / 100, "{nameless} instructions have no function");
}

fn a_guest_that_is_not_counted_says_so() {
    let (_network, guest) = network_with(Processor::Emulated);
    let error = guest.instructions().unwrap_err().to_string();
    assert_eq!(error, "this guest's instructions are not counted");
}
