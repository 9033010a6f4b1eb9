//! What rides beside the section header: which kind of file was coalesced.

use rxo_device::capture::{Capture, Options};

use super::note::{BadNote, Reader};
use super::remark::{End, apart, put_snaps, snaps};
use super::{MAGIC, RewriteError};

/// The file that was coalesced.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Origin {
    /// The header of a pcap file; `None` of pcapng.
    pub(super) pcap_header: Option<[u8; 24]>,
    /// Of a file without any record: what its last packet would say.
    pub(super) end: Option<End>,
    /// Snap lengths of the interfaces described before the first packet.
    pub(super) snaps: Vec<Option<u32>>,
}

const PCAPNG: u8 = 0;
const PCAP: u8 = 1;

impl Origin {
    /// Of a capture that is going to be coalesced.
    ///
    /// # Errors
    /// It was already.
    pub(super) fn of(capture: &Capture) -> Result<Self, RewriteError> {
        if capture.section().is_some_and(is_ours) {
            return Err(RewriteError::AlreadyCoalesced);
        }
        Ok(Self { pcap_header: capture.pcap_header(), ..Self::default() })
    }

    /// From a capture that was coalesced.
    ///
    /// # Errors
    /// It was not, or what it says of itself was changed.
    pub(super) fn read(capture: &Capture) -> Result<Self, RewriteError> {
        let ours = capture.section().map(|section| apart(section).1).unwrap_or_default();
        if ours.is_empty() {
            return Err(RewriteError::NotCoalesced);
        }
        Self::from_bytes(&ours)
            .map_err(|_| RewriteError::Changed("what the file says of itself cannot be read"))
    }

    /// The bytes to ride.
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
        put_snaps(&mut to, &self.snaps);
        to
    }

    fn from_bytes(bytes: &[u8]) -> Result<Self, BadNote> {
        let unknown = BadNote("is of a kind that this version does not know");
        let mut reader = Reader::new(bytes.strip_prefix(MAGIC).ok_or(unknown)?);
        let pcap_header = match reader.byte()? {
            PCAPNG => None,
            PCAP => reader.bytes(24)?.first_chunk().copied(),
            _ => return Err(unknown),
        };
        let end = if reader.byte()? != 0 { Some(End::read(&mut reader)?) } else { None };
        let snaps = snaps(&mut reader)?;
        if reader.is_at_end() { Ok(Self { pcap_header, end, snaps }) } else { Err(unknown) }
    }
}

/// Whether options hold something of ours.
pub(super) fn is_ours(options: &Options) -> bool {
    !options.is_empty() && !apart(options).1.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_origin_comes_back_and_no_part_of_one() {
        for pcap_header in [None, Some([7; 24])] {
            let end = End { records: 0, digest: 1, is_partial: true, cut_record: vec![1, 2] };
            for end in [None, Some(end)] {
                let snaps = vec![None, Some(0), Some(u32::MAX)];
                let origin = Origin { pcap_header, end, snaps };
                let bytes = origin.bytes();
                assert_eq!(Origin::from_bytes(&bytes), Ok(origin));
                for length in 0..bytes.len() {
                    assert!(Origin::from_bytes(&bytes[..length]).is_err(), "{length}");
                }
            }
        }
    }
}
