//! Fanout: several sources on one interface, one per shard. Each receives the frames of its shard's
//! connections.
//!
//! This module is separate because the sockets form a group, and the group's filter decides which socket gets
//! a frame. The filter computes [`shard_of`](rxo_wire::shard_of()), so a host can predict the shard that
//! receives the answers to a connection it opens. All frames that are not whole TCP packets go to the first
//! source: ARP, ICMP, fragments, and packets with IPv6 extension headers.

use std::ffi::c_int;
use std::os::fd::AsFd;

use libc::sock_filter;
use rxo_device::DeviceError;
use rxo_wire::{PROTOCOL_TCP, STEERING_MULTIPLIER, STEERING_SHIFT};

use super::{PacketOptions, PacketSource};
use crate::{fault, sys};

impl PacketSource {
    /// Opens `shards` sources on the interface `name`, which must be up. Frames that arrive before all
    /// sources are open may be received by several of them.
    ///
    /// # Errors
    /// Returns the errors of [`PacketSource::open`], and an error if `shards` is not from 1 to 256.
    pub fn open_shards(
        name: &str,
        options: PacketOptions,
        shards: u32,
    ) -> Result<Vec<Self>, DeviceError> {
        if !(1..=MOST_SHARDS).contains(&shards) {
            return Err(DeviceError::Usage(format!(
                "packet:{name}: {shards} shards; choose from 1 to {MOST_SHARDS}"
            )));
        }
        let open = |_| Self::open(name, options);
        let sources = (0..shards).map(open).collect::<Result<Vec<_>, _>>()?;
        if let Some((first, others)) = sources.split_first() {
            first.found_group(shards).map_err(|error| fault::opening(first.device(), error))?;
            let group = first.group().map_err(|error| fault::opening(first.device(), error))?;
            for other in others {
                other.join(group).map_err(|error| fault::opening(other.device(), error))?;
            }
        }
        Ok(sources)
    }

    /// Makes this socket the first of a group, with the filter for `shards`.
    fn found_group(&self, shards: u32) -> std::io::Result<()> {
        self.join((CBPF | UNIQUE_ID | IGNORE_OUTGOING) << 16)?;
        sys::set_filter(self.as_fd(), libc::SOL_PACKET, PACKET_FANOUT_DATA, &program(shards))
    }

    /// Returns the group's number and flags, in the form that [`join`](Self::join) takes.
    fn group(&self) -> std::io::Result<c_int> {
        let number: c_int = sys::option(self.as_fd(), libc::SOL_PACKET, PACKET_FANOUT)?;
        Ok(number & 0xffff | (CBPF | IGNORE_OUTGOING) << 16)
    }

    fn join(&self, group: c_int) -> std::io::Result<()> {
        sys::set_option(self.as_fd(), libc::SOL_PACKET, PACKET_FANOUT, &group)
    }
}

/// Builds the classic BPF filter that returns the index of a packet's shard.
fn program(shards: u32) -> Vec<sock_filter> {
    let mut steps = vec![load_half(libc::SKF_AD_OFF + libc::SKF_AD_PROTOCOL)];
    let (v4, v6) = (of_v4(shards), of_v6(shards));
    steps.push(unless_equal(libc::ETH_P_IP as u32, v4.len()));
    steps.extend(v4);
    steps.push(unless_equal(libc::ETH_P_IPV6 as u32, v6.len()));
    steps.extend(v6);
    steps.push(answer(0));
    steps
}

/// Builds the steps for an IPv4 packet. They end with a return.
fn of_v4(shards: u32) -> Vec<sock_filter> {
    let mut steps = vec![load_byte(network(9)), if_equal(u32::from(PROTOCOL_TCP)), answer(0)];
    steps.extend([load_half(network(6)), unless_any(0x3fff), answer(0)]);
    // The index register gets the length of the IP header.
    steps.extend([load_byte(network(0)), step(libc::BPF_ALU | libc::BPF_AND, 0xf)]);
    steps.extend([step(libc::BPF_ALU | libc::BPF_LSH, 2), step(libc::BPF_MISC | libc::BPF_TAX, 0)]);
    steps.extend(fold_ports(libc::BPF_IND, network(0)));
    steps.extend((12..20).step_by(4).flat_map(fold_word));
    steps.extend(finish(shards));
    steps
}

