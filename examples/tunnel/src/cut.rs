//! From what the TUN gives to the packets of the tunnel: GSO frames are cut, checksums completed.

use std::net::IpAddr;

use rxo::wire::checksum::{Summer, complete, pseudo_header, update_word};
use rxo::wire::segmentation::{Checksums, parts, segment};
use rxo::wire::{IpVersion, Parsed, Transport, parse_ip};
use rxo::{ChecksumStatus, Frame};

/// Cuts frames, in memory for one packet.
pub(crate) struct Cutter {
    packet: Vec<u8>,
    summer: Summer,
}

impl Cutter {
    pub(crate) fn new() -> Self {
        Self { packet: vec![0; 1 << 16], summer: Summer::detect() }
    }

    /// Gives `each` the packets of `frame`, in order. `None` if it cannot be cut.
    pub(crate) fn cut(
        &mut self,
        frame: &Frame<impl AsRef<[u8]>>,
        mut each: impl FnMut(&[u8]),
    ) -> Option<()> {
        let bytes = frame.bytes();
        let Some(gso) = frame.gso else {
            return match frame.checksum {
                ChecksumStatus::Partial { start, offset } => {
                    let packet = self.packet.get_mut(..bytes.len())?;
                    packet.copy_from_slice(bytes);
                    finish(packet, start.into(), offset.into(), self.summer)?;
                    each(packet);
                    Some(())
                }
                _ => {
                    each(bytes);
                    Some(())
                }
            };
        };
        let parsed = parse_ip(bytes).ok()?;
        if matches!(parsed.transport, Transport::Udp(_)) {
            return self.cut_udp(bytes, &parsed, gso.size, each);
        }
        let checksums = Checksums::Complete(self.summer);
        let mut segments = segment(bytes, &parsed, gso.size, checksums).ok()?;
        while let Some(length) = segments.next_into(&mut self.packet).ok()? {
            each(&self.packet[..length]);
        }
        Some(())
    }

    fn cut_udp(
        &mut self,
        bytes: &[u8],
        parsed: &Parsed,
        size: std::num::NonZeroU16,
        mut each: impl FnMut(&[u8]),
    ) -> Option<()> {
        let at = parsed.at;
        let (transport, header_bytes) = (at.transport as usize, at.payload as usize);
        let (headers, payload) = (bytes.get(..header_bytes)?, bytes.get(at.payload_range())?);
        for part in parts(payload.len(), size) {
            let length = header_bytes + part.bytes;
            let packet = self.packet.get_mut(..length)?;
            packet[..header_bytes].copy_from_slice(headers);
            packet[header_bytes..].copy_from_slice(&payload[part.range()]);
            let udp_bytes = (length - transport) as u16;
            match parsed.ip.version {
                IpVersion::V4 => {
                    let id = u16::from_be_bytes([headers[4], headers[5]]);
                    set_v4_word(packet, 2, length as u16);
                    set_v4_word(packet, 4, id.wrapping_add(part.index as u16));
                }
                IpVersion::V6 => {
                    packet[4..6].copy_from_slice(&((length - 40) as u16).to_be_bytes());
                }
            }
            let seed = pseudo_header(&parsed.key, 17, udp_bytes.into()).fold();
            packet[transport + 4..][..2].copy_from_slice(&udp_bytes.to_be_bytes());
            packet[transport + 6..][..2].copy_from_slice(&seed.to_be_bytes());
            finish(packet, transport, 6, self.summer)?;
            each(packet);
        }
        Some(())
    }
}

/// Completes the checksum over the seed at `start + offset`.
fn finish(packet: &mut [u8], start: usize, offset: usize, summer: Summer) -> Option<()> {
    let checksum = complete(packet, start, offset, summer)?;
    packet.get_mut(start + offset..)?.get_mut(..2)?.copy_from_slice(&checksum.to_be_bytes());
    Some(())
}

/// Writes a word of an IPv4 header, and its checksum anew.
fn set_v4_word(packet: &mut [u8], at: usize, value: u16) {
    let word = |at: usize| u16::from_be_bytes([packet[at], packet[at + 1]]);
    let checksum = update_word(word(10), word(at), value);
    packet[at..at + 2].copy_from_slice(&value.to_be_bytes());
    packet[10..12].copy_from_slice(&checksum.to_be_bytes());
}

/// The destination of a packet.
pub(crate) fn destination(packet: &[u8]) -> Option<IpAddr> {
    match packet.first()? >> 4 {
        4 => Some(IpAddr::from(*packet.get(16..)?.first_chunk::<4>()?)),
        6 => Some(IpAddr::from(*packet.get(24..)?.first_chunk::<16>()?)),
        _ => None,
    }
}
