//! F-RTO: was a timeout needed? (RFC 5682, sections 2.1 and 3.1.) For connections without timestamps;
//! with them Eifel knows earlier (`spurious.rs`).
//!
//! After a timeout one segment is sent again. When that is acknowledged, two new segments leave instead
//! of more old ones. What comes next tells: an acknowledgement of something that was not sent again
//! shows that the originals arrive, only late; a duplicate, that they are lost.

use rxo_wire::SeqNumber;

/// Where the question stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Frto {
    /// Nothing is asked.
    #[default]
    Off,
    /// Step 1: the timer has fired; the segment sent again ends there, once it has left.
    First { end: Option<SeqNumber> },
    /// Step 2: it is acknowledged, and so many new bytes have left since.
    Second { new_bytes: u32 },
}

/// What an acknowledgement says of the timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Finding {
    /// Nothing yet, or nothing is asked.
    None,
    /// It was needless.
    Needless,
    /// It was needed; what is lost is sent again.
    Needed,
}

impl Frto {
    /// Something leaves again up to `end`. More than one segment ends the question.
    pub(crate) fn sent_again(&mut self, end: SeqNumber) {
        *self = match *self {
            Self::First { end: None } => Self::First { end: Some(end) },
            _ => Self::Off,
        };
    }

    /// `bytes` leave for the first time.
    pub(crate) fn sent_new(&mut self, bytes: u32) {
        if let Self::Second { new_bytes } = self {
            *new_bytes = new_bytes.saturating_add(bytes);
        }
    }

    /// Whether new segments go before what is lost.
    pub(crate) fn prefers_new(self) -> bool {
        matches!(self, Self::Second { .. })
    }

    /// Whether new segments have left whose acknowledgement is waited for.
    pub(crate) fn waits(self) -> bool {
        matches!(self, Self::Second { new_bytes: 1.. })
    }

    /// `ack` has come; `advances` when it acknowledges something new, `is_duplicate` when it repeats
    /// the one before. `recover` is the end of what was out when the timer fired.
    pub(crate) fn on_ack(
        &mut self,
        ack: SeqNumber,
        recover: SeqNumber,
        advances: bool,
        is_duplicate: bool,
    ) -> Finding {
        let was = core::mem::take(self);
        match was {
            Self::Off => Finding::None,
            _ if is_duplicate => Finding::Needed,
            _ if !advances => {
                *self = was;
                Finding::None
            }
            Self::First { end: Some(end) } if ack.is_at_or_after(end) && ack.is_before(recover) => {
                *self = Self::Second { new_bytes: 0 };
                Finding::None
            }
            Self::First { .. } | Self::Second { new_bytes: 0 } => Finding::Needed,
            Self::Second { .. } => Finding::Needless,
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

    /// RFC 5682, section 2.1, step by step.
    #[test]
    fn two_acknowledgements_tell() {
        let mut frto = asked();
        assert_eq!(frto.on_ack(SeqNumber(1_000), RECOVER, true, false), Finding::None);
        assert!(frto.prefers_new() && !frto.waits());
        frto.sent_new(2_000);
        assert!(frto.waits());
        let mut lost = frto;
        assert_eq!(frto.on_ack(SeqNumber(2_000), RECOVER, true, false), Finding::Needless);
        assert_eq!(lost.on_ack(SeqNumber(1_000), RECOVER, false, true), Finding::Needed);
        assert_eq!((frto, lost), (Frto::Off, Frto::Off));
    }

    #[test]
    fn it_was_needed() {
        // A duplicate first; all at once; less than was sent again; nothing new to send.
        assert_eq!(asked().on_ack(SeqNumber(0), RECOVER, false, true), Finding::Needed);
        assert_eq!(asked().on_ack(RECOVER, RECOVER, true, false), Finding::Needed);
        assert_eq!(asked().on_ack(SeqNumber(999), RECOVER, true, false), Finding::Needed);
        let mut frto = Frto::Second { new_bytes: 0 };
        assert_eq!(frto.on_ack(SeqNumber(2_000), RECOVER, true, false), Finding::Needed);
        let mut twice = asked();
        twice.sent_again(SeqNumber(2_000));
        assert_eq!(twice, Frto::Off);
    }
}
