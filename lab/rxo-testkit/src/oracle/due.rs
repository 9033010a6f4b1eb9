//! A delivery: its frames, and the reason for it.

/// The reason why frames were delivered when and as they were, by the name of the counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Why {
    /// Untouched, for this reason.
    Bypass(&'static str),
    /// The frames that a flow held, flushed for this reason.
    Flush(&'static str),
}

/// A delivery that has to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Due {
    /// The numbers of its frames.
    pub frames: Vec<usize>,
    /// The reason why it is made.
    pub why: Why,
}
