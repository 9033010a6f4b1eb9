//! What a delivery is: its frames, and why it was made.

/// Why frames were delivered when and as they were, by the name of the counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Why {
    /// Untouched, for this reason.
    Bypass(&'static str),
    /// What a flow held, for this reason.
    Flush(&'static str),
}

/// A delivery that has to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Due {
    /// The numbers of its frames.
    pub frames: Vec<usize>,
    /// Why it is made.
    pub why: Why,
}