/// Builds the steps for an IPv6 packet. They end with a return.
fn of_v6(shards: u32) -> Vec<sock_filter> {
    let mut steps = vec![load_byte(network(6)), if_equal(u32::from(PROTOCOL_TCP)), answer(0)];
    steps.extend(fold_ports(libc::BPF_ABS, network(40)));
    steps.extend((8..40).step_by(4).flat_map(fold_word));
    steps.extend(finish(shards));
    steps
}

/// Stores the exclusive or of both ports, which are at offset `at`.
fn fold_ports(mode: u32, at: c_int) -> Vec<sock_filter> {
    let load = |at: c_int| step(libc::BPF_LD | libc::BPF_H | mode, at as u32);
    let mut steps = vec![load(at), step(libc::BPF_ST, 0), load(at + 2)];
    steps.extend(fold());
    steps
}

/// Combines the 32-bit word at offset `at` of the IP header with the stored value, by exclusive or.
fn fold_word(at: c_int) -> Vec<sock_filter> {
    let mut steps = vec![step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, network(at) as u32)];
    steps.extend(fold());
    steps
}

/// Sets both the accumulator and the stored value to their exclusive or. Overwrites the index register.
fn fold() -> [sock_filter; 3] {
    let load = step(libc::BPF_LDX | libc::BPF_W | libc::BPF_MEM, 0);
    [load, step(libc::BPF_ALU | libc::BPF_XOR | libc::BPF_X, 0), step(libc::BPF_ST, 0)]
}

/// Returns the shard for the hash in the accumulator.
fn finish(shards: u32) -> [sock_filter; 4] {
    [
        step(libc::BPF_ALU | libc::BPF_MUL, STEERING_MULTIPLIER),
        step(libc::BPF_ALU | libc::BPF_RSH, STEERING_SHIFT),
        step(libc::BPF_ALU | libc::BPF_MOD, shards),
        step(libc::BPF_RET | libc::BPF_A, 0),
    ]
}

fn load_byte(at: c_int) -> sock_filter {
    step(libc::BPF_LD | libc::BPF_B | libc::BPF_ABS, at as u32)
}

fn load_half(at: c_int) -> sock_filter {
    step(libc::BPF_LD | libc::BPF_H | libc::BPF_ABS, at as u32)
}

/// Skips the next step if the accumulator equals `value`.
fn if_equal(value: u32) -> sock_filter {
    jump(libc::BPF_JEQ, value, (1, 0))
}

/// Skips the next step if the accumulator has none of the bits of `mask`.
fn unless_any(mask: u32) -> sock_filter {
    jump(libc::BPF_JSET, mask, (0, 1))
}

/// Skips the next `steps` steps unless the accumulator equals `value`.
fn unless_equal(value: u32, steps: usize) -> sock_filter {
    jump(libc::BPF_JEQ, value, (0, steps as u8))
}

fn jump(what: u32, value: u32, (jt, jf): (u8, u8)) -> sock_filter {
    sock_filter { jt, jf, ..step(libc::BPF_JMP | what, value) }
}

fn answer(shard: u32) -> sock_filter {
    step(libc::BPF_RET, shard)
}

const fn step(code: u32, k: u32) -> sock_filter {
    sock_filter { code: code as u16, jt: 0, jf: 0, k }
}

/// Returns the BPF offset of byte `at` of the IP header.
const fn network(at: c_int) -> c_int {
    libc::SKF_NET_OFF + at
}

const MOST_SHARDS: u32 = 256;

// From <linux/if_packet.h>.
const PACKET_FANOUT: c_int = 18;
const PACKET_FANOUT_DATA: c_int = 22;
const CBPF: c_int = 6;
const UNIQUE_ID: c_int = 0x2000;
const IGNORE_OUTGOING: c_int = 0x4000;
