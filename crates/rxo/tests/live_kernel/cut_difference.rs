//! The written list of differences in segmentation, and the conditions under which each explains a result.

use rxo_frame::{Frame, Instant, LinkKind};
use rxo_testkit::naive::{Reading, read};
use rxo_wire::{Transport, parse};

use crate::burst::show;
use crate::whole::{Whole, network_at};

/// A reason why the kernel and rxo segment a GSO frame differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Difference {
    /// The kernel does not segment a GSO frame with at most one segment: it sends the frame unchanged, and
    /// completes its checksum only where the header says so. rxo makes one segment with lengths and checksums
    /// of its own, or refuses the frame.
    OneSegment,
    /// The kernel takes at most 128 datagrams in a GSO frame.
    ManyDatagrams,
    /// The kernel refuses a header whose length of headers is longer than the frame, or shorter than an
    /// Ethernet header; rxo does not use that length.
    HeaderLength,
    /// rxo refuses to segment packets with extension headers that cover the whole packet or name other
    /// addresses.
    OddExtensions,
    /// rxo does not fragment datagrams (`GSO_UDP`); the kernel does.
    Fragmentation,
    /// rxo leaves out the bytes after the IP packet; the kernel takes them for payload.
    Trailing,
    /// rxo refuses a packet that is shorter than its IP header says; the kernel corrects the length.
    CutShort,
    /// The kernel refuses a segment size of 65,535, a value with a special meaning inside the kernel.
    LargestSize,
    /// The kernel refuses a UDP GSO frame whose checksum is not partial, or whose header has the ECN bit.
    OddDatagrams,
    /// rxo computes all checksums anew. The kernel continues the value in the field, so that its checksums
    /// are wrong if that value is not the sum of the pseudo-header.
    Seed,
    /// rxo refuses to segment a fragment; the kernel makes segments with the fragment fields of the original.
    Fragments,
    /// rxo refuses a datagram whose UDP length does not match its packet; the kernel writes the right length.
    DatagramLength,
    /// The kernel requires at least 20 bytes before the position where a checksum starts.
    EarlyChecksum,
    /// rxo refuses a packet whose IP version differs from its link header; the kernel does not check.
    Version,
}

impl Difference {
    pub(crate) const ALL: [Self; 14] = [
        // The first entries explain part of the cases of the entries after them.
        Self::Version,
        Self::LargestSize,
        Self::OneSegment,
        Self::ManyDatagrams,
        Self::HeaderLength,
        Self::OddExtensions,
        Self::Fragmentation,
        Self::Trailing,
        Self::CutShort,
        Self::OddDatagrams,
        Self::Seed,
        Self::Fragments,
        Self::DatagramLength,
        Self::EarlyChecksum,
    ];

    /// `true` if the difference explains the two results of segmenting `whole`.
    fn explains(self, whole: &Whole, kernel: Option<&[Vec<u8>]>, rxo: &Cut) -> bool {
        let is_dropped = kernel.is_none_or(<[_]>::is_empty);
        match self {
            Self::OneSegment | Self::Trailing | Self::Seed => self.changes(whole, kernel, rxo),
            Self::LargestSize
            | Self::ManyDatagrams
            | Self::HeaderLength
            | Self::OddDatagrams
            | Self::EarlyChecksum => kernel.is_none() && rxo.is_ok() && self.is_for_kernel(whole),
            _ => !is_dropped && rxo.as_ref().is_err_and(|why| self.is_for_rxo(whole, why)),
        }
    }

