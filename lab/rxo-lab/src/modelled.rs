//! Builds the packets of a modelled client, which has no TCP stack.

use std::net::Ipv4Addr;

use anyhow::{Context, Result};
use rxo::wire::build::{
    BuildError, EthernetHeader, Ipv4Header, TcpHeader, maximum_segment_size_option,
    timestamp_option,
};
use rxo::wire::tcp::Timestamp;
use rxo::wire::{ETHERTYPE_IPV4, PROTOCOL_TCP, SeqNumber, TcpFlags};

/// Addresses and ports of both ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ends {
    pub(crate) client: Ipv4Addr,
    pub(crate) client_mac: [u8; 6],
    /// The client's window, without its scale of [`WINDOW_SHIFT`].
    pub(crate) window: u16,
    pub(crate) server: Ipv4Addr,
    pub(crate) server_mac: [u8; 6],
    pub(crate) server_port: u16,
}

/// The fields of one packet.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Said<'a> {
    pub(crate) port: u16,
    pub(crate) seq: u32,
    pub(crate) ack: u32,
    pub(crate) flags: TcpFlags,
    pub(crate) timestamp: Timestamp,
    /// Sequence range of a D-SACK block, for data that arrived twice (RFC 2883); `None` for no block.
    pub(crate) duplicate: Option<(u32, u32)>,
    pub(crate) text: &'a [u8],
}

impl Said<'_> {
    /// Builds the frame to the server. The TCP checksum is left out: a card marks the frame as verified.
    pub(crate) fn frame(&self, ends: &Ends) -> Result<Vec<u8>> {
        let mut options = timestamp_option(self.timestamp).to_vec();
        if self.flags.contains(TcpFlags::SYN) {
            options.extend(maximum_segment_size_option(1_460));
            // SACK permitted, and a window scale option.
            options.extend([4, 2, 1, 1, 1, 3, 3, WINDOW_SHIFT]);
        }
        if let Some((from, to)) = self.duplicate {
            options.extend([1, 1, 5, 10]);
            options.extend([from, to].into_iter().flat_map(u32::to_be_bytes));
        }
        self.written(ends, &options).context("a packet of a client")
    }

    fn written(&self, ends: &Ends, options: &[u8]) -> Result<Vec<u8>, BuildError> {
        let tcp = TcpHeader {
            source_port: self.port,
            destination_port: ends.server_port,
            seq: SeqNumber(self.seq),
            ack: SeqNumber(self.ack),
            flags: self.flags,
            window: ends.window,
            options,
            ..TcpHeader::default()
        };
        let ip = Ipv4Header {
            source: ends.client,
            destination: ends.server,
            protocol: PROTOCOL_TCP,
            payload_bytes: tcp.bytes() + self.text.len(),
            ..Ipv4Header::default()
        };
        let ethernet = EthernetHeader {
            destination: ends.server_mac,
            source: ends.client_mac,
            ethertype: ETHERTYPE_IPV4,
            ..EthernetHeader::default()
        };
        let mut frame = vec![0; ethernet.bytes() + ip.bytes() + ip.payload_bytes];
        let rest = ethernet.write(&mut frame)?;
        tcp.write(ip.write(rest)?)?.copy_from_slice(self.text);
        Ok(frame)
    }
}

/// Returns the reply to an ARP request for the address of `client`; `None` if `frame` is no such request.
pub(crate) fn arp_answer(client: Ipv4Addr, frame: &[u8]) -> Option<Vec<u8>> {
    let asked = Arp::read(frame)?;
    let is_for_client = asked.operation == REQUEST && asked.target == client;
    is_for_client.then(|| arp(REPLY, (CLIENT_MAC, client), (asked.sender_mac, asked.sender)))
}

/// Builds the reply to an ARP request of the server for the client's address.
pub(crate) fn arp_reply(ends: &Ends) -> Vec<u8> {
    arp(REPLY, (ends.client_mac, ends.client), (ends.server_mac, ends.server))
}

/// Builds an ARP request for the MAC address of `server`.
pub(crate) fn arp_request(client: Ipv4Addr, server: Ipv4Addr) -> Vec<u8> {
    arp(REQUEST, (CLIENT_MAC, client), (BROADCAST, server))
}

/// Returns the MAC address of `server` if `frame` is an ARP packet from it; otherwise `None`.
pub(crate) fn mac_of(server: Ipv4Addr, frame: &[u8]) -> Option<[u8; 6]> {
    Arp::read(frame).filter(|said| said.sender == server).map(|said| said.sender_mac)
}

/// An ARP packet of Ethernet and IPv4 (RFC 826).
struct Arp {
    operation: u8,
    sender_mac: [u8; 6],
    sender: Ipv4Addr,
    target: Ipv4Addr,
}

impl Arp {
    fn read(frame: &[u8]) -> Option<Self> {
        let (head, body) = frame.split_first_chunk::<21>()?;
        let [operation, sender_mac @ .., a, b, c, d] = *body.first_chunk::<11>()?;
        let target = *body.get(17..)?.first_chunk::<4>()?;
        let is_arp = head[12..14] == [8, 6];
        let (sender, target) = (Ipv4Addr::new(a, b, c, d), Ipv4Addr::from(target));
        is_arp.then_some(Self { operation, sender_mac, sender, target })
    }
}

fn arp(
    operation: u8,
    (own_mac, own): ([u8; 6], Ipv4Addr),
    (mac, address): ([u8; 6], Ipv4Addr),
) -> Vec<u8> {
    let mut frame = [mac, own_mac].concat();
    // The fixed ARP header: hardware type, protocol type, and the lengths of both addresses.
    frame.extend([8, 6, 0, 1, 8, 0, 6, 4, 0, operation]);
    frame.extend(own_mac.into_iter().chain(own.octets()));
    frame.extend(mac.into_iter().chain(address.octets()));
    frame
}

const REQUEST: u8 = 1;
const REPLY: u8 = 2;
const BROADCAST: [u8; 6] = [255; 6];
pub(crate) const CLIENT_MAC: [u8; 6] = [2, 0, 0, 0, 0, 2];
pub(crate) const WINDOW_SHIFT: u8 = 7;
/// Window field of 256 KiB after scaling: enough for full-size frames, and small enough that the queues of
/// 400 clients stay below a tenth of a second.
pub(crate) const WINDOW: u16 = 2_048;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_asks_for_an_address_is_told_it() {
        let [client, server] = [2, 1].map(|host| Ipv4Addr::new(10, 0, 0, host));
        let asked = arp_request(server, client);
        let answer = arp_answer(client, &asked).unwrap();
        assert_eq!(mac_of(client, &answer), Some(CLIENT_MAC));
        assert_eq!(arp_answer(server, &asked), None, "somebody else was asked");
        assert_eq!(arp_answer(client, &answer), None, "an answer asks nothing");
        for length in 0..asked.len() {
            assert_eq!(arp_answer(client, &asked[..length]), None);
        }
    }
}
