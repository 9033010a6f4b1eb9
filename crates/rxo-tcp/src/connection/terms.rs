//! What the owner of a connection decides for it. By default nothing: a connection is by itself.
//!
//! Separate so that no part of a connection asks who its owner is. The owner of several that send one stream sets these
//! (`group.rs`), and each part reads the one that it is about.

use rxo_frame::Duration;
use rxo_wire::SeqNumber;

use super::group::RECEIVER_WAITS;

/// The terms of a connection. Eight bytes, because every idle connection has them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms {
    /// Meaningful if the owner has chosen it.
    iss: SeqNumber,
    owner: Owner,
}

/// What the owner does, each with what is above it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Owner {
    Nothing,
    ChoosesIss,
    SendsText,
}

impl Default for Terms {
    fn default() -> Self {
        Self { iss: SeqNumber(0), owner: Owner::Nothing }
    }
}

impl Terms {
    /// The owner chooses ISS. It then also sets the size of the send buffer, and none follows the path.
    pub(crate) const fn with_iss(iss: SeqNumber) -> Self {
        Self { iss, owner: Owner::ChoosesIss }
    }

    /// From now on the owner sends all new text, in segments whose size it chooses, if it has chosen ISS. The connection
    /// only repeats what is lost. Returns whether it has.
    pub(crate) fn let_owner_send(&mut self) -> bool {
        let has_chosen = self.iss().is_some();
        if has_chosen {
            self.owner = Owner::SendsText;
        }
        has_chosen
    }

    /// ISS, if the owner has chosen it.
    #[inline]
    pub(crate) fn iss(self) -> Option<SeqNumber> {
        (self.owner >= Owner::ChoosesIss).then_some(self.iss)
    }

    /// True if the owner sends all new text.
    #[inline]
    pub(crate) fn owner_sends(self) -> bool {
        self.owner == Owner::SendsText
    }

    /// The least time before a tail loss probe: receivers of a group wait before they acknowledge.
    #[inline]
    pub(crate) fn least_probe_wait(self) -> Duration {
        if self.owner_sends() { RECEIVER_WAITS } else { Duration::ZERO }
    }
}
