//! Terms: the decisions that the owner of a connection makes in place of the connection. By default, the
//! connection makes every decision itself.
//!
//! Separate so that no part of a connection needs to know its owner. The owner of several connections that
//! send one stream sets the terms (`group.rs`), and each part of the connection reads the term that concerns
//! it.

use rxo_frame::Duration;
use rxo_wire::SeqNumber;

use super::group::RECEIVER_WAITS;

/// The terms of a connection. Eight bytes, because every idle connection has them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms {
    /// The initial sequence number (ISS); meaningful only if the owner has chosen it.
    iss: SeqNumber,
    owner: Owner,
}

/// The decisions that the owner of a connection makes. Each variant includes the decisions of the variants
/// before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Owner {
    Nothing,
    ChoosesIss,
    /// The owner has sent data, but now the connection sends its data by itself.
    HasSentText,
    SendsText,
}

impl Default for Terms {
    fn default() -> Self {
        Self { iss: SeqNumber(0), owner: Owner::Nothing }
    }
}

impl Terms {
    /// Creates terms with an ISS that the owner has chosen. The owner then sets the size of the send buffer,
    /// which no longer follows the path.
    pub(crate) const fn with_iss(iss: SeqNumber) -> Self {
        Self { iss, owner: Owner::ChoosesIss }
    }

    /// Lets the owner send all new data from now on, in segments of its own size, if it has chosen the ISS.
    /// The connection then only retransmits lost data. Returns `true` if the owner has chosen the ISS.
    pub(crate) fn allow_owner_text(&mut self) -> bool {
        let has_chosen = self.iss().is_some();
        if has_chosen {
            self.owner = Owner::SendsText;
        }
        has_chosen
    }

    /// Lets the connection send its data by itself again.
    pub(crate) fn send_again(&mut self) {
        self.owner = self.owner.min(Owner::HasSentText);
    }

    /// Returns `true` if the owner sends new data, or sent data before the connection took over.
    pub(crate) fn owner_has_sent(self) -> bool {
        self.owner >= Owner::HasSentText
    }

    /// Returns the initial sequence number (ISS) that the owner has chosen; `None` if it has chosen none.
    #[inline]
    pub(crate) fn iss(self) -> Option<SeqNumber> {
        (self.owner >= Owner::ChoosesIss).then_some(self.iss)
    }

    /// Returns `true` if the owner sends all new data.
    #[inline]
    pub(crate) fn owner_sends(self) -> bool {
        self.owner == Owner::SendsText
    }

    /// Returns the shortest time before a tail loss probe: receivers of a group delay their ACKs.
    #[inline]
    pub(crate) fn least_probe_wait(self) -> Duration {
        if self.owner_sends() { RECEIVER_WAITS } else { Duration::ZERO }
    }
}
