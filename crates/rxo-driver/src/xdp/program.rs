//! Program: the BPF program that redirects the frames of an interface to AF_XDP sockets.
//!
//! This module is separate because it contains no code for rings. Contract: a frame of a queue that has a socket
//! is delivered to that socket, any other frame to the kernel. Some drivers (such as veth) keep the VLAN tag of a
//! frame in metadata. The program then writes the tag back into the frame, because an AF_XDP socket receives only
//! bytes.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use crate::bpf::{self, Instruction, Kind};

/// The program on an interface. It is detached when this value is dropped, or this process ends.
#[derive(Debug)]
pub(super) struct Program {
    _link: OwnedFd,
    /// `true` if the program queries VLAN tags from the driver.
    pub(super) has_tags: bool,
}

/// The type number of the kernel function that returns the VLAN tag of a frame.
#[derive(Clone, Copy, Debug)]
pub(super) struct TagFunction(pub(super) u32);

impl Program {
    /// Attaches a program to the interface with the index `interface`. The program redirects the
    /// frames of each queue to its socket; `sockets` are pairs of a queue's number and a socket.
    pub(super) fn attach<'s>(
        interface: u32,
        sockets: impl Iterator<Item = (u32, BorrowedFd<'s>)>,
        tags: Option<TagFunction>,
    ) -> io::Result<Self> {
        let sockets: Vec<_> = sockets.collect();
        let queues = sockets.iter().map(|(queue, _)| queue + 1).max().unwrap_or(1);
        let map = bpf::map_of_sockets(queues)?;
        for (queue, socket) in sockets {
            bpf::put_socket(map.as_fd(), queue, socket)?;
        }
        let (program, has_tags) = load(&map, interface, tags)?;
        Ok(Self { _link: bpf::attach(program.as_fd(), interface)?, has_tags })
    }
}

/// Loads the best program that this kernel accepts: first a program that queries VLAN tags, then a program that
/// accepts frames in pieces, then a plain program. Also returns `true` if the program queries tags.
fn load(map: &OwnedFd, interface: u32, tags: Option<TagFunction>) -> io::Result<(OwnedFd, bool)> {
    let plain = instructions(map.as_raw_fd(), None);
    if tags.is_some() {
        let kind = Kind::Xdp { takes_pieces: true, bound_to: Some(interface) };
        if let Ok(loaded) = bpf::load(&instructions(map.as_raw_fd(), tags), kind) {
            return Ok((loaded, true));
        }
    }
    let load = |takes_pieces| bpf::load(&plain, Kind::Xdp { takes_pieces, bound_to: None });
    Ok((load(true).or_else(|_| load(false))?, false))
}

/// Checks that this process may load a program. Loads one and removes it at once.
pub(crate) fn try_to_load() -> io::Result<()> {
    let map = bpf::map_of_sockets(1)?;
    load(&map, 0, None).map(drop)
}

/// Builds the program for the map of sockets with the descriptor `map`.
fn instructions(map: i32, tags: Option<TagFunction>) -> Vec<Instruction> {
    let new = Instruction::new;
    let mut all = vec![new(MOVE, CONTEXT, FIRST, 0)];
    if let Some(TagFunction(function)) = tags {
        all.extend(with_tag(function as i32));
    }
    all.extend([
        new(LOAD_WORD, SECOND, CONTEXT, 0).at(QUEUE_AT),
        new(LOAD_WIDE_VALUE, FIRST, IS_MAP, map),
        new(0, 0, 0, 0),
        // The verdict for a frame whose queue has no socket.
        new(MOVE_VALUE, THIRD, 0, PASS),
        new(CALL, 0, 0, REDIRECT_MAP),
        new(EXIT, 0, 0, 0),
    ]);
    all
}

