//! F-RTO detects spurious timeouts (RFC 5682, sections 2.1 and 3.1) for connections without timestamps; with
//! timestamps, Eifel detects them earlier (`spurious.rs`).
//!
//! After a timeout one segment is retransmitted. When it is acknowledged, two new segments are sent instead of
//! more old ones. The next ACK decides. If this ACK covers data that was not retransmitted, the original
//! segments were only late. If this ACK is a duplicate, the original segments are lost.

use rxo_wire::SeqNumber;

/// The state of the detection of a spurious timeout.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Frto {
    /// No timeout is being examined.
    #[default]
    Off,
    /// Step 1: the timer has fired. `end` is the end of the retransmitted segment, `None` until it has been
    /// sent.
    First { end: Option<SeqNumber> },
    /// Step 2: the retransmitted segment is acknowledged, and `new_bytes` bytes of new data have been sent
    /// since.
    Second { new_bytes: u32 },
}

/// The conclusion about the last timeout that an ACK permits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FrtoVerdict {
    /// The ACK allows no conclusion yet, or no timeout is being examined.
    None,
    /// The timeout was spurious: no data was lost.
    Spurious,
    /// The timeout was justified; lost data is retransmitted.
    Justified,
}

impl Frto {
    /// Records that data up to `end` is retransmitted. Retransmitting more than one segment ends the
    /// detection.
    pub(crate) fn sent_again(&mut self, end: SeqNumber) {
        *self = match *self {
            Self::First { end: None } => Self::First { end: Some(end) },
            _ => Self::Off,
        };
    }

    /// Records that `bytes` bytes are sent for the first time.
    pub(crate) fn sent_new(&mut self, bytes: u32) {
        if let Self::Second { new_bytes } = self {
            *new_bytes = new_bytes.saturating_add(bytes);
        }
    }

    /// Returns `true` if new segments must be sent before lost ones, to examine a timeout.
    pub(crate) fn prefers_new(self) -> bool {
        matches!(self, Self::Second { .. })
    }

    /// Returns `true` if new segments have been sent to examine a timeout, and their ACK is
    /// awaited.
    pub(crate) fn waits(self) -> bool {
        matches!(self, Self::Second { new_bytes: 1.. })
    }

    /// Processes the ACK number `ack`. Returns the conclusion. `advances` is `true` if the ACK acknowledges
    /// new data, `is_duplicate` if it repeats the last one. `recover` is the end of the data that was
    /// outstanding when the timer fired.
    pub(crate) fn on_ack(
        &mut self,
        ack: SeqNumber,
        recover: SeqNumber,
        advances: bool,
        is_duplicate: bool,
    ) -> FrtoVerdict {
        let was = core::mem::take(self);
        match was {
            Self::Off => FrtoVerdict::None,
            _ if is_duplicate => FrtoVerdict::Justified,
            _ if !advances => {
                *self = was;
                FrtoVerdict::None
            }
            Self::First { end: Some(end) } if ack.is_at_or_after(end) && ack.is_before(recover) => {
                *self = Self::Second { new_bytes: 0 };
                FrtoVerdict::None
            }
            Self::First { .. } | Self::Second { new_bytes: 0 } => FrtoVerdict::Justified,
            Self::Second { .. } => FrtoVerdict::Spurious,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RECOVER: SeqNumber = SeqNumber(5_000);

    fn asked() -> Frto {
        let mut frto = Frto::First { end: None };
        frto.sent_again(SeqNumber(1_000));
        frto
    }

    /// Follows the steps of RFC 5682, section 2.1.
    #[test]
    fn two_acknowledgements_tell() {
        let mut frto = asked();
        assert_eq!(frto.on_ack(SeqNumber(1_000), RECOVER, true, false), FrtoVerdict::None);
        assert!(frto.prefers_new() && !frto.waits());
        frto.sent_new(2_000);
        assert!(frto.waits());
        let mut lost = frto;
        assert_eq!(frto.on_ack(SeqNumber(2_000), RECOVER, true, false), FrtoVerdict::Spurious);
        assert_eq!(lost.on_ack(SeqNumber(1_000), RECOVER, false, true), FrtoVerdict::Justified);
        assert_eq!((frto, lost), (Frto::Off, Frto::Off));
    }

    #[test]
    fn it_was_needed() {
        // The cases: a duplicate first; all data at once; less than was retransmitted; no new data to send.
        assert_eq!(asked().on_ack(SeqNumber(0), RECOVER, false, true), FrtoVerdict::Justified);
        assert_eq!(asked().on_ack(RECOVER, RECOVER, true, false), FrtoVerdict::Justified);
        assert_eq!(asked().on_ack(SeqNumber(999), RECOVER, true, false), FrtoVerdict::Justified);
        let mut frto = Frto::Second { new_bytes: 0 };
        assert_eq!(frto.on_ack(SeqNumber(2_000), RECOVER, true, false), FrtoVerdict::Justified);
        let mut twice = asked();
        twice.sent_again(SeqNumber(2_000));
        assert_eq!(twice, Frto::Off);
    }
}
