//! The cells whose text waits until the device has room.
//!
//! What a device has no room for is kept by its sink, within bounds, and dropped beyond them. So while the sink is
//! blocked, connections send no text; what keeps them alive leaves all the same (`Connection::poll_bare`), and timers, applications and
//! ends are served as ever. In order of waiting, a share each time that there is room, so that the first ones, which
//! fill the device again, come last then.

use std::collections::VecDeque;

use super::core::Core;

/// The places of these cells.
#[derive(Debug, Default)]
pub(super) struct Stalled(VecDeque<u32>);

impl Stalled {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<B: AsRef<[u8]> + Send + Sync + 'static> Core<B> {
    /// Takes note that text of the cell at `place` waits for room.
    #[cold]
    pub(super) fn stall(&mut self, place: u32) {
        if let Some(slot) = self.slots.get_mut(place).filter(|slot| !slot.is_stalled) {
            slot.is_stalled = true;
            self.stalled.0.push_back(place);
        }
    }

    /// Marks a share of the stalled cells as to be served, if the device has room.
    #[inline]
    pub(super) fn wake_stalled(&mut self) {
        if self.may_wake_stalled() {
            self.touch_stalled();
        }
    }

    #[cold]
    fn touch_stalled(&mut self) {
        for _ in 0..SHARE {
            let Some(place) = self.stalled.0.pop_front() else { return };
            // Its connection may be gone, and another one at its place, which is served in vain then.
            if let Some(slot) = self.slots.get_mut(place) {
                slot.is_stalled = false;
                self.touch(place);
            }
        }
    }

    /// Whether stalled cells could be served now.
    pub(super) fn may_wake_stalled(&self) -> bool {
        !self.stalled.is_empty() && !self.outbox.is_blocked()
    }
}

/// As many as a turn serves of many (`shares.rs`): more would only find the device full again.
const SHARE: usize = 32;
