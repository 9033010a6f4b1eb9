//! Packets for the tests: frames that contain a number, and packets as several slices.

use std::net::Ipv4Addr;
use std::num::NonZeroU16;

use rxo_frame::{ChecksumStatus, Frame, Gather, Gso, GsoKind, Instant, Offload, VlanTag};

/// An EtherType that no network stack handles.
const EXPERIMENTAL: [u8; 2] = [0x88, 0xb5];

/// Creates a broadcast frame of `bytes` bytes with `number` after its header.
pub(crate) fn numbered(number: u32, bytes: usize) -> Vec<u8> {
    let mut frame = [[0xff; 6], [2, 0, 0, 0, 0, 1]].concat();
    frame.extend(EXPERIMENTAL);
    frame.extend(number.to_be_bytes());
    frame.resize(bytes, 0);
    frame
}

/// Returns the number in a frame that [`numbered`] created.
pub(crate) fn number_of(frame: &[u8]) -> u32 {
    assert_eq!(frame[12..14], EXPERIMENTAL);
    u32::from_be_bytes(frame[14..18].try_into().unwrap())
}

/// Wraps byte strings as frames without GSO and without a checksum status.
pub(crate) fn plain(frames: &[Vec<u8>]) -> impl ExactSizeIterator<Item = Frame<&[u8]>> {
    frames.iter().map(|bytes| Frame::new(&bytes[..], Instant::ZERO))
}

/// Creates the headers of a TCP segment with only the seed in its checksum field: 54 bytes.
pub(crate) fn tcp_header(payload_bytes: usize) -> Vec<u8> {
    let mut frame = [[0xff; 6], [2, 0, 0, 0, 0, 1]].concat();
    frame.extend([0x08, 0x00]);
    let segment_bytes = 20 + payload_bytes;
    let mut ip = vec![0x45, 0];
    ip.extend(((20 + segment_bytes) as u16).to_be_bytes());
    ip.extend([0, 0, 0x40, 0, 64, 6, 0, 0]);
    ip.extend([10, 0, 0, 1, 10, 0, 0, 2]);
    let sum = !folded_sum(&ip);
    ip[10..12].copy_from_slice(&sum.to_be_bytes());
    let pseudo = [&ip[12..20], &[0, 6], &(segment_bytes as u16).to_be_bytes()].concat();
    frame.extend(ip);
    let mut tcp = [0; 20];
    tcp[..4].copy_from_slice(&[0x10, 0, 0x20, 0]);
    tcp[12] = 5 << 4;
    tcp[13] = 0x10;
    tcp[16..18].copy_from_slice(&folded_sum(&pseudo).to_be_bytes());
    frame.extend(tcp);
    frame
}

/// The checksum status that the kernel needs for a segment with the headers of [`tcp_header`].
pub(crate) const TCP_PARTIAL: ChecksumStatus = ChecksumStatus::Partial { start: 34, offset: 16 };

/// Creates a UDP datagram in an IPv4 packet, without a checksum, which IPv4 allows.
pub(crate) fn udp_packet(to: Ipv4Addr, port: u16, payload: &[u8]) -> Vec<u8> {
    let udp_bytes = 8 + payload.len() as u16;
    let mut ip = vec![0x45, 0];
    ip.extend((20 + udp_bytes).to_be_bytes());
    ip.extend([0, 0, 0x40, 0, 64, 17, 0, 0]);
    let mut from = to.octets();
    from[3] ^= 3;
    ip.extend(from);
    ip.extend(to.octets());
    let sum = !folded_sum(&ip);
    ip[10..12].copy_from_slice(&sum.to_be_bytes());
    ip.extend(4_000_u16.to_be_bytes());
    ip.extend(port.to_be_bytes());
    ip.extend(udp_bytes.to_be_bytes());
    ip.extend([0, 0]);
    ip.extend(payload);
    ip
}

/// Creates an Ethernet frame to `mac` with the packet of [`udp_packet`].
pub(crate) fn udp_frame(mac: [u8; 6], to: Ipv4Addr, port: u16, payload: &[u8]) -> Vec<u8> {
    let mut frame = [mac, [2, 0, 0, 0, 0, 1]].concat();
    frame.extend([0x08, 0x00]);
    frame.extend(udp_packet(to, port, payload));
    frame
}

/// Returns the ones' complement sum, folded to 16 bits and not complemented.
pub(crate) fn folded_sum(bytes: &[u8]) -> u16 {
    let words = bytes.chunks(2).map(|w| u64::from(w[0]) << 8 | w.get(1).map_or(0, |&b| b.into()));
    let mut sum: u64 = words.sum();
    while sum > 0xffff {
        sum = (sum >> 16) + (sum & 0xffff);
    }
    sum as u16
}

pub(crate) fn tcp_gso(size: u16) -> Option<Gso> {
    Some(Gso::new(GsoKind::TcpV4, NonZeroU16::new(size).unwrap()))
}

/// A packet as several slices, and the frames that it stands for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pieces {
    pub(crate) slices: Vec<Vec<u8>>,
    pub(crate) offload: Offload,
    pub(crate) vlan: Option<VlanTag>,
    pub(crate) frames: Vec<Vec<u8>>,
}

impl Pieces {
    /// Cuts `bytes` after the first `header_bytes` and then every `piece_bytes`.
    pub(crate) fn cut(bytes: &[u8], header_bytes: usize, piece_bytes: usize) -> Self {
        let (header, payload) = bytes.split_at(header_bytes.min(bytes.len()));
        let mut slices = vec![header.to_vec()];
        slices.extend(payload.chunks(piece_bytes).map(<[u8]>::to_vec));
        Self { slices, ..Self::default() }
    }
}

impl<'a> Gather<'a> for &'a Pieces {
    fn offload(self) -> Offload {
        self.offload
    }

    fn vlan(self) -> Option<VlanTag> {
        self.vlan
    }

    fn byte_len(self) -> usize {
        self.slices.iter().map(Vec::len).sum()
    }

    fn for_each_slice(self, mut visit: impl FnMut(&'a [u8])) {
        self.slices.iter().for_each(|slice| visit(slice));
    }

    fn frame_count(self) -> usize {
        self.frames.len().max(1)
    }

    fn for_each_frame(self, mut visit: impl FnMut(Frame<&'a [u8]>)) {
        self.frames.iter().for_each(|bytes| visit(Frame::new(bytes, Instant::ZERO)));
    }
}