/// Builds the instructions that write the VLAN tag of a frame back into the frame, after its addresses.
fn with_tag(function: i32) -> Vec<Instruction> {
    let new = Instruction::new;
    let push = [
        new(MOVE, FIRST, CONTEXT, 0),
        new(MOVE_VALUE, SECOND, 0, -TAG_BYTES),
        new(CALL, 0, 0, ADJUST_HEAD),
        // If there is no space for the tag, the frame is dropped and counted as aborted: without its tag it
        // would belong to another network.
        new(JUMP_IF_EQUAL, RESULT, 0, 0).at(2),
        new(MOVE_VALUE, RESULT, 0, ABORTED),
        new(EXIT, 0, 0, 0),
        new(LOAD_WORD, FIRST, CONTEXT, 0).at(DATA_AT),
        new(LOAD_WORD, SECOND, CONTEXT, 0).at(DATA_END_AT),
        new(MOVE, THIRD, FIRST, 0),
        new(ADD_VALUE, THIRD, 0, 18),
        // Never taken, because a frame with a tag has an Ethernet header; the kernel's verifier requires the
        // check.
        new(JUMP_IF_GREATER, THIRD, SECOND, 0).at(9),
        new(LOAD_WIDE, RESULT, FIRST, 0).at(4),
        new(STORE_WIDE, FIRST, RESULT, 0),
        new(LOAD_WORD, RESULT, FIRST, 0).at(12),
        new(STORE_WORD, FIRST, RESULT, 0).at(8),
        new(LOAD_HALF, RESULT, STACK, 0).at(PROTOCOL_AT),
        new(STORE_HALF, FIRST, RESULT, 0).at(12),
        new(LOAD_HALF, RESULT, STACK, 0).at(TAG_AT),
        new(TO_NETWORK_ORDER, RESULT, 0, 16),
        new(STORE_HALF, FIRST, RESULT, 0).at(14),
    ];
    let mut all = vec![
        new(STORE_WIDE_VALUE, STACK, 0, 0).at(TAG_AT),
        new(MOVE, FIRST, CONTEXT, 0),
        new(MOVE, SECOND, STACK, 0),
        new(ADD_VALUE, SECOND, 0, i32::from(PROTOCOL_AT)),
        new(MOVE, THIRD, STACK, 0),
        new(ADD_VALUE, THIRD, 0, i32::from(TAG_AT)),
        new(CALL, 0, IS_KERNEL_FUNCTION, function),
        // A result other than zero means that the frame has no tag in its metadata, or that the driver
        // reports none.
        new(JUMP_UNLESS_EQUAL, RESULT, 0, 0).at(push.len() as i16),
    ];
    all.extend(push);
    all
}

/// The registers: the result of a call, its arguments, the description of the frame, and the stack.
const RESULT: u8 = 0;
const FIRST: u8 = 1;
const SECOND: u8 = 2;
const THIRD: u8 = 3;
const CONTEXT: u8 = 6;
const STACK: u8 = 10;

const LOAD_HALF: u32 = 0x69;
const LOAD_WORD: u32 = 0x61;
const LOAD_WIDE: u32 = 0x79;
const LOAD_WIDE_VALUE: u32 = 0x18;
const STORE_HALF: u32 = 0x6b;
const STORE_WORD: u32 = 0x63;
const STORE_WIDE: u32 = 0x7b;
const STORE_WIDE_VALUE: u32 = 0x7a;
const MOVE: u32 = 0xbf;
const MOVE_VALUE: u32 = 0xb7;
const ADD_VALUE: u32 = 0x07;
const TO_NETWORK_ORDER: u32 = 0xdc;
const JUMP_IF_EQUAL: u32 = 0x15;
const JUMP_UNLESS_EQUAL: u32 = 0x55;
const JUMP_IF_GREATER: u32 = 0x2d;
const CALL: u32 = 0x85;
const EXIT: u32 = 0x95;

/// The meanings of an immediate value, as the source register encodes them: the descriptor of a map, or the
/// number of a kernel function.
const IS_MAP: u8 = 1;
const IS_KERNEL_FUNCTION: u8 = 2;
/// The numbers of `bpf_redirect_map` and `bpf_xdp_adjust_head`, and the verdicts `XDP_ABORTED` and
/// `XDP_PASS`.
const REDIRECT_MAP: i32 = 51;
const ADJUST_HEAD: i32 = 44;
const ABORTED: i32 = 0;
const PASS: i32 = 2;
/// The offsets of fields in `struct xdp_md` of linux/bpf.h, in bytes.
const DATA_AT: i16 = 0;
const DATA_END_AT: i16 = 4;
const QUEUE_AT: i16 = 16;
/// The offsets on the stack of the tag's protocol and of its value, and the length of a tag; all in bytes.
const PROTOCOL_AT: i16 = -4;
const TAG_AT: i16 = -8;
const TAG_BYTES: i32 = 4;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_jump_leads_to_the_redirection() {
        let plain = instructions(7, None).len();
        let all = instructions(7, Some(TagFunction(1)));
        let redirection = all.len() - (plain - 1);
        let is_jump =
            |one: &Instruction| [JUMP_UNLESS_EQUAL, JUMP_IF_GREATER].contains(&u32::from(one.code));
        let targets = all.iter().enumerate().filter(|(_, one)| is_jump(one));
        let targets: Vec<_> =
            targets.map(|(at, one)| at + 1 + usize::from(one.offset.unsigned_abs())).collect();
        assert_eq!(targets, [redirection; 2]);
    }
}
