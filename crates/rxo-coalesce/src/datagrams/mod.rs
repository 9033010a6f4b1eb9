//! UDP datagrams: the rules that decide which may be coalesced, and which continue the held datagrams of their
//! flow.
//!
//! Separate from the rules for TCP because there is no byte stream: datagrams have neither sequence numbers
//! nor flags, and only their sizes show where one ends. The rules are those of Linux
//! (`net/ipv4/udp_offload.c`). The rules that TCP and UDP share (IP header, link header, limits) are in
//! `verdict`.

mod expected;
mod fixed;
mod rules;

pub(crate) use expected::ExpectedDatagram;
pub(crate) use fixed::plain_datagram;
pub(crate) use rules::{datagram, with_datagram};
