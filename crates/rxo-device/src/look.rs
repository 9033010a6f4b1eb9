//! Inspection of frames in the device's memory, before they are received.
//!
//! The three parts of this interface (the inspecting function, its verdict, the result for a batch) are the
//! same for every device. Chan and Cheriton 2013, section 3.1, describe the same interface: `net_fastpath_in`
//! returns *consumed* or *fallback*.

use rxo_frame::Frame;

/// The decision on an inspected frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The inspecting function has processed the frame completely. The frame's memory returns to the device at
    /// once.
    Consumed,
    /// The frame is appended to the batch, as if the function had not inspected it.
    Fallback,
}

/// A function that inspects each frame of a batch, in order of arrival, and returns a verdict. The bytes are valid only
/// during the call.
pub type Look<'a> = &'a mut dyn FnMut(Frame<&[u8]>) -> Verdict;

/// The result of inspecting a batch of frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Looked {
    /// The number of frames that were appended to the batch.
    pub given: usize,
    /// The number of frames that were consumed.
    pub consumed: usize,
    /// The number of consumed frames that were inspected in the device's memory, so that the source used no
    /// buffer for them.
    pub in_place: usize,
}

impl Looked {
    /// Returns the number of all frames that were taken from the device.
    #[must_use]
    pub const fn frames(&self) -> usize {
        self.given + self.consumed
    }

    /// Counts a frame that was consumed in the device's memory.
    pub const fn consume_in_place(&mut self) {
        self.consumed += 1;
        self.in_place += 1;
    }
}
