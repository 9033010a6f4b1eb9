//! ACK offload: expands one ACK of the host into the several ACKs that its peer should receive.
//!
//! ```text
//!  the stack's first ACK + numbers of the later ones ── AckTemplate::expand ──▶ every ACK, as frames
//!  a foreign host's stretch ACK ── Splitter::split ──▶ a template of the ACKs before it
//! ```
//!
//! A receiver must send an ACK for every second segment, and an ACK costs its stack as much work as any other
//! packet. Menon and Zwaenepoel (2008, section 4) propose that the stack builds one *template*, from which a
//! layer below the stack writes the ACKs. This crate is that layer:
//!
//! * [`AckTemplate`] is the first ACK as a frame, together with the [`AckNumbers`] of the later ACKs.
//! * [`AckTemplate::expand`] writes the ACKs as a batch of frames into memory that the caller provides.
//! * [`AckWriter`] writes equal ACKs one by one, into buffers that the caller provides.
//! * [`expand_packed`] expands a template that a device received as one packet.
//! * [`Splitter`] builds templates for hosts that build none: before a *stretch ACK* it inserts the ACKs that
//!   the host would have sent without coalescing.
//!
//! # Contract
//! The crate does no input or output, and reads no clock. It does not allocate after construction. It does not
//! panic, whatever the bytes, except where a function documents a panic. Equal inputs give equal outputs.
//!
//! # Examples
//! ```
//! use rxo_ack::{AckNumbers, AckSlot, AckTemplate, IdRule};
//! use rxo_frame::{Frame, Instant, LinkKind};
//! use rxo_wire::SeqNumber;
//! # use rxo_wire::build::{Ipv4Header, TcpHeader, write_tcp_checksum};
//! # use rxo_wire::{TcpFlags, Transport, checksum::Summer, parse_ip};
//! # let tcp = TcpHeader { flags: TcpFlags::ACK, ack: SeqNumber(2897), ..TcpHeader::default() };
//! # let ip = Ipv4Header { protocol: 6, payload_bytes: 20, ..Ipv4Header::default() };
//! # let mut packet = [0; 40];
//! # let segment = ip.write(&mut packet)?;
//! # tcp.write(segment)?;
//! # write_tcp_checksum(segment, ip.pseudo_header(), Summer::detect())?;
//!
//! // `packet` acknowledges 2897. The peer shall also see 5793.
//! let later = [AckNumbers { ack: SeqNumber(5793), ..AckNumbers::default() }];
//! let first = Frame::new(&packet[..], Instant::ZERO);
//! let template = AckTemplate::new(first, LinkKind::RawIp, &later, IdRule::Increment)?;
//! let mut memory = [AckSlot::EMPTY; 2];
//! let mut acked = Vec::new();
//! for ack in template.expand(&mut memory)?.iter() {
//!     let parsed = parse_ip(ack.bytes).map_err(|_| "unreadable")?;
//!     let Transport::Tcp(tcp) = parsed.transport else { panic!("no TCP") };
//!     acked.push(tcp.ack.0);
//! }
//! assert_eq!(acked, [2897, 5793]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
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
    Delivered, MAX_ACKS_PER_STRETCH, PassReason, SplitConfig, SplitCounters, Splitter,
};
pub use template::{AckTemplate, IdRule, NoRoom};
pub use writer::AckWriter;
