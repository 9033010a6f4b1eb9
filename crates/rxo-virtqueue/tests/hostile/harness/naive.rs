//! A naive reader of rings: applies every rule of the specification, one after the other, to a copy of the
//! memory.

use rxo_virtqueue::{Fit, Layout};

use super::Scene;
use super::scene::REGIONS;

/// The next chain in a ring.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Naive {
    Empty,
    Frame(Vec<u8>),
    Invalid,
}

/// The expected effect of writing a packet to the next chains.
pub(crate) struct Filled {
    /// The expected bytes of the mapping, without the device's writes to its rings.
    pub(crate) memory: Vec<u8>,
    /// The number of chains that the packet fills.
    pub(crate) buffers: u16,
    /// The position of the chain after the filled chains.
    pub(crate) base: u32,
}

struct Descriptor {
    address: u64,
    bytes: u64,
    flags: u16,
    link: u16,
}

/// A copy of the memory, read byte by byte.
struct View<'a> {
    scene: &'a Scene,
    bytes: Vec<u8>,
}

/// Returns the chain that a device at `base` must take next into a buffer of `room` bytes.
pub(crate) fn next(scene: &Scene, base: u32, room: usize) -> Naive {
    let view = View { scene, bytes: scene.observe() };
    let chain = match scene.config.layout {
        Layout::Split => view.split_chain(base as u16),
        Layout::Packed => view.packed_chain(base),
    };
    let Some(chain) = chain else { return Naive::Empty };
    let frame = chain.and_then(|buffers| view.frame(&buffers));
    match frame {
        Some(frame) if !frame.is_empty() && frame.len() <= room => Naive::Frame(frame),
        _ => Naive::Invalid,
    }
}

/// Returns the expected effect if a device at `base` reserves `reserved` bytes and writes `packet` as far as
/// it fits. `None` if a chain that it needs is invalid.
pub(crate) fn filled(
    scene: &Scene,
    base: u32,
    reserved: usize,
    packet: &[u8],
    fit: Fit,
) -> Option<Filled> {
    let view = View { scene, bytes: scene.observe() };
    let (mut places, mut memory) = (Vec::new(), view.bytes.clone());
    let (mut buffers, mut after, mut next) = (0_u16, base, base);
    loop {
        let (chain, behind) = view.chain_at(next)?;
        if places.len() < packet.len() {
            (buffers, after) = (buffers + 1, behind);
        }
        places.extend(view.writable(&chain)?);
        next = behind;
        if fit == Fit::OneChain || places.len() >= reserved {
            break;
        }
    }
    places.iter().zip(packet).for_each(|(&place, &byte)| memory[place] = byte);
    if let (Fit::Merged { count_at }, Some(written)) = (fit, places.get(..packet.len()))
        && let Some([low, high, ..]) = written.get(count_at as usize..)
    {
        [memory[*low], memory[*high]] = buffers.to_le_bytes();
    }
    (places.len() >= reserved).then_some(Filled { memory, buffers, base: after })
}

