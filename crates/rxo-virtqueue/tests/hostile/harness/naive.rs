//! What a naive reading of the specification finds in a ring: every rule, one after the other, over a
//! copy of the memory.

use rxo_virtqueue::Layout;

use super::Scene;
use super::scene::REGIONS;

/// What the next chain is.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Naive {
    Empty,
    Frame(Vec<u8>),
    Invalid,
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

/// What a device at `base` takes next into `room` bytes.
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

impl View<'_> {
    /// A byte of a ring, which stays where it is even if the region is removed.
    fn ring_byte(&self, at: u64) -> u8 {
        let place = |&(guest, offset, bytes): &(u64, usize, usize)| {
            let inside = at.checked_sub(guest)? as usize;
            (inside < bytes).then(|| self.bytes[offset + inside])
        };
        REGIONS.iter().find_map(place).expect("rings are in a region")
    }

    fn ring_half(&self, at: u64) -> u16 {
        u16::from_le_bytes([self.ring_byte(at), self.ring_byte(at + 1)])
    }

    fn byte(&self, at: u64) -> Option<u8> {
        let is_present =
            REGIONS.iter().zip(self.scene.present).any(|(&(guest, _, bytes), present)| {
                present && at >= guest && at - guest < bytes as u64
            });
        is_present.then(|| self.ring_byte(at))
    }

    fn buffer(&self, at: u64, bytes: u64) -> Option<Vec<u8>> {
        (0..bytes).map(|n| self.byte(at.wrapping_add(n))).collect()
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

    /// `None`: nothing is available; `Some(None)`: what is there is invalid.
    fn split_chain(&self, next: u16) -> Option<Option<Vec<Descriptor>>> {
        let config = &self.scene.config;
        let pending = self.ring_half(config.driver + 2).wrapping_sub(next);
        if pending == 0 {
            return None;
        }
        if pending > config.size {
            return Some(None);
        }
        let head = self.ring_half(config.driver + 4 + u64::from(next % config.size) * 2);
        Some(self.linked(head, config.size, config.size.into(), |index| Some(self.in_ring(index))))
    }

    /// Descriptors linked by `next`, at most `left`, with the table that may end them.
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
                return Some(self.with_table(chain));
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

    /// What the device reads of a chain.
    fn frame(&self, chain: &[Descriptor]) -> Option<Vec<u8>> {
        let is_writable = |descriptor: &&Descriptor| descriptor.flags & 2 != 0;
        let all: u64 = chain.iter().map(|descriptor| descriptor.bytes).sum();
        let readable = chain.iter().take_while(|descriptor| !is_writable(descriptor)).count();
        let is_ordered = chain[readable..].iter().all(|descriptor| is_writable(&descriptor));
        let is_empty = chain.iter().any(|descriptor| descriptor.bytes == 0);
        if all > u64::from(u32::MAX) || !is_ordered || is_empty {
            return None;
        }
        let mut frame = Vec::new();
        for descriptor in &chain[..readable] {
            frame.extend(self.buffer(descriptor.address, descriptor.bytes)?);
        }
        Some(frame)
    }
}