    /// `true` if kernel and rxo may send different frames because of this difference.
    fn changes(self, whole: &Whole, kernel: Option<&[Vec<u8>]>, rxo: &Cut) -> bool {
        let said = Said::of(whole);
        let is_dropped = kernel.is_none_or(<[_]>::is_empty);
        let is_as_it_was = kernel.is_some_and(|kernel| kernel.len() == 1);
        let are_right = rxo.as_ref().is_ok_and(|rxo| rxo.iter().all(|frame| is_right(frame)));
        match self {
            Self::OneSegment => {
                let for_kernel = said.payload_bytes(whole) <= said.size.into();
                let is_one = parse(&whole.bytes)
                    .is_ok_and(|parsed| parsed.payload_bytes() <= u32::from(said.size));
                let is_one_of_rxo = rxo.as_ref().map_or(true, |rxo| rxo.len() == 1 && are_right);
                said.is_gso()
                    && is_one_of_rxo
                    && (for_kernel && is_as_it_was || is_one && is_dropped)
            }
            Self::Trailing => {
                let is_padded = ip_bytes(whole) < whole.bytes.len();
                let mut whole = whole.clone();
                whole.bytes.truncate(ip_bytes(&whole));
                is_padded && !is_dropped && whole.frames().ok() == rxo.as_ref().ok().cloned()
            }
            _ => {
                let plain = |frames: &[Vec<u8>]| -> Vec<Vec<u8>> {
                    frames.iter().map(|frame| said.without_checksum(frame)).collect()
                };
                let (Ok(rxo), Some(kernel)) = (rxo, kernel) else { return false };
                said.needs_checksum() && are_right && plain(rxo) == plain(kernel)
            }
        }
    }

    /// `true` if this difference makes the kernel refuse the header.
    fn is_for_kernel(self, whole: &Whole) -> bool {
        let said = Said::of(whole);
        match self {
            Self::LargestSize => said.size == u16::MAX,
            Self::ManyDatagrams => {
                said.kind == 5 && said.payload_bytes(whole) > 128 * usize::from(said.size)
            }
            Self::HeaderLength => {
                let header_bytes = usize::from(said.header_bytes);
                header_bytes != 0 && !(14..=whole.bytes.len()).contains(&header_bytes)
            }
            Self::OddDatagrams => {
                said.kind == 5 && (!said.needs_checksum() || whole.header[1] & 0x80 != 0)
            }
            _ => !said.is_gso() && said.needs_checksum() && said.start < 20,
        }
    }

    /// `true` if this difference makes rxo refuse the frame with the reason `why`.
    fn is_for_rxo(self, whole: &Whole, why: &str) -> bool {
        let said = Said::of(whole);
        let network = network_at(&whole.bytes);
        match self {
            Self::OddExtensions => why.contains("Extensions"),
            Self::Fragmentation => said.kind == 3,
            Self::CutShort => ip_bytes(whole) > whole.bytes.len(),
            Self::Fragments => is_fragment(whole),
            Self::DatagramLength => {
                let start = usize::from(said.start);
                let length = whole.bytes.get(start + 4..start + 6);
                let length = length.map_or(0, |it| u16::from_be_bytes([it[0], it[1]]));
                said.kind == 5 && usize::from(length) != ip_bytes(whole).saturating_sub(start)
            }
            _ => {
                let version = if whole.bytes[network - 2] == 0x86 { 6 } else { 4 };
                whole.bytes[network] >> 4 != version
            }
        }
    }
}

/// Returns the length of the frame according to its IP header, or its actual length if it has no IP header.
pub(crate) fn ip_bytes(whole: &Whole) -> usize {
    let network = network_at(&whole.bytes);
    let half = |at: usize| usize::from(u16::from_be_bytes([whole.bytes[at], whole.bytes[at + 1]]));
    match whole.bytes[network] >> 4 {
        4 => network + half(network + 2),
        6 => network + 40 + half(network + 4),
        _ => whole.bytes.len(),
    }
}

fn is_fragment(whole: &Whole) -> bool {
    let network = network_at(&whole.bytes);
    whole.bytes[network] >> 4 == 4
        && u16::from_be_bytes([whole.bytes[network + 6], whole.bytes[network + 7]]) & 0x3fff != 0
}

/// `true` if the checksums of a frame are right.
fn is_right(frame: &[u8]) -> bool {
    match read(&Frame::new(frame, Instant::ZERO), LinkKind::Ethernet) {
        Reading::Segment(one) | Reading::Datagram(one) => one.checksum_ok && one.ip_checksum_ok,
        _ => false,
    }
}

