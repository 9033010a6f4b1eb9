//! Frames of modelled receivers, and the parsing of the sender's frames. All are Ethernet and IPv4 without
//! options.

use std::net::Ipv4Addr;

use anyhow::Result;
use rxo::wire::tcp::Timestamp;
use rxo::wire::{PROTOCOL_TCP, SeqNumber, TcpFlags};

use crate::modelled::{Ends, Said, arp_reply};

/// The sender's address, in a network with a prefix of eight bits.
pub(crate) const SENDER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
/// The sender's MAC address.
pub(crate) const SENDER_MAC: [u8; 6] = [2, 0, 0, 0, 0, 1];
pub(crate) const GROUP: Ipv4Addr = Ipv4Addr::new(232, 1, 1, 1);
pub(crate) const PORT: u16 = 7_000;
/// The modelled receivers' initial sequence number.
const ISS: u32 = 5_000;
/// The receivers' window, 2 MiB once it is scaled.
const WINDOW: u16 = 16_384;

const IP: usize = 14;
const TCP: usize = IP + 20;

/// Returns the address of receiver `number`.
pub(crate) const fn address(number: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 1, (number >> 8) as u8, number as u8)
}

/// Returns the number of the receiver with `address`; `None` for other addresses.
fn number(address: [u8; 4]) -> Option<usize> {
    let [10, 1, high, low] = address else { return None };
    Some(usize::from(high) << 8 | usize::from(low))
}

const fn mac(number: usize) -> [u8; 6] {
    [2, 0, 0, 1, (number >> 8) as u8, number as u8]
}

/// The content of a frame from the sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Received {
    /// An ARP request for the MAC address of this receiver.
    Asks(usize),
    /// The SYN-ACK to a receiver.
    Opens { number: usize, seq: SeqNumber, clock: u32 },
    /// Data to the group.
    Text(Text),
    /// A segment of a receiver's own connection, with its payload length.
    Own(usize, usize),
    /// Any other frame.
    Other,
}

/// Data to the group, in one segment or more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Text {
    pub(crate) seq: SeqNumber,
    pub(crate) bytes: usize,
    pub(crate) is_last: bool,
    pub(crate) clock: u32,
}

/// Parses the headers of a frame; the payload may be missing.
pub(crate) fn received(frame: &[u8]) -> Received {
    read(frame).unwrap_or(Received::Other)
}

fn read(frame: &[u8]) -> Option<Received> {
    let four = |at: usize| frame.get(at..at + 4)?.try_into().ok();
    let word = |at: usize| four(at).map(u32::from_be_bytes);
    match frame.get(12..14)? {
        [8, 6] => return Some(Received::Asks(number(four(38)?)?)),
        [8, 0] if frame.get(IP + 9) == Some(&PROTOCOL_TCP) => {}
        _ => return None,
    }
    let packet = usize::from(u16::from_be_bytes([*frame.get(IP + 2)?, *frame.get(IP + 3)?]));
    let header = usize::from(*frame.get(TCP + 12)? >> 4) * 4;
    let bytes = packet.checked_sub(20 + header)?;
    let flags = u16::from(*frame.get(TCP + 13)?);
    let has = |flag: TcpFlags| flags & flag.bits() != 0;
    let seq = SeqNumber(word(TCP + 4)?);
    let to: [u8; 4] = four(IP + 16)?;
    if to == GROUP.octets() {
        let text = Text { seq, bytes, is_last: has(TcpFlags::FIN), clock: word(TCP + 24)? };
        return Some(Received::Text(text));
    }
    let number = number(to)?;
    if has(TcpFlags::SYN) {
        let clock = Timestamp::find(frame.get(TCP + 20..TCP + header)?)?.value;
        return Some(Received::Opens { number, seq, clock });
    }
    Some(Received::Own(number, bytes))
}

const fn ends(number: usize) -> Ends {
    let (client, client_mac, window) = (address(number), mac(number), WINDOW);
    let (server, server_mac, server_port) = (SENDER, SENDER_MAC, PORT);
    Ends { client, client_mac, window, server, server_mac, server_port }
}

/// Builds the ARP reply of receiver `number` to the sender.
pub(crate) fn here_is(number: usize) -> Vec<u8> {
    arp_reply(&ends(number))
}

/// Builds the SYN of receiver `number`.
pub(crate) fn syn(number: usize, clock: u32) -> Result<Vec<u8>> {
    let timestamp = Timestamp { value: clock, echo: 0 };
    Said { seq: ISS, flags: TcpFlags::SYN, timestamp, ..SAID }.frame(&ends(number))
}

/// The acknowledgements of one receiver: a frame in which only three numbers change.
#[derive(Clone, Debug)]
pub(crate) struct Ack(Vec<u8>);

impl Ack {
    /// Makes the acknowledgement frame of receiver `number`, with a FIN if `is_last`.
    pub(crate) fn new(number: usize, is_last: bool) -> Result<Self> {
        let fin = if is_last { TcpFlags::FIN } else { TcpFlags::default() };
        let said = Said { seq: ISS + 1, flags: TcpFlags::ACK | fin, ..SAID };
        said.frame(&ends(number)).map(Self)
    }

    /// Returns the frame with ACK number `number`, TSval `clock`, and the sender's TSval `echo`.
    #[inline]
    pub(crate) fn of(&mut self, number: SeqNumber, clock: u32, echo: u32) -> &[u8] {
        for (at, value) in [(8, number.0), (24, clock), (28, echo)] {
            self.0[TCP + at..TCP + at + 4].copy_from_slice(&value.to_be_bytes());
        }
        &self.0
    }
}

const SAID: Said<'_> = Said {
    port: 40_000,
    seq: 0,
    ack: 0,
    flags: TcpFlags::ACK,
    timestamp: Timestamp { value: 0, echo: 0 },
    duplicate: None,
    text: &[],
};

#[cfg(test)]
mod tests {
    use rxo::wire::{Transport, parse};

    use super::*;

    #[test]
    fn an_ack_is_what_a_receiver_sends() {
        let mut ack = Ack::new(300, false).unwrap();
        for (number, clock, echo) in [(7, 8, 9), (u32::MAX, u32::MAX - 1, 0xffff_0001)] {
            let bytes = ack.of(SeqNumber(number), clock, echo).to_vec();
            let parsed = parse(&bytes).unwrap();
            assert_eq!(parsed.key.source(), std::net::IpAddr::from([10, 1, 1, 44]));
            let Transport::Tcp(tcp) = parsed.transport else { panic!("{parsed:?}") };
            assert_eq!((tcp.ack.0, tcp.flags, tcp.window), (number, TcpFlags::ACK, WINDOW));
            let [clock, echo] = [clock, echo].map(u32::to_be_bytes);
            assert_eq!(&bytes[TCP + 24..], [clock, echo].concat());
        }
    }

    #[test]
    fn frames_of_receivers_are_told_apart_from_the_senders() {
        let mut question = here_is(300);
        // The target protocol address of the sender's request.
        question[38..42].copy_from_slice(&address(300).octets());
        assert_eq!(received(&question), Received::Asks(300));
        assert_eq!(received(&[0; 20]), Received::Other);
        assert_eq!(received(&syn(3, 1).unwrap()), Received::Other, "it is not to a receiver");
    }
}
