//! One sum over all records of a capture, in order.

use rxo_frame::Instant;

use super::note::put_number;

/// A record's options: codes and values.
pub(super) type PacketOptions = Vec<(u16, Vec<u8>)>;

/// Count and CRC-32 of the records so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Digest {
    check: crc32fast::Hasher,
    pub(super) records: u64,
}

impl Digest {
    /// Takes the next record in.
    pub(super) fn add(
        &mut self,
        (interface, at, original_bytes): (u32, Instant, u32),
        bytes: &[u8],
        options: &PacketOptions,
    ) {
        self.records += 1;
        let mut head = Vec::with_capacity(24);
        head.extend(interface.to_le_bytes());
        head.extend(at.as_nanos().to_le_bytes());
        head.extend(original_bytes.to_le_bytes());
        head.extend((bytes.len() as u32).to_le_bytes());
        put_options(&mut head, options);
        self.check.update(&head);
        self.check.update(bytes);
    }

    /// The sum.
    pub(super) fn sum(&self) -> u32 {
        self.check.clone().finalize()
    }
}

/// Appends options so that they can be read again: their number, then code, length and value.
pub(super) fn put_options(to: &mut Vec<u8>, options: &PacketOptions) {
    put_number(to, options.len() as u64);
    for (code, value) in options {
        put_number(to, (*code).into());
        put_number(to, value.len() as u64);
        to.extend_from_slice(value);
    }
}
