//! Writes and parses the frames of one TCP connection over IPv4 and Ethernet.

use std::net::Ipv4Addr;

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
pub(super) fn write(out: &mut Vec<u8>, ends: &Ends, header: &Header, payload: &[u8]) {
    let options = options(header);
    let tcp_bytes = TCP_BYTES + options.len();
    let total = (IP_BYTES + tcp_bytes + payload.len()) as u16;
    out.clear();
    out.extend(ends.remote.0);
    out.extend(ends.local.0);
    out.extend([0x08, 0x00, 0x45, 0x00]);
    out.extend(total.to_be_bytes());
    // ID 0 with DF (RFC 6864), TTL 64, TCP, and a placeholder for the checksum.
    out.extend([0, 0, 0x40, 0, 64, TCP, 0, 0]);
    out.extend(ends.local.1.octets());
    out.extend(ends.remote.1.octets());
    let checksum = !fold(sum(&out[ETHERNET_BYTES..]));
    out[ETHERNET_BYTES + 10..ETHERNET_BYTES + 12].copy_from_slice(&checksum.to_be_bytes());
    out.extend(ends.local.2.to_be_bytes());
    out.extend(ends.remote.2.to_be_bytes());
    out.extend(header.seq.to_be_bytes());
    out.extend(header.ack.to_be_bytes());
    out.extend([(tcp_bytes as u8 / 4) << 4, header.flags]);
    out.extend(header.window.to_be_bytes());
    out.extend([0; 4]);
    out.extend(options);
    out.extend_from_slice(payload);
    let segment = &out[TCP_AT..];
    let addresses = sum_of_addresses(ends);
    let checksum = !fold(sum(segment) + addresses + u64::from(TCP) + segment.len() as u64);
    out[TCP_AT + 16..TCP_AT + 18].copy_from_slice(&checksum.to_be_bytes());
}

/// Parses a frame; `None` if it is truncated or of another connection. Checksums are ignored,
/// because they are partial between two namespaces. Never panics.
pub(super) fn read(frame: &[u8], ends: &Ends) -> Option<Header> {
    let ip = frame.get(ETHERNET_BYTES..)?;
    if frame.get(12..14)? != [0x08, 0x00] || ip.first()? >> 4 != 4 || *ip.get(9)? != TCP {
        return None;
    }
    let tcp = ip.get(usize::from(ip[0] & 15) * 4..)?;
    let fixed: &[u8; TCP_BYTES] = tcp.first_chunk()?;
    let is_ours = ip[12..16] == ends.remote.1.octets()
        && ip[16..20] == ends.local.1.octets()
        && half(fixed, 0) == ends.remote.2
        && half(fixed, 2) == ends.local.2;
    if !is_ours {
        return None;
    }
    let header = Header {
        seq: word(fixed, 4),
        ack: word(fixed, 8),
        flags: fixed[13],
        window: half(fixed, 14),
        ..Header::default()
    };
    Some(with_options(header, tcp.get(TCP_BYTES..usize::from(fixed[12] >> 4) * 4)?))
}

/// Writes the options, in the order and with the padding that Linux uses.
fn options(header: &Header) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(20);
    if let Some(mss) = header.mss {
        bytes.extend([2, 4]);
        bytes.extend(mss.to_be_bytes());
    }
    if let Some((value, echo)) = header.timestamp {
        bytes.extend([1, 1, 8, 10]);
        bytes.extend(value.to_be_bytes());
        bytes.extend(echo.to_be_bytes());
    }
    if let Some(scale) = header.scale {
        bytes.extend([1, 3, 3, scale]);
    }
    bytes
}

fn with_options(mut header: Header, mut options: &[u8]) -> Header {
    while let [kind, rest @ ..] = options {
        match (kind, rest) {
            (0, _) => break,
            (1, _) => options = rest,
            (_, [length, ..]) => {
                let Some((option, after)) = options.split_at_checked(usize::from(*length)) else {
                    break;
                };
                match option {
                    [2, 4, a, b] => header.mss = Some(u16::from_be_bytes([*a, *b])),
                    [3, 3, scale] => header.scale = Some(*scale),
                    [8, 10, rest @ ..] => header.timestamp = timestamp(rest),
                    // An option of length zero would loop for ever.
                    [] => break,
                    _ => {}
                }
                options = after;
            }
            (_, []) => break,
        }
    }
    header
}

fn timestamp(bytes: &[u8]) -> Option<(u32, u32)> {
    bytes.first_chunk::<8>().map(|bytes| (word(bytes, 0), word(bytes, 4)))
}

fn half(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn sum_of_addresses(ends: &Ends) -> u64 {
    sum(&ends.local.1.octets()) + sum(&ends.remote.1.octets())
}

/// Returns the sum of the 16-bit words; an odd last byte is padded with a zero.
fn sum(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<2>();
    let whole: u64 = words.iter().map(|word| u64::from(u16::from_be_bytes(*word))).sum();
    whole + rest.first().map_or(0, |last| u64::from(*last) << 8)
}

fn fold(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

const ETHERNET_BYTES: usize = 14;
const IP_BYTES: usize = 20;
const TCP_AT: usize = ETHERNET_BYTES + IP_BYTES;
pub(super) const TCP_BYTES: usize = 20;
/// Length of a timestamp with its padding, in bytes.
pub(super) const TIMESTAMP_BYTES: usize = 12;
const TCP: u8 = 6;

#[cfg(test)]
mod tests {
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
            write(&mut frame, &ends(), &header, b"payload");
            assert_eq!(read(&frame, &turned(ends())), Some(header));
            assert_eq!(read(&frame, &ends()), None, "not the other direction");
            let (ip, tcp) = (&frame[14..34], &frame[34..]);
            assert_eq!(fold(sum(ip)), 0xffff);
            let pseudo = sum_of_addresses(&ends()) + u64::from(TCP) + tcp.len() as u64;
            assert_eq!(fold(sum(tcp) + pseudo), 0xffff);
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
        write(&mut frame, &ends(), &header, &[]);
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
