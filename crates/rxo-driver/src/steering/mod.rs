//! Steering: builds the program by which the kernel chooses the queue of a frame.
//!
//! This module is separate because packet sockets run it as a classic BPF filter ([`program`]), and TAPs as an
//! extended one (`extended`): both must choose the same queue, so that one worker processes both directions of a
//! connection. Contract: the queue depends only on the frame, and is the same for both directions. A connection
//! gets the queue of [`shard_of`](rxo_wire::shard_of()), so a host can predict it. Other IP packets, including
//! TCP fragments, are steered by their addresses alone, because they may contain no ports. All other frames, such
//! as ARP, are steered to queue 0.

mod extended;

use std::ffi::c_int;

use libc::sock_filter;
use rxo_wire::{PROTOCOL_TCP, STEERING_MULTIPLIER, STEERING_SHIFT};

pub(crate) use extended::load;

/// Maximum number of queues of one device: the kernel's limit for a group of sockets, and for a TAP.
pub(crate) const MOST_QUEUES: u32 = 256;

/// Builds the classic BPF filter that returns the queue of a frame, a number less than `queues`.
pub(crate) fn program(queues: u32) -> Vec<sock_filter> {
    let mut steps = vec![load_half(PROTOCOL)];
    let (v4, v6) = (of_v4(queues), of_v6(queues));
    steps.push(unless_equal(libc::ETH_P_IP as u32, v4.len()));
    steps.extend(v4);
    steps.push(unless_equal(libc::ETH_P_IPV6 as u32, v6.len()));
    steps.extend(v6);
    steps.push(answer(0));
    steps
}

/// Builds the steps for an IPv4 packet. They end with a return.
fn of_v4(queues: u32) -> Vec<sock_filter> {
    // The index register gets the length of the IP header.
    let mut ports = vec![load_byte(network(0)), step(libc::BPF_ALU | libc::BPF_AND, 0xf)];
    ports.extend([step(libc::BPF_ALU | libc::BPF_LSH, 2), step(libc::BPF_MISC | libc::BPF_TAX, 0)]);
    ports.extend(fold_ports(libc::BPF_IND, network(0)));
    let is_fragment = [load_half(network(6)), if_any(0x3fff, ports.len())];
    let mut steps = begin(network(9), is_fragment.len() + ports.len());
    steps.extend(is_fragment);
    steps.extend(ports);
    steps.extend((12..20).step_by(4).flat_map(fold_word));
    steps.extend(finish(queues));
    steps
}

/// Builds the steps for an IPv6 packet. They end with a return.
fn of_v6(queues: u32) -> Vec<sock_filter> {
    let ports = fold_ports(libc::BPF_ABS, network(40));
    let mut steps = begin(network(6), ports.len());
    steps.extend(ports);
    steps.extend((8..40).step_by(4).flat_map(fold_word));
    steps.extend(finish(queues));
    steps
}

/// Builds the steps that store zero, and skip `ports` steps unless the byte at offset `protocol` is that of
/// TCP.
fn begin(protocol: c_int, ports: usize) -> Vec<sock_filter> {
    let zero = [step(libc::BPF_LD | libc::BPF_IMM, 0), step(libc::BPF_ST, 0)];
    let mut steps = Vec::from(zero);
    steps.extend([load_byte(protocol), unless_equal(u32::from(PROTOCOL_TCP), ports)]);
    steps
}

/// Builds the steps that store the exclusive or of both ports, which are at offset `at`. They overwrite the
/// index register.
fn fold_ports(mode: u32, at: c_int) -> [sock_filter; 7] {
    let both = step(libc::BPF_LD | libc::BPF_W | mode, at as u32);
    let store = step(libc::BPF_ST, 0);
    let first = step(libc::BPF_ALU | libc::BPF_RSH, 16);
    let [stored, xor] = xor_stored();
    [both, store, first, stored, xor, step(libc::BPF_ALU | libc::BPF_AND, 0xffff), store]
}

/// Builds the steps that combine the 32-bit word at offset `at` of the IP header with the stored value, by
/// exclusive or.
fn fold_word(at: c_int) -> [sock_filter; 4] {
    let load = step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, network(at) as u32);
    let [stored, xor] = xor_stored();
    [load, stored, xor, step(libc::BPF_ST, 0)]
}

