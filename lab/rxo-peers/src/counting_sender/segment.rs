//! Writes and parses the frames of one TCP connection over IPv4 and Ethernet.

use std::net::{IpAddr, Ipv4Addr};

use rxo::wire::build::{
    BuildError, EthernetHeader, Ipv4Header, TcpHeader, maximum_segment_size_option,
    timestamp_option, write_tcp_checksum,
};
use rxo::wire::checksum::Summer;
use rxo::wire::tcp::{OptionKind, Options, Timestamp};
use rxo::wire::{ETHERTYPE_IPV4, PROTOCOL_TCP, SeqNumber, TcpFlags, Transport, parse};
use rxo_testbed::Mac;

/// The addresses of the connection, from the sender's point of view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ends {
    pub(super) local: (Mac, Ipv4Addr, u16),
    pub(super) remote: (Mac, Ipv4Addr, u16),
}

/// The fields of a TCP header, in either direction, without payload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) seq: u32,
    pub(super) ack: u32,
    pub(super) flags: u8,
    /// The window as in the header, unscaled.
    pub(super) window: u16,
    /// Maximum segment size (SYN only).
    pub(super) mss: Option<u16>,
    /// Window scale (SYN only).
    pub(super) scale: Option<u8>,
    /// The timestamp's value and echo.
    pub(super) timestamp: Option<(u32, u32)>,
}

pub(super) const FIN: u8 = 0x01;
pub(super) const SYN: u8 = 0x02;
pub(super) const RST: u8 = 0x04;
pub(super) const ACK: u8 = 0x10;

/// Replaces the contents of `out` by a frame with complete checksums.
///
/// # Errors
/// If the payload does not fit into a packet.
pub(super) fn write(
    out: &mut Vec<u8>,
    ends: &Ends,
    header: &Header,
    payload: &[u8],
) -> Result<(), BuildError> {
    let tcp = TcpHeader {
        source_port: ends.local.2,
        destination_port: ends.remote.2,
        seq: SeqNumber(header.seq),
        ack: SeqNumber(header.ack),
        flags: TcpFlags::from_bits(header.flags.into()),
        window: header.window,
        options: &options(header),
        ..TcpHeader::default()
    };
    let ip = Ipv4Header {
        source: ends.local.1,
        destination: ends.remote.1,
        protocol: PROTOCOL_TCP,
        payload_bytes: tcp.bytes() + payload.len(),
        ..Ipv4Header::default()
    };
    let ethernet = EthernetHeader {
        destination: ends.remote.0,
        source: ends.local.0,
        ethertype: ETHERTYPE_IPV4,
        ..EthernetHeader::default()
    };
    out.clear();
    out.resize(ethernet.bytes() + ip.bytes() + ip.payload_bytes, 0);
    let segment = ip.write(ethernet.write(out)?)?;
    tcp.write(segment)?.copy_from_slice(payload);
    write_tcp_checksum(segment, ip.pseudo_header(), Summer::detect())
}

/// Parses a frame; `None` if it is truncated or of another connection. Checksums are ignored,
/// because they are partial between two namespaces. Never panics.
pub(super) fn read(frame: &[u8], ends: &Ends) -> Option<Header> {
    let parsed = parse(frame).ok()?;
    let (Transport::Tcp(tcp), key) = (parsed.transport, &parsed.key) else { return None };
    let is_ours = key.source() == IpAddr::V4(ends.remote.1)
        && key.destination() == IpAddr::V4(ends.local.1)
        && (key.source_port(), key.destination_port()) == (ends.remote.2, ends.local.2);
    if !is_ours {
        return None;
    }
    let mut header = Header {
        seq: tcp.seq.0,
        ack: tcp.ack.0,
        flags: tcp.flags.bits() as u8,
        window: tcp.window,
        ..Header::default()
    };
    let options = Options::new(frame.get(parsed.at.tcp_options())?);
    for option in options.map_while(Result::ok) {
        match (option.kind, option.data) {
            (OptionKind::MaximumSegmentSize, &[a, b]) => {
                header.mss = Some(u16::from_be_bytes([a, b]));
            }
            (OptionKind::WindowScale, &[scale]) => header.scale = Some(scale),
            (OptionKind::Timestamp, _) => {
                header.timestamp = option.timestamp().map(|it| (it.value, it.echo));
            }
            _ => {}
        }
    }
    Some(header)
}

/// Returns the options, in the order and with the padding that Linux uses.
fn options(header: &Header) -> Vec<u8> {
    let mss = header.mss.map(maximum_segment_size_option);
    let timestamp =
        header.timestamp.map(|(value, echo)| timestamp_option(Timestamp { value, echo }));
    let scale = header.scale.map(|scale| [1, 3, 3, scale]);
    [
        mss.as_slice().as_flattened(),
        timestamp.as_slice().as_flattened(),
        scale.as_slice().as_flattened(),
    ]
    .concat()
}

pub(super) const TCP_BYTES: usize = 20;
/// Length of a timestamp with its padding, in bytes.
pub(super) const TIMESTAMP_BYTES: usize = 12;

#[cfg(test)]
mod tests {
    use rxo::wire::checksum::verify_transport;

    use super::*;

    fn ends() -> Ends {
        Ends {
            local: ([2; 6], Ipv4Addr::new(10, 0, 0, 1), 40_000),
            remote: ([4; 6], Ipv4Addr::new(10, 0, 0, 2), 443),
        }
    }

    fn turned(ends: Ends) -> Ends {
        Ends { local: ends.remote, remote: ends.local }
    }

    #[test]
    fn what_is_written_is_read_at_the_other_end() {
        let timestamp = Some((7, u32::MAX));
        let plain =
            Header { seq: 1, ack: 2, flags: ACK, window: 3, timestamp, ..Header::default() };
        let syn = Header { flags: SYN, mss: Some(1_460), scale: Some(9), ..plain };
        for header in [plain, syn, Header { timestamp: None, ..plain }] {
            let mut frame = Vec::new();
            write(&mut frame, &ends(), &header, b"payload").unwrap();
            assert_eq!(read(&frame, &turned(ends())), Some(header));
            assert_eq!(read(&frame, &ends()), None, "not the other direction");
            let parsed = parse(&frame).unwrap();
            assert!(verify_transport(&parsed, &frame, Summer::detect()));
        }
    }

    #[test]
    fn what_is_cut_anywhere_or_changed_anywhere_is_read_without_a_panic() {
        let mut frame = Vec::new();
        let header = Header {
            flags: SYN,
            mss: Some(1),
            scale: Some(2),
            timestamp: Some((3, 4)),
            ..Header::default()
        };
        write(&mut frame, &ends(), &header, &[]).unwrap();
        for at in 0..frame.len() {
            read(&frame[..at], &turned(ends()));
            for value in [0, 1, 0x7f, 0xff] {
                let mut changed = frame.clone();
                changed[at] = value;
                read(&changed, &turned(ends()));
            }
        }
    }
}
