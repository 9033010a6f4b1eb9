//! The origin of a coalesced file: the custom option of the section header, which describes the file that was
//! coalesced.

use rxo_capture::{Capture, Described};

use super::beside::{UNKNOWN, is_ours, split};
use super::note::{BadNote, Reader};
use super::remark::End;
use super::{MAGIC, RewriteError, outline};

/// The description of the file that was coalesced.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Origin {
    /// The header of the file if it was a pcap file; `None` for pcapng.
    pub(super) pcap_header: Option<[u8; 24]>,
    /// The totals over all records, if the file has no records. `None` if the file has records, because then
    /// the last packet contains the totals.
    pub(super) end: Option<End>,
    /// The sections and interfaces that were described before the first packet.
    pub(super) described: Vec<Described>,
}

const PCAPNG: u8 = 0;
const PCAP: u8 = 1;

impl Origin {
    /// Returns the description of a capture that is about to be coalesced.
    ///
    /// # Errors
    /// If the capture has been coalesced already.
    pub(super) fn of(capture: &Capture) -> Result<Self, RewriteError> {
        if capture.section().is_some_and(is_ours) {
            return Err(RewriteError::AlreadyCoalesced);
        }
        Ok(Self { pcap_header: capture.pcap_header(), ..Self::default() })
    }

    /// Reads the description of the original file from a coalesced capture.
    ///
    /// # Errors
    /// If the capture was not coalesced, or if the description was changed.
    pub(super) fn read(capture: &Capture) -> Result<Self, RewriteError> {
        let ours = capture.section().map(|section| split(section).1).unwrap_or_default();
        if ours.is_empty() {
            return Err(RewriteError::NotCoalesced);
        }
        if !ours.starts_with(MAGIC) {
            return Err(RewriteError::OtherVersion);
        }
        Self::from_bytes(&ours)
            .map_err(|_| RewriteError::Changed("what the file says of itself cannot be read"))
    }

    /// Encodes the description with a checksum of its own, because a restored file must not begin with changed
    /// bytes. The checksum of all data does not suffice for that: it is at the end of the file, which may be
    /// missing.
    pub(super) fn bytes(&self) -> Vec<u8> {
        let mut to = MAGIC.to_vec();
        match &self.pcap_header {
            None => to.push(PCAPNG),
            Some(header) => {
                to.push(PCAP);
                to.extend_from_slice(header);
            }
        }
        to.push(self.end.is_some().into());
        if let Some(end) = &self.end {
            end.put(&mut to);
        }
        outline::put(&mut to, &self.described);
        let check = crc32fast::hash(&to).to_le_bytes();
        to.extend_from_slice(&check);
        to
    }

    fn from_bytes(bytes: &[u8]) -> Result<Self, BadNote> {
        let (bytes, check) = bytes.split_last_chunk::<4>().ok_or(UNKNOWN)?;
        if crc32fast::hash(bytes).to_le_bytes() != *check {
            return Err(BadNote("was changed"));
        }
        let mut reader = Reader::new(bytes.strip_prefix(MAGIC).ok_or(UNKNOWN)?);
        let pcap_header = match reader.byte()? {
            PCAPNG => None,
            PCAP => reader.bytes(24)?.first_chunk().copied(),
            _ => return Err(UNKNOWN),
        };
        let end = if reader.byte()? != 0 { Some(End::read(&mut reader)?) } else { None };
        let described = outline::read(&mut reader)?;
        if reader.is_at_end() { Ok(Self { pcap_header, end, described }) } else { Err(UNKNOWN) }
    }
}

#[cfg(test)]
mod tests {
    use rxo_capture::{LinkType, Part};

    use super::*;

    #[test]
    fn every_origin_comes_back_and_no_part_of_one() {
        for pcap_header in [None, Some([7; 24])] {
            let end = End { records: 0, digest: 1, is_partial: true, cut_record: vec![1, 2] };
            for end in [None, Some(end)] {
                let parts = [
                    Part::Section { options: vec![1, 0, 0, 0] },
                    Part::Interface { link: LinkType(9), snap_bytes: 7, options: Vec::new() },
                ];
                let described = |part| Described { records_before: 9, part };
                let described = parts.map(described).to_vec();
                let origin = Origin { pcap_header, end, described };
                let bytes = origin.bytes();
                assert_eq!(Origin::from_bytes(&bytes), Ok(origin));
                for length in 0..bytes.len() {
                    assert!(Origin::from_bytes(&bytes[..length]).is_err(), "{length}");
                }
            }
        }
    }
}