/// The frames into which rxo segments a frame, or the reason for its refusal.
type Cut = Result<Vec<Vec<u8>>, String>;

/// The fields of a virtio-net header, read without rxo's code.
struct Said {
    flags: u8,
    kind: u8,
    header_bytes: u16,
    size: u16,
    start: u16,
    offset: u16,
}

impl Said {
    fn of(whole: &Whole) -> Self {
        let half = |at: usize| u16::from_ne_bytes([whole.header[at], whole.header[at + 1]]);
        let [flags, kind, ..] = whole.header;
        Self {
            flags,
            kind: kind & 0x7f,
            header_bytes: half(2),
            size: half(4),
            start: half(6),
            offset: half(8),
        }
    }

    fn is_gso(&self) -> bool {
        self.kind != 0
    }

    fn needs_checksum(&self) -> bool {
        self.flags & 1 != 0
    }

    fn without_checksum(&self, frame: &[u8]) -> Vec<u8> {
        let mut frame = frame.to_vec();
        let at = usize::from(self.start) + usize::from(self.offset);
        frame.get_mut(at..at + 2).unwrap_or_default().fill(0);
        frame
    }

    /// Returns the number of bytes that the kernel takes for payload, TCP options included. If the checksum
    /// fields do not give the transport header, the kernel assumes the shortest headers.
    fn payload_bytes(&self, whole: &Whole) -> usize {
        let shortest = if self.kind == 4 { 40 } else { 20 };
        let start = if self.needs_checksum() { self.start } else { shortest };
        let header = if self.kind == 5 { 8 } else { 20 };
        whole.bytes.len().saturating_sub(usize::from(start) + header)
    }
}

/// Returns the difference between the results of kernel and rxo for `whole`, if there is one.
///
/// # Errors
/// Describes a difference that is not on the list, for a person to read.
pub(crate) fn compare(
    whole: &Whole,
    kernel: Option<&[Vec<u8>]>,
) -> Result<Option<Difference>, String> {
    let rxo = whole.frames();
    let is_same = match (&rxo, kernel) {
        (Ok(rxo), Some(kernel)) => rxo == kernel,
        (Err(_), kernel) => kernel.is_none_or(<[_]>::is_empty),
        (Ok(_), None) => false,
    };
    if is_same {
        return Ok(None);
    }
    let found = Difference::ALL.into_iter().find(|one| one.explains(whole, kernel, &rxo));
    found.map(Some).ok_or_else(|| shown(whole, kernel, &rxo))
}

fn shown(whole: &Whole, kernel: Option<&[Vec<u8>]>, rxo: &Cut) -> String {
    let lengths = |frames: &[Vec<u8>]| {
        format!("{:?}", frames.iter().map(Vec::len).take(4).collect::<Vec<_>>())
    };
    let frames = kernel.into_iter().flatten().zip(rxo.iter().flatten());
    let first = frames.into_iter().find(|(kernel, rxo)| kernel != rxo);
    let differ = first.map(|(kernel, rxo)| {
        let bytes = kernel.iter().zip(rxo).enumerate().filter(|(_, (kernel, rxo))| kernel != rxo);
        bytes.take(8).map(|(at, (kernel, rxo))| (at, *kernel, *rxo)).collect::<Vec<_>>()
    });
    format!(
        "{}kernel {} rxo {} first differ at {differ:?}",
        show(std::slice::from_ref(whole)),
        kernel.map_or("refuses".into(), lengths),
        rxo.as_ref().map_or_else(Clone::clone, |rxo| lengths(rxo)),
    )
}

/// Returns the offset of the checksum of a TCP segment or UDP datagram.
pub(crate) fn place_of_checksum(frame: &[u8]) -> usize {
    let transport = parse(frame).map_or(0, |parsed| parsed.at.transport as usize);
    let is_tcp = parse(frame).is_ok_and(|parsed| matches!(parsed.transport, Transport::Tcp(_)));
    transport + if is_tcp { 16 } else { 6 }
}
