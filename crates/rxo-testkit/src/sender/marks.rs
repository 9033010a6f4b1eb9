//! What a sender hears of congestion marks.
//!
//! **What it means that no mark is lost** when only the last ACK of a run is shown. ACKs of a run have
//! equal marks: ECE, CWR and AE in the TCP header, the ECN field in the IP header. So
//!
//! * *the sequence of marks*, repetitions aside, is the same. A classic sender (RFC 3168 section 6.1)
//!   needs no more: ECE is a level that stays until CWR, and it answers once per round trip.
//! * *the bytes acknowledged under each mark* are the same, for the run acknowledges what its ACKs
//!   did and all of it under one mark. What DCTCP computes its fraction of (RFC 8257 section 3.3) is
//!   that.
//! * *every value of the counter* that AccECN sends in these three bits (RFC 9768 section 3.2.2) is
//!   seen in order, so the sum of its steps is the same. Less certain is only whether it went once
//!   round between two equal values, as with every stretch ACK (section 3.2.2.5.2); the count of the delivery, and
//!   `keep_every`, bound that.
//!
//! Not kept is *how many* ACKs carried a mark. Nothing counts ECE by ACKs; CE on the ACKs themselves is
//! counted by AccECN alone, and there a run of marked ACKs shows one mark in single form.

use std::collections::BTreeMap;

use super::Incoming;

/// The marks seen so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Marks {
    /// Each mark that differs from the one before it: ECE, CWR and AE as in the header, and the ECN field.
    pub changes: Vec<Mark>,
    /// Bytes newly acknowledged under each.
    pub bytes: BTreeMap<Mark, u64>,
}

/// ECE, CWR and AE where they stand among the twelve bits; the ECN field.
pub type Mark = (u16, u8);

const ECE_CWR_AE: u16 = 0x1c0;

impl Marks {
    /// An ACK that acknowledges `advance` new bytes.
    pub(super) fn take(&mut self, ack: &Incoming, advance: u32) {
        let mark = (ack.flags & ECE_CWR_AE, ack.ecn);
        if self.changes.last() != Some(&mark) {
            self.changes.push(mark);
        }
        *self.bytes.entry(mark).or_default() += u64::from(advance);
    }
}
