//! A look at frames where they lie, before anybody takes them.
//!
//! Separate from the source because its three parts (the function that looks, what it decides, what came of a
//! batch) are the same for every device. Chan and Cheriton 2013, section 3.1, have the same face:
//! `net_fastpath_in`, which says *consumed* or *fallback*.

use rxo_frame::Frame;

/// What is done with a frame that was looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Nobody needs the frame any more: its memory goes back to the device at once.
    Consumed,
    /// The frame is received as if nobody had looked.
    Fallback,
}

/// A function that looks at each frame of a batch, in order of arrival. The bytes are valid during the call only.
pub type Look<'a> = &'a mut dyn FnMut(Frame<&[u8]>) -> Verdict;

/// What came of a batch that was looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Looked {
    /// Frames that were appended to the batch.
    pub given: usize,
    /// Frames that were consumed.
    pub consumed: usize,
    /// Consumed frames whose memory never left the device: no buffer was taken for them.
    pub in_place: usize,
}

impl Looked {
    /// All frames that were taken from the device.
    #[must_use]
    pub const fn frames(&self) -> usize {
        self.given + self.consumed
    }

    /// Counts a frame that was consumed where it lay.
    pub const fn consume_in_place(&mut self) {
        self.consumed += 1;
        self.in_place += 1;
    }
}
