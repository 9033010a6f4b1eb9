//! ACK offload: turns one acknowledgement of the host into the several that its peer should
//! receive.
//!
//! A receiver owes its peer an ACK for every second segment, and each ACK costs its stack as much
//! as a packet. Menon and Zwaenepoel (2008, section 4) let the stack build one *template*, and the
//! ACKs are written below the stack. This crate is that layer, in the order in which data meets it:
//!
//! * [`AckTemplate`] is the first ACK as a frame, and the numbers of the later ones.
//! * [`AckTemplate::expand`] writes the ACKs as a batch of frames into memory that the caller
//!   lends.
//! * [`AckWriter`] writes the same ACKs one by one, where the caller wants each.
//! * [`expand_packed`] does so for a device that was handed a template as one packet.
//! * [`Splitter`] makes templates for hosts that make none: it inserts before a *stretch ACK* the
//!   ACKs that the host would have sent without coalescing.
//!
//! # Contract
//! No input or output, no clock. Nothing allocates after construction. Nothing panics, whatever the
//! bytes. The same input gives the same output.
#![no_std]

extern crate alloc;

mod expanded;
mod numbers;
mod packed;
mod pattern;
mod split;
mod template;
mod writer;

pub use expanded::{AckSlot, Expanded};
pub use numbers::AckNumbers;
pub use packed::{MOST_PACKED_NUMBERS, PACKED_NUMBERS_BYTES, expand_packed};
pub use pattern::NotATemplate;
pub use split::{
    Delivered, MAX_ACKS_PER_STRETCH, PassReason, SplitConfig, SplitConfigError, SplitCounters,
    Splitter,
};
pub use template::{AckTemplate, IdRule, NoRoom};
pub use writer::AckWriter;