impl View<'_> {
    /// Reads a byte of a ring, which stays mapped even if the region is removed.
    fn ring_byte(&self, at: u64) -> u8 {
        self.bytes[place(at).expect("rings are in a region")]
    }

    fn ring_half(&self, at: u64) -> u16 {
        u16::from_le_bytes([self.ring_byte(at), self.ring_byte(at + 1)])
    }

    /// Returns the offset in the mapping of each byte of a buffer; `None` if a byte is outside the regions.
    fn places(&self, at: u64, bytes: u64) -> Option<Vec<usize>> {
        let is_present = |at: u64| {
            REGIONS.iter().zip(self.scene.present).any(|(&(guest, _, bytes), present)| {
                present && at >= guest && at - guest < bytes as u64
            })
        };
        let address = |n| Some(at.wrapping_add(n)).filter(|&at| is_present(at));
        (0..bytes).map(|n| place(address(n)?)).collect()
    }

    fn buffer(&self, at: u64, bytes: u64) -> Option<Vec<u8>> {
        Some(self.places(at, bytes)?.into_iter().map(|place| self.bytes[place]).collect())
    }

    fn descriptor(&self, bytes: &[u8]) -> Descriptor {
        let half = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
        let address = (0..8).rev().fold(0, |value, at| value << 8 | u64::from(bytes[at]));
        let length = (8..12).rev().fold(0, |value, at| value << 8 | u64::from(bytes[at]));
        let (flags, link) = match self.scene.config.layout {
            Layout::Split => (half(12), half(14)),
            Layout::Packed => (half(14), half(12)),
        };
        Descriptor { address, bytes: length, flags, link }
    }

    fn in_ring(&self, index: u16) -> Descriptor {
        let at = self.scene.config.descriptors + u64::from(index) * 16;
        self.descriptor(&(0..16).map(|n| self.ring_byte(at + n)).collect::<Vec<_>>())
    }

    /// Reads the next chain of a split ring. `None`: nothing is available; `Some(None)`: the chain is
    /// invalid.
    fn split_chain(&self, next: u16) -> Option<Option<Vec<Descriptor>>> {
        let config = &self.scene.config;
        let pending = self.ring_half(config.driver + 2).wrapping_sub(next);
        if pending == 0 {
            return None;
        }
        if pending > config.size {
            return Some(None);
        }
        Some(self.split_chain_at(next))
    }

    /// Reads the chain in an entry of the available ring, whether or not the entry is available.
    fn split_chain_at(&self, next: u16) -> Option<Vec<Descriptor>> {
        let config = &self.scene.config;
        let head = self.ring_half(config.driver + 4 + u64::from(next % config.size) * 2);
        self.linked(head, config.size, config.size.into(), |index| Some(self.in_ring(index)))
    }

    /// Reads the chain at `base`, and the position of the next one. Does not check that a split ring's entry
    /// is available, because a device may have read an earlier index.
    fn chain_at(&self, base: u32) -> Option<(Vec<Descriptor>, u32)> {
        if self.scene.config.layout == Layout::Split {
            let next = base as u16;
            return Some((self.split_chain_at(next)?, next.wrapping_add(1).into()));
        }
        let list = self.packed_list(base)??;
        let (end, size) = ((base & 0x7fff) + list.len() as u32, self.scene.config.size.into());
        let wrap = base & 0x8000;
        let after = if end < size { end | wrap } else { (end - size) | (wrap ^ 0x8000) };
        Some((self.with_table(list)?, after))
    }

    /// Follows descriptors linked by `next`, at most `left`, including an indirect table at their end.
    fn linked(
        &self,
        head: u16,
        count: u16,
        left: usize,
        read: impl Fn(u16) -> Option<Descriptor>,
    ) -> Option<Vec<Descriptor>> {
        let (mut chain, mut index) = (Vec::new(), head);
        loop {
            if index >= count || chain.len() == left {
                return None;
            }
            let descriptor = read(index)?;
            if descriptor.flags & 4 != 0 {
                let is_table = self.scene.config.indirect && descriptor.flags & 1 == 0;
                let table =
                    is_table.then(|| self.table(&descriptor, left - chain.len())).flatten()?;
                chain.extend(table);
                return Some(chain);
            }
            let (ends, next) = (descriptor.flags & 1 == 0, descriptor.link);
            chain.push(descriptor);
            if ends {
                return Some(chain);
            }
            index = next;
        }
    }

    fn table(&self, table: &Descriptor, left: usize) -> Option<Vec<Descriptor>> {
        let entries = table.bytes / 16;
        if table.bytes == 0 || !table.bytes.is_multiple_of(16) {
            return None;
        }
        let read = |index: u64| {
            let at = table.address.checked_add(index * 16)?;
            let descriptor = self.descriptor(&self.buffer(at, 16)?);
            (descriptor.flags & 4 == 0).then_some(descriptor)
        };
        match self.scene.config.layout {
            Layout::Split => {
                let count = u16::try_from(entries).unwrap_or(u16::MAX);
                self.linked(0, count, left, |index| read(index.into()))
            }
            Layout::Packed if entries > left as u64 => None,
            Layout::Packed => (0..entries).map(read).collect(),
        }
    }

    fn packed_chain(&self, base: u32) -> Option<Option<Vec<Descriptor>>> {
        Some(self.packed_list(base)?.and_then(|list| self.with_table(list)))
    }

    /// Reads the ring descriptors of a chain in a packed ring.
    fn packed_list(&self, base: u32) -> Option<Option<Vec<Descriptor>>> {
        let size = self.scene.config.size;
        let (mut index, wrap) = ((base & 0x7fff) as u16, base & 0x8000 != 0);
        let first = self.in_ring(index);
        let (available, used) = (first.flags & 0x80 != 0, first.flags & 0x8000 != 0);
        if available != wrap || used == wrap {
            return None;
        }
        let mut chain = Vec::new();
        for _ in 0..size {
            let descriptor = self.in_ring(index);
            let ends = descriptor.flags & 1 == 0;
            chain.push(descriptor);
            if ends {
                return Some(Some(chain));
            }
            index = (index + 1) % size;
        }
        Some(None)
    }

    fn with_table(&self, chain: Vec<Descriptor>) -> Option<Vec<Descriptor>> {
        if chain.iter().all(|descriptor| descriptor.flags & 4 == 0) {
            return Some(chain);
        }
        let alone = self.scene.config.indirect && chain.len() == 1;
        alone.then(|| self.table(&chain[0], self.scene.config.size.into())).flatten()
    }

    /// Returns the bytes that the device must read from a chain.
    fn frame(&self, chain: &[Descriptor]) -> Option<Vec<u8>> {
        let (readable, _) = parts(chain)?;
        let buffers = readable.iter().map(|buffer| self.buffer(buffer.address, buffer.bytes));
        Some(buffers.collect::<Option<Vec<_>>>()?.concat())
    }

    /// Returns the offset in the mapping of each byte of a chain that the device may write.
    fn writable(&self, chain: &[Descriptor]) -> Option<Vec<usize>> {
        let (_, writable) = parts(chain)?;
        let buffers = writable.iter().map(|buffer| self.places(buffer.address, buffer.bytes));
        Some(buffers.collect::<Option<Vec<_>>>()?.concat())
    }
}

/// Returns the readable part of a chain, and the writable part.
fn parts(chain: &[Descriptor]) -> Option<(&[Descriptor], &[Descriptor])> {
    let is_writable = |descriptor: &Descriptor| descriptor.flags & 2 != 0;
    let all: u64 = chain.iter().map(|descriptor| descriptor.bytes).sum();
    let readable = chain.iter().take_while(|descriptor| !is_writable(descriptor)).count();
    let (readable, writable) = chain.split_at(readable);
    let is_empty = chain.iter().any(|descriptor| descriptor.bytes == 0);
    let is_valid = all <= u64::from(u32::MAX) && writable.iter().all(is_writable) && !is_empty;
    is_valid.then_some((readable, writable))
}

/// Converts a guest address to an offset in the mapping.
fn place(at: u64) -> Option<usize> {
    REGIONS.iter().find_map(|&(guest, offset, bytes)| {
        let inside = usize::try_from(at.checked_sub(guest)?).ok()?;
        (inside < bytes).then_some(offset + inside)
    })
}
