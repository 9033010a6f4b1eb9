//! A remark: the custom option of a packet in a coalesced capture.
//!
//! Packets are in the order of their first records, so a single packet needs no remark: it is the first record
//! that has not been restored yet. Otherwise a remark is a sequence of tags, each followed by its value. Tags
//! are in ascending order, and each occurs at most once, so reading a remark takes no more memory than one list
//! of each kind.

use rxo_capture::{Custom, Described, Record};

use super::beside::{Beside, UNKNOWN, bytes, put_bytes, split};
use super::note::{self, BadNote, Merged, Reader, Restored, put_number};
use super::{ENTERPRISE, MAGIC, outline};

/// The contents of a remark, the custom option of a packet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Remark {
    /// The sections and interfaces that were described since the previous remark.
    pub(super) described: Vec<Described>,
    /// The note of an aggregate; `None` for a single packet.
    pub(super) note: Option<Vec<u8>>,
    /// The extra parts of the records, each with the record's number in the aggregate. These parts are
    /// expressed neither by the packet nor by its note. Records without such parts are omitted.
    pub(super) beside: Vec<(usize, Beside)>,
    /// The totals over all records, in the last packet of the file; otherwise `None`.
    pub(super) end: Option<End>,
}

/// The totals over all records of a capture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct End {
    pub(super) records: u64,
    pub(super) digest: u32,
    /// `true` if the capture could not be read to its end.
    pub(super) is_partial: bool,
    /// The bytes of a truncated last record in a pcap file; empty if there is none.
    pub(super) cut_record: Vec<u8>,
}

impl End {
    /// Appends the totals to `to`, in the encoding that [`End::read`] reads.
    pub(super) fn put(&self, to: &mut Vec<u8>) {
        put_number(to, self.records);
        to.extend_from_slice(&self.digest.to_le_bytes());
        to.push(self.is_partial.into());
        put_bytes(to, &self.cut_record);
    }

    /// Reads the totals that [`End::put`] appended.
    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Self, BadNote> {
        let records = reader.number()?;
        let [a, b] = reader.pair()?;
        let [c, d] = reader.pair()?;
        let digest = u32::from_le_bytes([a, b, c, d]);
        let is_partial = reader.byte()? != 0;
        Ok(Self { records, digest, is_partial, cut_record: bytes(reader)? })
    }
}

const DESCRIBED: u8 = 1;
const NOTE: u8 = 2;
const BESIDE: u8 = 3;
const END: u8 = 4;

/// The maximum number of segments of a note. No aggregate has so many records.
const MOST_SEGMENTS: usize = 1 << 16;

impl Remark {
    /// Returns the remark as bytes; empty if it has no contents.
    pub(super) fn bytes(&self) -> Vec<u8> {
        let mut to = Vec::new();
        if *self == Self::default() {
            return to;
        }
        to.extend_from_slice(MAGIC);
        if !self.described.is_empty() {
            to.push(DESCRIBED);
            outline::put(&mut to, &self.described);
        }
        if let Some(note) = &self.note {
            to.push(NOTE);
            put_bytes(&mut to, note);
        }
        if !self.beside.is_empty() {
            to.push(BESIDE);
            put_number(&mut to, self.beside.len() as u64);
            for (segment, beside) in &self.beside {
                put_number(&mut to, *segment as u64);
                beside.put(&mut to);
            }
        }
        if let Some(end) = &self.end {
            to.push(END);
            end.put(&mut to);
        }
        to
    }

