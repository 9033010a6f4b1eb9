//! What rides beside a packet of a coalesced capture.
//!
//! Packets stand in the order of their first records, so a packet that came through alone needs
//! nothing: it was the first that is not given back yet. Otherwise a remark says what there is
//! to say: tags, each once, each with what it announces.

use rxo_device::capture::{Custom, Options};

use super::digest::{PacketOptions, put_options};
use super::note::{BadNote, Reader, put_number};
use super::{ENTERPRISE, MAGIC};

/// What rides beside a packet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Remark {
    /// Snap lengths of the interfaces that were described since the last ones told of.
    pub(super) snaps: Vec<Option<u32>>,
    /// The note of an aggregate.
    pub(super) note: Option<Vec<u8>>,
    /// Options of an aggregate's records, by number in the aggregate; only of those that have any.
    pub(super) options: Vec<(usize, PacketOptions)>,
    /// The last packet says what all were.
    pub(super) end: Option<End>,
}

/// What all records were.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct End {
    pub(super) records: u64,
    pub(super) digest: u32,
    /// Whether the capture could not be read to its end.
    pub(super) is_partial: bool,
    /// What there is of a last record that a pcap file ends within.
    pub(super) cut_record: Vec<u8>,
}

impl End {
    /// Appends it.
    pub(super) fn put(&self, to: &mut Vec<u8>) {
        put_number(to, self.records);
        to.extend_from_slice(&self.digest.to_le_bytes());
        to.push(self.is_partial.into());
        put_number(to, self.cut_record.len() as u64);
        to.extend_from_slice(&self.cut_record);
    }

    /// Reads what was appended.
    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Self, BadNote> {
        let records = reader.number()?;
        let [a, b] = reader.pair()?;
        let [c, d] = reader.pair()?;
        let digest = u32::from_le_bytes([a, b, c, d]);
        let is_partial = reader.byte()? != 0;
        let length = reader.size(usize::MAX)?;
        let cut_record = reader.bytes(length)?.to_vec();
        Ok(Self { records, digest, is_partial, cut_record })
    }
}

const SNAPS: u8 = 1;
const NOTE: u8 = 2;
const OPTIONS: u8 = 3;
const END: u8 = 4;

/// More records than any aggregate has.
const MOST_SEGMENTS: usize = 1 << 16;

impl Remark {
    /// The bytes to ride; none when there is nothing to say.
    pub(super) fn bytes(&self) -> Vec<u8> {
        let mut to = Vec::new();
        if *self == Self::default() {
            return to;
        }
        to.extend_from_slice(MAGIC);
        if !self.snaps.is_empty() {
            to.push(SNAPS);
            put_snaps(&mut to, &self.snaps);
        }
        if let Some(note) = &self.note {
            to.push(NOTE);
            put_number(&mut to, note.len() as u64);
            to.extend_from_slice(note);
        }
        if !self.options.is_empty() {
            to.push(OPTIONS);
            put_number(&mut to, self.options.len() as u64);
            for (segment, options) in &self.options {
                put_number(&mut to, *segment as u64);
                put_options(&mut to, options);
            }
        }
        if let Some(end) = &self.end {
            to.push(END);
            end.put(&mut to);
        }
        to
    }

    /// Reads what rode.
    pub(super) fn read(bytes: &[u8]) -> Result<Self, BadNote> {
        let mut remark = Self::default();
        let mut reader = Reader::new(bytes.strip_prefix(MAGIC).unwrap_or(bytes));
        while !reader.is_at_end() {
            match reader.byte()? {
                SNAPS => remark.snaps = snaps(&mut reader)?,
                NOTE => {
                    let length = reader.size(bytes.len())?;
                    remark.note = Some(reader.bytes(length)?.to_vec());
                }
                OPTIONS => {
                    for _ in 0..reader.size(MOST_SEGMENTS)? {
                        let segment = reader.size(MOST_SEGMENTS)?;
                        remark.options.push((segment, options(&mut reader)?));
                    }
                }
                END => remark.end = Some(End::read(&mut reader)?),
                _ => return Err(BadNote("is of a kind that this version does not know")),
            }
        }
        Ok(remark)
    }
}

