//! Reads and sets an interface's offloads by the ethtool ioctl.

use std::io;
use std::os::fd::AsRawFd;

use super::check;

/// Runs the command `set` (ETHTOOL_S...) with 1 or 0 on the interface `name`, in the network
/// namespace that `socket` belongs to.
pub(crate) fn set_offload(socket: &impl AsRawFd, name: &str, set: u32, on: bool) -> io::Result<()> {
    call(socket, name, &mut [set, u32::from(on)])
}

/// Runs the command `get` (ETHTOOL_G...) on the interface `name`, in the network namespace that `socket`
/// belongs to. Returns `true` if the setting is on.
pub(crate) fn get_offload(socket: &impl AsRawFd, name: &str, get: u32) -> io::Result<bool> {
    let mut value = [get, 0];
    call(socket, name, &mut value)?;
    Ok(value[1] != 0)
}

/// Switches on or off a feature that is identified by a name instead of a command.
pub(crate) fn set_feature(
    socket: &impl AsRawFd,
    name: &str,
    feature: &str,
    on: bool,
) -> io::Result<()> {
    let (number, blocks) = find_feature(socket, name, feature)?;
    // Each block has two words: a mask of bits to change, and their values.
    let mut request = vec![0; 2 + 2 * blocks];
    request[..2].copy_from_slice(&[SET_FEATURES, blocks as u32]);
    let (block, bit) = (2 + 2 * (number / 32), 1 << (number % 32));
    request[block] = bit;
    request[block + 1] = if on { bit } else { 0 };
    call(socket, name, &mut request)
}

/// Returns `true` if the feature `feature` of the interface is on.
pub(crate) fn get_feature(socket: &impl AsRawFd, name: &str, feature: &str) -> io::Result<bool> {
    let (number, blocks) = find_feature(socket, name, feature)?;
    // Each block has four words: available, requested, active, never changed.
    let mut answer = vec![0; 2 + 4 * blocks];
    answer[..2].copy_from_slice(&[GET_FEATURES, blocks as u32]);
    call(socket, name, &mut answer)?;
    Ok(answer[2 + 4 * (number / 32) + 2] & 1 << (number % 32) != 0)
}

/// Returns the number of a named feature, and the number of blocks of 32 features that the interface has.
fn find_feature(socket: &impl AsRawFd, name: &str, feature: &str) -> io::Result<(usize, usize)> {
    let [low, high]: [u32; 2] = halves(1 << FEATURE_NAMES);
    let mut sizes = [GET_SET_SIZES, 0, low, high, 0];
    call(socket, name, &mut sizes)?;
    let count = sizes[4] as usize;
    let mut names = vec![0; 3 + count * NAME_BYTES / 4];
    names[..3].copy_from_slice(&[GET_NAMES, FEATURE_NAMES, count as u32]);
    call(socket, name, &mut names)?;
    let names: Vec<u8> = names[3..].iter().flat_map(|word| word.to_ne_bytes()).collect();
    let is_meant = |one: &[u8]| one.split(|&byte| byte == 0).next() == Some(feature.as_bytes());
    let number = names.chunks(NAME_BYTES).position(is_meant);
    Ok((number.ok_or(io::ErrorKind::Unsupported)?, count.div_ceil(32)))
}

/// Returns the two halves of a 64-bit word, in their order in memory.
fn halves(word: u64) -> [u32; 2] {
    let bytes = word.to_ne_bytes();
    [0, 4].map(|at| u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]))
}

/// Runs the command in the first of `words`. The kernel reads and writes the number of words that follows from
/// the command and the counts in `words`. All callers are in this file.
fn call(socket: &impl AsRawFd, name: &str, words: &mut [u32]) -> io::Result<()> {
    // SAFETY: ifreq consists of bytes and integers, for which all zeros is valid.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    if name.len() >= request.ifr_name.len() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from.cast_signed() as libc::c_char;
    }
    request.ifr_ifru.ifru_data = words.as_mut_ptr().cast();
    // SAFETY: the request is complete and names `words`, which is as long as its command reads and writes, and
    // lives through the call.
    check(unsafe { libc::ioctl(socket.as_raw_fd(), SIOCETHTOOL, &raw mut request) })?;
    Ok(())
}

const SIOCETHTOOL: libc::Ioctl = 0x8946;

// linux/ethtool.h
const GET_NAMES: u32 = 0x1b;
const GET_SET_SIZES: u32 = 0x37;
const GET_FEATURES: u32 = 0x3a;
const SET_FEATURES: u32 = 0x3b;
const FEATURE_NAMES: u32 = 4;
const NAME_BYTES: usize = 32;