    /// Decodes a remark from the bytes of the custom option.
    pub(super) fn read(ridden: &[u8]) -> Result<Self, BadNote> {
        let mut remark = Self::default();
        if ridden.is_empty() {
            return Ok(remark);
        }
        let mut reader = Reader::new(ridden.strip_prefix(MAGIC).ok_or(UNKNOWN)?);
        let mut last = 0;
        while !reader.is_at_end() {
            let tag = reader.byte()?;
            if tag <= std::mem::replace(&mut last, tag) {
                return Err(BadNote("says something twice"));
            }
            match tag {
                DESCRIBED => remark.described = outline::read(&mut reader)?,
                NOTE => remark.note = Some(bytes(&mut reader)?),
                BESIDE => {
                    for _ in 0..reader.size(MOST_SEGMENTS)? {
                        let segment = reader.size(MOST_SEGMENTS)?;
                        remark.beside.push((segment, Beside::read(&mut reader)?));
                    }
                }
                END => remark.end = Some(End::read(&mut reader)?),
                _ => return Err(UNKNOWN),
            }
        }
        Ok(remark)
    }
}

/// Restores the records of a packet from its note; `None` for a packet without a note. The position of each
/// record is relative to the position of the packet.
pub(crate) fn restored(record: &Record) -> Option<Result<Vec<Restored>, BadNote>> {
    if record.options.is_empty() {
        return None;
    }
    let (_, ours) = split(&record.options);
    let note = Remark::read(&ours).map(|remark| remark.note).transpose()?;
    let bytes = record.bytes.as_ref();
    let merged = Merged { bytes, at_ns: record.at.as_nanos(), expected_place: 0 };
    Some(note.and_then(|note| note::read(merged, &note)))
}

/// Returns `bytes` as custom options of the largest size that pcapng allows.
pub(super) fn customs(bytes: &[u8]) -> Vec<Custom<'_>> {
    let custom = |bytes| Custom { enterprise: ENTERPRISE, bytes };
    bytes.chunks(Custom::MOST_BYTES).map(custom).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rxo_capture::{LinkType, Part};

    use super::super::beside::Time;
    use super::*;

    fn some() -> impl Strategy<Value = Vec<u8>> {
        prop::collection::vec(any::<u8>(), 0..20)
    }

    fn described() -> impl Strategy<Value = Described> {
        let part = prop_oneof![
            some().prop_map(|options| Part::Section { options }),
            (any::<u16>(), any::<u32>(), some()).prop_map(|(link, snap_bytes, options)| {
                Part::Interface { link: LinkType(link), snap_bytes, options }
            }),
        ];
        (any::<u64>(), part).prop_map(|(records_before, part)| Described { records_before, part })
    }

    fn beside() -> impl Strategy<Value = Beside> {
        let time = prop_oneof![
            Just(Time::AsClock),
            Just(Time::Absent),
            any::<u64>().prop_map(Time::Ticks)
        ];
        (time, some(), some()).prop_map(|(time, head, options)| Beside { time, head, options })
    }

    proptest! {
        #[test]
        fn every_remark_comes_back(
            described in prop::collection::vec(described(), 0..4),
            note: Option<Vec<u8>>,
            beside in prop::collection::vec((0..MOST_SEGMENTS, beside()), 0..4),
            end: Option<(u64, u32, bool, Vec<u8>)>,
        ) {
            let end = end.map(|(records, digest, is_partial, cut_record)| {
                End { records, digest, is_partial, cut_record }
            });
            let remark = Remark { described, note, beside, end };
            prop_assert_eq!(Remark::read(&remark.bytes()), Ok(remark));
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes: Vec<u8>) {
            _ = Remark::read(&[MAGIC, &bytes].concat());
        }
    }

    /// A repeated list would need a hundred times its size in memory.
    #[test]
    fn no_tag_comes_twice() {
        let once = [(DESCRIBED, vec![0]), (NOTE, vec![1, 7]), (BESIDE, vec![1, 0, 0])];
        for (tag, body) in once {
            let one = [&[tag], &body[..]].concat();
            assert!(Remark::read(&[MAGIC, &one].concat()).is_ok(), "tag {tag}");
            assert!(Remark::read(&[MAGIC, &one, &one].concat()).is_err(), "tag {tag}");
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
