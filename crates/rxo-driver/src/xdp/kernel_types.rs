//! Kernel types (BTF): finds the type number of a kernel function, by which a BPF program calls that
//! function.
//!
//! This module is separate because it only parses bytes. Contract: the result for invalid bytes is `None`.

use std::fs;

use super::program::TagFunction;

/// Finds the kernel function that returns the VLAN tag of a frame; `None` before Linux 6.8, or if the kernel
/// publishes no types.
pub(super) fn tag_function() -> Option<TagFunction> {
    let types = fs::read("/sys/kernel/btf/vmlinux").ok()?;
    function(&types, b"bpf_xdp_metadata_rx_vlan_tag").map(TagFunction)
}

/// Finds the type number of the function `name` in the types `bytes`; `None` if there is none.
fn function(bytes: &[u8], name: &[u8]) -> Option<u32> {
    let word =
        |bytes: &[u8], at: usize| Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    let at = |field: usize| Some(word(bytes, field)? as usize);
    if word(bytes, 0)? & 0xffff != MAGIC {
        return None;
    }
    let (header, types, types_bytes) = (at(4)?, at(8)?, at(12)?);
    let (texts, texts_bytes) = (at(16)?, at(20)?);
    let texts = bytes.get(header + texts..)?.get(..texts_bytes)?;
    let mut types = bytes.get(header + types..)?.get(..types_bytes)?;
    for number in 1.. {
        let (text, info) = (word(types, 0)? as usize, word(types, 4)?);
        let kind = info >> 24 & 0x1f;
        let is_name = || texts.get(text..)?.strip_prefix(name).map(|rest| rest.first() == Some(&0));
        if kind == FUNCTION && is_name() == Some(true) {
            return Some(number);
        }
        types = types.get(TYPE_BYTES + more_bytes(kind, info & 0xffff)?..)?;
    }
    None
}

/// Returns the number of bytes that follow a type of this kind with `members` members; `None` for an unknown
/// kind.
fn more_bytes(kind: u32, members: u32) -> Option<usize> {
    let members = members as usize;
    Some(match kind {
        1 | 14 | 17 => 4,
        3 => 12,
        4 | 5 | 15 | 19 => 12 * members,
        6 | 13 => 8 * members,
        2 | 7..=12 | 16 | 18 => 0,
        _ => return None,
    })
}

/// Constants of linux/btf.h: the magic number of the types, the length of a type's header in bytes, and the
/// kind of functions.
const MAGIC: u32 = 0xeb9f;
const TYPE_BYTES: usize = 12;
const FUNCTION: u32 = 12;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_is_found_by_its_whole_name_behind_other_types() {
        let kinds = [(1, 0), (4, 2), (13, 1), (12, 0), (12, 0), (3, 0)];
        let names = [0_u32, 0, 0, 1, 6, 0];
        let mut types = Vec::new();
        for ((kind, members), name) in kinds.into_iter().zip(names) {
            types.extend([name, kind << 24 | members, 0].map(u32::to_ne_bytes).concat());
            types.extend(vec![0xff; more_bytes(kind, members).unwrap()]);
        }
        let texts = b"\0tags\0tag\0";
        let (types_bytes, texts_bytes) = (types.len() as u32, texts.len() as u32);
        let header = [MAGIC | 1 << 16, 24, 0, types_bytes, types_bytes, texts_bytes];
        let all = [header.map(u32::to_ne_bytes).concat(), types, texts.to_vec()].concat();
        assert_eq!(function(&all, b"tag"), Some(5));
        assert_eq!(function(&all, b"tags"), Some(4));
        assert_eq!(function(&all, b"ta"), None);
        for end in 0..all.len() {
            _ = function(&all[..end], b"ta");
        }
    }
}
