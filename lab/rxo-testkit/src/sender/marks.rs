//! The congestion marks that a sender sees.
//!
//! When only the last ACK of a run is shown, **no mark is lost** in the following sense. The ACKs
//! of a run have equal marks: ECE, CWR and AE in the TCP header, and the ECN field in the IP
//! header. Therefore
//!
//! * *the sequence of marks*, without repetitions, is preserved. A classic sender (RFC 3168 section
//!   6.1) needs no more: ECE is a level that stays until CWR, and the sender reacts once per round
//!   trip.
//! * *the bytes acknowledged under each mark* are preserved, because the shown ACK acknowledges
//!   everything that the run did, under the run's mark. DCTCP computes its fraction from these (RFC
//!   8257 section 3.3).
//! * *every value of the counter* that AccECN sends in these three bits (RFC 9768 section 3.2.2)
//!   appears in order, so the sum of its steps is preserved. As with every stretch ACK, the sender
//!   cannot be certain that the counter did not wrap between two equal values (section 3.2.2.5.2);
//!   the count of the delivery, and `keep_every`, bound this.
//!
//! *How many* ACKs carried a mark is not preserved. No sender counts ECE by ACKs. Only AccECN
//! counts CE on the ACKs themselves, and in single form it sees one mark for a run of marked ACKs.

use std::collections::BTreeMap;

use super::Incoming;

/// The marks received so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Marks {
    /// Each mark that differs from its predecessor: ECE, CWR and AE as in the header, and the ECN field.
    pub changes: Vec<Mark>,
    /// Bytes newly acknowledged under each mark.
    pub bytes: BTreeMap<Mark, u64>,
}

/// ECE, CWR and AE at their positions in the twelve bits, and the ECN field of the IP header.
pub type Mark = (u16, u8);

const ECE_CWR_AE: u16 = 0x1c0;

impl Marks {
    /// Records an ACK that acknowledges `advance` new bytes.
    pub(super) fn take(&mut self, ack: &Incoming, advance: u32) {
        let mark = (ack.flags & ECE_CWR_AE, ack.ecn);
        if self.changes.last() != Some(&mark) {
            self.changes.push(mark);
        }
        *self.bytes.entry(mark).or_default() += u64::from(advance);
    }
}
