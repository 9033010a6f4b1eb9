//! Takes back memory by which connections have grown, while there is too little for new ones.
//!
//! Separate because it is about all connections, also those to which nothing happens. Free send memory comes back
//! at once. Receive memory comes back as the peer uses up the window that was offered before the buffer shrank, since
//! a window is never taken back (RFC 9293, section 3.8.6). An idle connection has reserved nothing for text
//! (`rests.rs`), but its next text reserves its buffer as large as it is. Active connections grow again, if there is memory. A
//! pass over all cells takes turns, and a second at least, so that an active connection keeps its rate for
//! several round trips.

use rxo_frame::{Duration, Instant};

use super::connections::Connections;

/// Where the pass over all cells is.
#[derive(Debug, Default)]
pub(super) struct Reclaim {
    /// The place of the next cell.
    next: u32,
    /// When the next pass may begin.
    again_at: Instant,
}

impl Reclaim {
    /// Halves some of the buffers that have grown, if memory is short.
    pub(super) fn run<B: AsRef<[u8]>>(&mut self, connections: &mut Connections<B>, now: Instant) {
        if !connections.post.memory().is_short() || now < self.again_at {
            return;
        }
        let first = self.next;
        for place in first..first + CELLS_A_TURN {
            let Some(slot) = connections.slots.get(place) else { continue };
            let cell = &slot.cell;
            if cell.serve(|inner| cell.shrink(inner)).is_some() {
                // It may have run the backlog.
                connections.touch(place);
            }
        }
        self.next = first + CELLS_A_TURN;
        if self.next as usize >= connections.slots.places() {
            *self = Self { next: 0, again_at: now + PASS };
        }
    }
}

const CELLS_A_TURN: u32 = 64;
const PASS: Duration = Duration::from_secs(1);
