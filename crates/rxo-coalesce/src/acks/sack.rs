//! The options of a pure ACK with SACK blocks (RFC 2018), and the test that one list of blocks covers
//! another, as in the ACK filter of the CAKE queueing discipline.

use rxo_wire::SeqNumber;
use rxo_wire::tcp::{OptionKind, Options, SackBlocks};

/// The SACK blocks of a pure ACK, in their order, and its timestamp.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sack {
    blocks: SackBlocks,
    /// The TSval of the ACK; `None` without a timestamp option.
    timestamp: Option<u32>,
}

impl Sack {
    /// Reads the options of a TCP header. Returns `None` if they contain anything but one SACK option of
    /// whole blocks, the timestamp and padding.
    pub(super) fn read(options: &[u8]) -> Option<Self> {
        let mut sack = Self::default();
        for option in Options::new(options) {
            let option = option.ok()?;
            match option.kind {
                OptionKind::NoOperation => {}
                OptionKind::Timestamp if sack.timestamp.is_none() => {
                    sack.timestamp = Some(option.timestamp()?.value);
                }
                OptionKind::Sack if sack.is_empty() => {
                    sack.blocks.push_option(option.data);
                    let bytes = sack.blocks.as_slice().len() * SackBlocks::BLOCK_BYTES;
                    if sack.is_empty() || bytes != option.data.len() {
                        return None;
                    }
                }
                _ => return None,
            }
        }
        Some(sack)
    }

    /// Returns `true` if the ACK has no SACK blocks.
    pub(super) const fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// Returns `true` if the blocks equal those of `older`, an earlier ACK, in the same order.
    pub(super) fn repeats(&self, older: &Self) -> bool {
        self.blocks == older.blocks
    }

    /// Returns `true` if the first block is a D-SACK (RFC 2883 section 4): it ends at or below `ack`, or lies
    /// inside the second block.
    pub(super) fn is_duplicate_report(&self, ack: SeqNumber) -> bool {
        match self.blocks.as_slice() {
            [first, ..] if ack.is_at_or_after(first.end) => true,
            [first, second, ..] => second.contains(first),
            _ => false,
        }
    }

    /// Returns `true` if neither ACK has a timestamp, or both do and TSval does not decrease from `older` to this one.
    pub(super) fn timestamp_follows(&self, older: &Self) -> bool {
        match (older.timestamp, self.timestamp) {
            (None, None) => true,
            (Some(old), Some(new)) => new.wrapping_sub(old) as i32 >= 0,
            _ => false,
        }
    }

    /// Returns `true` if every block of `older`, an earlier ACK, lies inside a block of this ACK or is acknowledged by
    /// `ack`.
    pub(super) fn covers(&self, older: &Self, ack: SeqNumber) -> bool {
        let blocks = self.blocks.as_slice();
        older.blocks.as_slice().iter().all(|block| {
            ack.is_at_or_after(block.end) || blocks.iter().any(|of| of.contains(block))
        })
    }
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;

    fn sack(blocks: &[(u32, u32)]) -> Sack {
        let mut options: Vec<u8> = [1, 1, 5, 2 + 8 * blocks.len() as u8].to_vec();
        for (from, to) in blocks {
            options.extend(from.to_be_bytes());
            options.extend(to.to_be_bytes());
        }
        Sack::read(&options).expect("a SACK option")
    }

    #[test]
    fn a_longer_block_covers_a_shorter() {
        let ack = SeqNumber(10);
        assert!(sack(&[(20, 40)]).covers(&sack(&[(20, 30)]), ack));
        assert!(sack(&[(50, 60), (20, 40)]).covers(&sack(&[(20, 40)]), ack));
        assert!(!sack(&[(20, 30)]).covers(&sack(&[(20, 40)]), ack));
        assert!(!sack(&[(50, 60)]).covers(&sack(&[(20, 40)]), ack));
    }

    #[test]
    fn what_is_acknowledged_needs_no_cover() {
        assert!(sack(&[(50, 60)]).covers(&sack(&[(20, 40)]), SeqNumber(40)));
        assert!(Sack::default().covers(&sack(&[(20, 40)]), SeqNumber(40)));
    }

    #[test]
    fn a_report_of_a_duplicate_is_told() {
        assert!(sack(&[(5, 10)]).is_duplicate_report(SeqNumber(10)));
        assert!(sack(&[(25, 30), (20, 40)]).is_duplicate_report(SeqNumber(10)));
        assert!(!sack(&[(20, 40), (50, 60)]).is_duplicate_report(SeqNumber(10)));
        assert!(!Sack::default().is_duplicate_report(SeqNumber(10)));
    }

    #[test]
    fn a_timestamp_stays_or_advances() {
        let with = |timestamp| Sack { timestamp, ..Sack::default() };
        assert!(with(Some(2)).timestamp_follows(&with(Some(2))));
        assert!(with(Some(1)).timestamp_follows(&with(Some(u32::MAX))));
        assert!(with(None).timestamp_follows(&with(None)));
        assert!(!with(Some(1)).timestamp_follows(&with(Some(2))));
        assert!(!with(Some(1)).timestamp_follows(&with(None)));
    }

    #[test]
    fn other_options_and_broken_lists_are_not_read() {
        for options in [&[3, 3, 7][..], &[5, 2], &[5, 9, 0, 0, 0, 0, 0, 0, 0], &[5, 60]] {
            assert_eq!(Sack::read(options), None, "{options:?}");
        }
        assert!(Sack::read(&[1, 1]).is_some_and(|sack| sack.is_empty()));
    }
}
