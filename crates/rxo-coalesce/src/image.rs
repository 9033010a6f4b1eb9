//! The expected next header, compared in one go.
//!
//! A segment that only continues the last one differs from it in four fields: IP ID, IP checksum,
//! SEQ and TCP checksum. Everything else, from the first link-layer byte to the last option byte,
//! is compared under a mask in twelve words, which compilers turn into vector instructions. The
//! four fields are then checked by themselves. Where this says no, the full rules decide.

use rxo_wire::IpVersion;

use crate::Held;

const WORD: usize = 8;
/// Compared from the frame's start.
const START_BYTES: usize = 64;
/// Compared up to the header's end; overlaps the start.
const END_BYTES: usize = 32;
/// The longest header that both cover.
const MAX_IMAGE_BYTES: usize = START_BYTES + END_BYTES;

/// Where the headers of a flow's segments begin and end; decides the mask.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct Layout {
    network: u32,
    transport: u32,
    header_bytes: u32,
    is_v4: bool,
}

impl Layout {
    #[inline]
    pub(crate) fn of(held: &Held) -> Self {
        Self {
            network: u32::from(held.network),
            transport: u32::from(held.transport),
            header_bytes: u32::from(held.header_bytes),
            is_v4: held.version == IpVersion::V4,
        }
    }

    /// Which of `slots` places keeps this layout's mask.
    #[inline]
    pub(crate) const fn slot(self, slots: usize) -> usize {
        ((self.header_bytes >> 2) ^ self.network) as usize % slots
    }

    /// The bytes that may differ between segments of a run.
    fn varying(self) -> [(usize, usize); 4] {
        let (network, transport) = (self.network as usize, self.transport as usize);
        let v4 = |at: usize| if self.is_v4 { (network + at, 2) } else { (0, 0) };
        [v4(4), v4(10), (transport + 4, 4), (transport + 16, 2)]
    }
}

/// Which bits of a header must be equal.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mask {
    layout: Layout,
    start: [u64; START_BYTES / WORD],
    end: [u64; END_BYTES / WORD],
}

impl Mask {
    pub(crate) const NONE: Self = Self {
        layout: Layout { network: 0, transport: 0, header_bytes: 0, is_v4: false },
        start: [0; START_BYTES / WORD],
        end: [0; END_BYTES / WORD],
    };

    pub(crate) fn new(layout: Layout) -> Self {
        let header = layout.header_bytes as usize;
        let mut bytes = [0u8; MAX_IMAGE_BYTES];
        bytes.iter_mut().take(header).for_each(|byte| *byte = 0xff);
        for (from, length) in layout.varying() {
            bytes.iter_mut().skip(from).take(length).for_each(|byte| *byte = 0);
        }
        let mut end = [0u8; END_BYTES];
        let from = header.saturating_sub(END_BYTES);
        end.iter_mut().zip(bytes.iter().skip(from)).for_each(|(to, byte)| *to = *byte);
        Self { layout, start: words(&bytes), end: words(&end) }
    }

    #[inline]
    pub(crate) fn is_for(&self, layout: Layout) -> bool {
        self.layout == layout
    }
}

/// A header, held ready for comparing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Image {
    start: [u64; START_BYTES / WORD],
    end: [u64; END_BYTES / WORD],
}

impl Image {
    /// The first bytes of a frame whose header is `header_bytes` long; `None` when the frame or
    /// its header does not fit the comparison.
    #[inline]
    pub(crate) fn of(frame: &[u8], header_bytes: u32) -> Option<Self> {
        let header = header_bytes as usize;
        if header > MAX_IMAGE_BYTES {
            return None;
        }
        let start: &[u8; START_BYTES] = frame.first_chunk()?;
        let end: &[u8; END_BYTES] = frame.get(header.checked_sub(END_BYTES)?..)?.first_chunk()?;
        Some(Self { start: words(start), end: words(end) })
    }

    /// Whether both are equal under the mask.
    #[inline]
    pub(crate) fn matches(&self, other: &Self, mask: &Mask) -> bool {
        let mut differing = 0;
        for index in 0..self.start.len() {
            differing |= (self.start[index] ^ other.start[index]) & mask.start[index];
        }
        for index in 0..self.end.len() {
            differing |= (self.end[index] ^ other.end[index]) & mask.end[index];
        }
        differing == 0
    }
}

#[inline]
fn words<const N: usize>(bytes: &[u8]) -> [u64; N] {
    let (chunks, _) = bytes.as_chunks::<WORD>();
    let mut words = [0; N];
    for (word, chunk) in words.iter_mut().zip(chunks) {
        *word = u64::from_ne_bytes(*chunk);
    }
    words
}
