//! A delivery with its frames and its reason.

/// The reason for a delivery, by the name of its counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Why {
    /// A frame passed untouched, for this reason.
    Bypass(&'static str),
    /// The frames of a flow were flushed, for this reason.
    Flush(&'static str),
}

/// An expected delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Due {
    /// Numbers of the delivery's frames.
    pub frames: Vec<usize>,
    /// Reason for the delivery.
    pub why: Why,
}
