//! The digest: a checksum over all data that is restored, in order. Any change of the data changes the
//! checksum.

use rxo_capture::Described;
use rxo_frame::Instant;

use super::beside::put_bytes;
use super::crc::Crc;
use super::outline;

/// The number of records that were added so far, and the CRC-32 over these records.
#[derive(Clone, Debug, Default)]
pub(super) struct Digest {
    check: Crc,
    pub(super) records: u64,
}

/// The parts of a record that the digest covers: all parts that `rxo expand` restores.
pub(super) struct Summed<'a> {
    pub(super) interface: u32,
    pub(super) at: Instant,
    pub(super) ticks: Option<u64>,
    pub(super) original_bytes: u32,
    pub(super) bytes: &'a [u8],
    pub(super) head: &'a [u8],
    pub(super) options: &'a [u8],
}

/// The parts of a file that the digest covers in addition to the records: all other parts that `rxo expand`
/// restores.
pub(super) struct Around<'a> {
    pub(super) pcap_header: Option<&'a [u8; 24]>,
    pub(super) described: &'a [Described],
    pub(super) is_partial: bool,
    pub(super) cut_record: &'a [u8],
}

impl Digest {
    /// Adds the next record to the digest.
    pub(super) fn add(&mut self, record: &Summed<'_>) {
        self.records += 1;
        let Summed { interface, at, ticks, original_bytes, bytes, head, options } = *record;
        let mut fixed = [0; 37];
        fixed[..4].copy_from_slice(&interface.to_le_bytes());
        fixed[4..12].copy_from_slice(&at.as_nanos().to_le_bytes());
        fixed[12] = ticks.is_some().into();
        fixed[13..21].copy_from_slice(&ticks.unwrap_or(0).to_le_bytes());
        let lengths = [original_bytes, bytes.len() as u32, head.len() as u32, options.len() as u32];
        for (field, length) in fixed[21..].as_chunks_mut::<4>().0.iter_mut().zip(lengths) {
            *field = length.to_le_bytes();
        }
        for part in [&fixed, bytes, head, options] {
            self.check.update(part);
        }
    }

    /// Returns the checksum over all records added so far and the other restored parts of the file, given in
    /// `around`.
    pub(super) fn sum(&self, around: &Around<'_>) -> u32 {
        let mut bytes = Vec::new();
        put_bytes(&mut bytes, around.pcap_header.map_or(&[][..], |header| header));
        outline::put(&mut bytes, around.described);
        bytes.push(around.is_partial.into());
        put_bytes(&mut bytes, around.cut_record);
        let mut check = self.check.clone();
        check.update(&bytes);
        check.sum()
    }
}
