//! ACK offload: one acknowledgement from the host becomes the many that its peer should see.
//!
//! A receiver owes its peer an ACK for every second segment, and each one costs its stack what a
//! packet costs. Menon and Zwaenepoel (2008, section 4) let the stack make one *template* and have
//! the ACKs written below it. This crate is that place below, in the order in which data meets it:
//!
//! * [`AckTemplate`]: the first ACK as a frame and the numbers of the later ones.
//! * [`AckTemplate::expand`]: the template as a batch of frames, in memory that the caller lends.
//!
//! # Contract
//! No input or output, no clock. Nothing allocates. Nothing panics, whatever the bytes. The same
//! input gives the same output.
#![no_std]

mod expanded;
mod numbers;
mod pattern;
mod template;

pub use expanded::{AckSlot, Expanded};
pub use numbers::AckNumbers;
pub use pattern::NotATemplate;
pub use template::{AckTemplate, IdRule, NoRoom};