fn options(reader: &mut Reader<'_>) -> Result<PacketOptions, BadNote> {
    let mut options = PacketOptions::new();
    for _ in 0..reader.size(MOST_SEGMENTS)? {
        let code = reader.size(usize::from(u16::MAX))? as u16;
        let length = reader.size(usize::from(u16::MAX))?;
        options.push((code, reader.bytes(length)?.to_vec()));
    }
    Ok(options)
}

/// Appends snap lengths: their number, then each plus one, 0 for none.
pub(super) fn put_snaps(to: &mut Vec<u8>, snaps: &[Option<u32>]) {
    put_number(to, snaps.len() as u64);
    snaps.iter().for_each(|snap| put_number(to, snap.map_or(0, |bytes| u64::from(bytes) + 1)));
}

/// Reads snap lengths.
pub(super) fn snaps(reader: &mut Reader<'_>) -> Result<Vec<Option<u32>>, BadNote> {
    let count = reader.size(MOST_SEGMENTS)?;
    let one = |reader: &mut Reader<'_>| Ok(reader.number()?.checked_sub(1).map(|snap| snap as u32));
    (0..count).map(|_| one(reader)).collect()
}

/// `bytes` as custom options, several where one is too short.
pub(super) fn customs(bytes: &[u8]) -> Vec<Custom<'_>> {
    let custom = |bytes| Custom { enterprise: ENTERPRISE, bytes };
    bytes.chunks(Custom::MOST_BYTES).map(custom).collect()
}

/// A packet's options apart: those that were there before, and what rides, in one piece.
pub(super) fn apart(options: &Options) -> (PacketOptions, Vec<u8>) {
    let (mut before, mut ours) = (PacketOptions::new(), Vec::new());
    options.each_little_endian(|code, value| {
        let bytes = (code == CUSTOM_CODE)
            .then(|| value.strip_prefix(&ENTERPRISE.to_le_bytes()))
            .flatten()
            .filter(|bytes| !ours.is_empty() || bytes.starts_with(MAGIC));
        match bytes {
            Some(bytes) => ours.extend_from_slice(bytes),
            None => before.push((code, value)),
        }
    });
    (before, ours)
}

/// The custom option that is bytes and not to be copied.
const CUSTOM_CODE: u16 = 19_373;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn all_options() -> impl Strategy<Value = PacketOptions> {
        prop::collection::vec((any::<u16>(), prop::collection::vec(any::<u8>(), 0..20)), 0..4)
    }

    proptest! {
        #[test]
        fn every_remark_comes_back(
            snaps in prop::collection::vec(any::<Option<u32>>(), 0..4),
            note: Option<Vec<u8>>,
            options in prop::collection::vec((0..MOST_SEGMENTS, all_options()), 0..4),
            end: Option<(u64, u32, bool, Vec<u8>)>,
        ) {
            let end = end.map(|(records, digest, is_partial, cut_record)| {
                End { records, digest, is_partial, cut_record }
            });
            let remark = Remark { snaps, note, options, end };
            prop_assert_eq!(Remark::read(&remark.bytes()), Ok(remark));
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes: Vec<u8>) {
            _ = Remark::read(&bytes);
        }
    }

    #[test]
    fn nothing_to_say_takes_no_bytes() {
        assert!(Remark::default().bytes().is_empty());
        assert!(customs(&[]).is_empty());
    }

    #[test]
    fn what_is_long_rides_in_several_options() {
        let bytes = vec![7; Custom::MOST_BYTES * 2 + 1];
        let lengths: Vec<usize> = customs(&bytes).iter().map(|custom| custom.bytes.len()).collect();
        assert_eq!(lengths, [Custom::MOST_BYTES, Custom::MOST_BYTES, 1]);
    }
}