/// Builds the steps that combine the accumulator with the stored value, by exclusive or. They overwrite the
/// index register.
fn xor_stored() -> [sock_filter; 2] {
    let load = step(libc::BPF_LDX | libc::BPF_W | libc::BPF_MEM, 0);
    [load, step(libc::BPF_ALU | libc::BPF_XOR | libc::BPF_X, 0)]
}

/// Builds the steps that return the queue for the hash in the accumulator.
fn finish(queues: u32) -> [sock_filter; 4] {
    [
        step(libc::BPF_ALU | libc::BPF_MUL, STEERING_MULTIPLIER),
        step(libc::BPF_ALU | libc::BPF_RSH, STEERING_SHIFT),
        step(libc::BPF_ALU | libc::BPF_MOD, queues),
        step(libc::BPF_RET | libc::BPF_A, 0),
    ]
}

fn load_byte(at: c_int) -> sock_filter {
    step(libc::BPF_LD | libc::BPF_B | libc::BPF_ABS, at as u32)
}

fn load_half(at: c_int) -> sock_filter {
    step(libc::BPF_LD | libc::BPF_H | libc::BPF_ABS, at as u32)
}

/// Builds the step that skips the next `steps` steps if the accumulator has any of the bits of `mask`.
fn if_any(mask: u32, steps: usize) -> sock_filter {
    jump(libc::BPF_JSET, mask, (steps as u8, 0))
}

/// Builds the step that skips the next `steps` steps unless the accumulator equals `value`.
fn unless_equal(value: u32, steps: usize) -> sock_filter {
    jump(libc::BPF_JEQ, value, (0, steps as u8))
}

fn jump(what: u32, value: u32, (jt, jf): (u8, u8)) -> sock_filter {
    sock_filter { jt, jf, ..step(libc::BPF_JMP | what, value) }
}

fn answer(queue: u32) -> sock_filter {
    step(libc::BPF_RET, queue)
}

const fn step(code: u32, k: u32) -> sock_filter {
    sock_filter { code: code as u16, jt: 0, jf: 0, k }
}

/// Returns the BPF offset of byte `at` of the IP header.
const fn network(at: c_int) -> c_int {
    libc::SKF_NET_OFF + at
}

