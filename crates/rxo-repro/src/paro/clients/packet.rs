//! What a client's packets look like.

use std::net::Ipv4Addr;

use anyhow::{Context, Result};
use rxo::wire::build::{
    BuildError, EthernetHeader, Ipv4Header, TcpHeader, maximum_segment_size_option,
    timestamp_option,
};
use rxo::wire::tcp::Timestamp;
use rxo::wire::{ETHERTYPE_IPV4, PROTOCOL_TCP, SeqNumber, TcpFlags};

use super::super::server::{MAC, PORT, SERVER};

/// The address of all clients.
pub(super) const CLIENTS: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
const CLIENTS_MAC: [u8; 6] = [2, 0, 0, 0, 0, 2];

/// What one packet says.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Said<'a> {
    pub(super) port: u16,
    pub(super) seq: u32,
    pub(super) ack: u32,
    pub(super) flags: TcpFlags,
    pub(super) timestamp: Timestamp,
    /// What arrived twice (RFC 2883).
    pub(super) duplicate: Option<(u32, u32)>,
    pub(super) text: &'a [u8],
}

impl Said<'_> {
    /// The frame. Its TCP checksum is left out: a card says that it is right.
    pub(super) fn frame(&self) -> Result<Vec<u8>> {
        let mut options = timestamp_option(self.timestamp).to_vec();
        if self.flags.contains(TcpFlags::SYN) {
            options.extend(maximum_segment_size_option(1_460));
            // SACK permitted; a window scale.
            options.extend([4, 2, 1, 1, 1, 3, 3, WINDOW_SHIFT]);
        }
        if let Some((from, to)) = self.duplicate {
            options.extend([1, 1, 5, 10]);
            options.extend([from, to].into_iter().flat_map(u32::to_be_bytes));
        }
        self.written(&options).context("a packet of a client")
    }

    fn written(&self, options: &[u8]) -> Result<Vec<u8>, BuildError> {
        let tcp = TcpHeader {
            source_port: self.port,
            destination_port: PORT,
            seq: SeqNumber(self.seq),
            ack: SeqNumber(self.ack),
            flags: self.flags,
            window: WINDOW,
            options,
            ..TcpHeader::default()
        };
        let ip = Ipv4Header {
            source: CLIENTS,
            destination: SERVER,
            protocol: PROTOCOL_TCP,
            payload_bytes: tcp.bytes() + self.text.len(),
            ..Ipv4Header::default()
        };
        let ethernet = EthernetHeader {
            destination: MAC,
            source: CLIENTS_MAC,
            ethertype: ETHERTYPE_IPV4,
            ..EthernetHeader::default()
        };
        let mut frame = vec![0; ethernet.bytes() + ip.bytes() + ip.payload_bytes];
        let rest = ethernet.write(&mut frame)?;
        tcp.write(ip.write(rest)?)?.copy_from_slice(self.text);
        Ok(frame)
    }
}

/// The answer to an ARP request for the clients' address; `None` if `frame` is none.
pub(super) fn arp_answer(frame: &[u8]) -> Option<Vec<u8>> {
    let (head, body) = frame.split_first_chunk::<22>()?;
    let [sender @ .., _, _, _, _, _, _, _, _, _, _] = body.first_chunk::<20>()?;
    let asked = body.get(16..20)?;
    if head[12..14] != [8, 6] || head[20..22] != [0, 1] || asked != CLIENTS.octets() {
        return None;
    }
    let mut answer = [&head[6..12], &CLIENTS_MAC, &head[12..20], &[0, 2]].concat();
    answer.extend(CLIENTS_MAC.into_iter().chain(CLIENTS.octets()));
    answer.extend(sender);
    Some(answer)
}

const WINDOW_SHIFT: u8 = 7;
/// 256 KiB, as it stands in the header: enough for frames of full size, and little enough that the queues of 400
/// clients stay below a tenth of a second.
const WINDOW: u16 = 2_048;
