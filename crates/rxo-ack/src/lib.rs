//! ACK offload: one acknowledgement from the host becomes the many that its peer should see.
//!
//! A receiver owes its peer an ACK for every second segment, and each one costs its stack what a
//! packet costs. Menon and Zwaenepoel (2008, section 4) let the stack make one *template* and have
//! the ACKs written below it. This crate is that place below, in the order in which data meets it:
//!
//! * [`AckTemplate`]: the first ACK as a frame and the numbers of the later ones.
//! * [`AckTemplate::expand`]: the template as a batch of frames, in memory that the caller lends.
//! * [`Splitter`]: templates for hosts that make none. It puts before a *stretch ACK* the ACKs that
//!   the host would have sent without coalescing.
//!
//! # Contract
//! No input or output, no clock. Nothing allocates after construction. Nothing panics, whatever the
//! bytes. The same input gives the same output.
#![no_std]

extern crate alloc;

mod expanded;
mod numbers;
mod pattern;
mod split;
mod template;

pub use expanded::{AckSlot, Expanded};
pub use numbers::AckNumbers;
pub use pattern::NotATemplate;
pub use split::{
    Delivered, MAX_ACKS_PER_STRETCH, PassReason, SplitConfig, SplitConfigError, SplitCounters,
    Splitter,
};
pub use template::{AckTemplate, IdRule, NoRoom};