/// The BPF offset of the frame's EtherType, which the kernel keeps beside the frame.
const PROTOCOL: c_int = libc::SKF_AD_OFF + libc::SKF_AD_PROTOCOL;

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;
    use rxo_wire::{FlowKey, parse, shard_of};

    use super::*;

    /// Runs a classic filter on a frame whose IP header begins at byte 14; as the kernel does, returns 0 if a
    /// step loads beyond the end.
    fn run(program: &[sock_filter], frame: &[u8]) -> u32 {
        interpret(program, frame).unwrap_or(0)
    }

    fn interpret(program: &[sock_filter], frame: &[u8]) -> Option<u32> {
        let (mut a, mut x, mut stored, mut at) = (0_u32, 0_u32, HashMap::new(), 0);
        let load = |k: u32, x: u32, bytes: usize| {
            let k = k as c_int;
            let from = if k == PROTOCOL { 12 } else { 14 + (k - libc::SKF_NET_OFF) as usize };
            let found = frame.get(from + x as usize..)?.get(..bytes)?;
            Some(found.iter().fold(0, |value, byte| value << 8 | u32::from(*byte)))
        };
        loop {
            let sock_filter { code, jt, jf, k } = *program.get(at)?;
            at += 1;
            match u32::from(code) {
                0x00 => a = k,
                0x30 => a = load(k, 0, 1)?,
                0x28 => a = load(k, 0, 2)?,
                0x20 => a = load(k, 0, 4)?,
                0x40 => a = load(k, x, 4)?,
                0x02 => _ = stored.insert(k, a),
                0x61 => x = *stored.get(&k)?,
                0x07 => x = a,
                0xac => a ^= x,
                0x54 => a &= k,
                0x64 => a <<= k,
                0x74 => a >>= k,
                0x24 => a = a.wrapping_mul(k),
                0x94 => a %= k,
                0x15 => at += usize::from(if a == k { jt } else { jf }),
                0x45 => at += usize::from(if a & k != 0 { jt } else { jf }),
                0x06 => return Some(k),
                0x16 => return Some(a),
                other => panic!("a step {other:#x} that no program has"),
            }
        }
    }

    fn v4(protocol: u8, ports: [u8; 4], option_words: u8) -> Vec<u8> {
        let mut frame = [&[2; 12][..], &[8, 0], &[0x45 + option_words, 0, 0, 0]].concat();
        let bytes = 40 + 4 * u16::from(option_words);
        frame[16..18].copy_from_slice(&bytes.to_be_bytes());
        frame.extend([0, 0, 0x40, 0, 64, protocol, 0, 0, 10, 0, 0, 1, 192, 168, 7, 9]);
        frame.extend(std::iter::repeat_n(1, 4 * usize::from(option_words)));
        [frame, tcp(ports)].concat()
    }

    fn v6(next: u8, ports: [u8; 4]) -> Vec<u8> {
        let mut frame = [&[2; 12][..], &[0x86, 0xdd], &[0x60, 0, 0, 0, 0, 20, next, 64]].concat();
        frame.extend((0..32).map(|at| at * 7));
        [frame, tcp(ports)].concat()
    }

    fn tcp(ports: [u8; 4]) -> Vec<u8> {
        [&ports[..], &[0, 0, 0, 1, 0, 0, 0, 1, 0x50, 0x10, 1, 0, 0, 0, 0, 0]].concat()
    }

    proptest! {
        #[test]
        fn a_connection_goes_to_its_shard_from_both_sides(
            addresses: [u8; 32],
            ports: [u8; 4],
            option_words in 0_u8..=10,
            queues in 1..=MOST_QUEUES,
        ) {
            let (mut plain, mut long) = (v4(6, ports, 0), v4(6, ports, option_words));
            let mut six = v6(6, ports);
            plain[26..34].copy_from_slice(&addresses[..8]);
            long[26..34].copy_from_slice(&addresses[8..16]);
            six[22..54].copy_from_slice(&addresses);
            for frame in [plain, long, six] {
                let key: FlowKey = parse(&frame).unwrap().key;
                let queue = run(&program(queues), &frame);
                prop_assert_eq!(queue, shard_of(&key, queues));
                prop_assert_eq!(queue, shard_of(&key.reversed(), queues));
            }
        }
    }

    /// A fragment has no ports, so all fragments of a datagram use the queue of the whole datagrams between
    /// the same addresses.
    #[test]
    fn what_is_no_whole_tcp_packet_goes_by_its_addresses() {
        let program = program(16);
        let expected = run(&program, &v4(17, [0; 4], 0));
        for ports in [[1, 2, 3, 4], [9; 4]] {
            let mut fragment = v4(17, ports, 0);
            fragment[20] = 0x20;
            let mut later = v4(6, ports, 0);
            later[21] = 7;
            for frame in [v4(17, ports, 0), v4(1, ports, 2), fragment, later] {
                assert_eq!(run(&program, &frame), expected);
            }
            assert_eq!(run(&program, &v6(17, ports)), run(&program, &v6(58, [0; 4])));
        }
        let hosts = (0..200_u8).map(|host| {
            let mut frame = v4(17, [0; 4], 0);
            frame[29] = host;
            run(&program, &frame)
        });
        let used: std::collections::HashSet<_> = hosts.collect();
        assert_eq!(used.len(), 16, "addresses use all queues");
    }

    #[test]
    fn a_frame_of_another_protocol_or_cut_short_goes_to_the_first_queue() {
        let mut arp = v4(6, [1, 2, 3, 4], 0);
        arp[12..14].copy_from_slice(&[8, 6]);
        assert_eq!(run(&program(16), &arp), 0);
        let whole = v4(6, [1, 2, 3, 4], 3);
        for end in 14..34 {
            assert_eq!(run(&program(16), &whole[..end]), 0);
        }
    }
}
