//! The configuration of a queue: its addresses in guest memory and the negotiated features.

use std::fmt;

use crate::memory::{Memory, Words};

/// The layout of a queue's ring: split or packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Layout {
    /// Split ring: descriptor table, available ring and used ring (section 2.7).
    Split,
    /// Packed ring: one ring of descriptors that both sides write (section 2.8, `VIRTIO_F_RING_PACKED`).
    Packed,
}

/// The configuration of one queue. All addresses are guest physical addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueConfig {
    /// The layout of the queue's ring: split or packed.
    pub layout: Layout,
    /// The number of descriptors in the queue: 1 to 32,768; for a split ring a power of two.
    pub size: u16,
    /// The address of the descriptor area: 16 bytes per descriptor, aligned to 16.
    pub descriptors: u64,
    /// The address of the driver area: the available ring, aligned to 2 (split), or the driver's event
    /// suppression, aligned to 4 (packed).
    pub driver: u64,
    /// The address of the device area: the used ring (split) or the device's event suppression (packed),
    /// aligned to 4.
    pub device: u64,
    /// `true` if the event index (`VIRTIO_F_EVENT_IDX`) was negotiated.
    pub event_index: bool,
    /// `true` if indirect descriptors (`VIRTIO_F_INDIRECT_DESC`) were negotiated.
    pub indirect: bool,
}

/// The memory for a driver's indirect tables: one table of `entries` descriptors per descriptor of the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndirectTables {
    /// The guest address of the tables, aligned to 16. They need [`IndirectTables::bytes`] bytes.
    pub address: u64,
    /// The maximum number of segments in a chain that uses a table, which is the number of descriptors in a table.
    pub entries: u16,
}

impl IndirectTables {
    /// Returns the length of the tables for a queue of `size` descriptors, in bytes.
    #[must_use]
    pub const fn bytes(self, size: u16) -> usize {
        size as usize * self.entries as usize * DESCRIPTOR_BYTES
    }
}

/// The maximum number of descriptors in a queue (VIRTIO 1.2, sections 2.7 and 2.8).
pub(crate) const MOST_DESCRIPTORS: u16 = 32_768;
pub(crate) const DESCRIPTOR_BYTES: usize = 16;

impl QueueConfig {
    /// Creates the configuration of a queue of `size` descriptors whose three areas follow one another,
    /// starting at `start`, which must be aligned to 16. The areas need [`QueueConfig::bytes`] bytes. No
    /// features are negotiated.
    #[must_use]
    pub const fn contiguous(layout: Layout, size: u16, start: u64) -> Self {
        let driver = start + (size as usize * DESCRIPTOR_BYTES) as u64;
        let device = (driver + driver_bytes(layout, size) as u64).next_multiple_of(4);
        Self {
            layout,
            size,
            descriptors: start,
            driver,
            device,
            event_index: false,
            indirect: false,
        }
    }

    /// Returns the length of a queue with consecutive areas, in bytes.
    #[must_use]
    pub const fn bytes(layout: Layout, size: u16) -> usize {
        let first = size as usize * DESCRIPTOR_BYTES + driver_bytes(layout, size);
        first.next_multiple_of(4) + device_bytes(layout, size)
    }

    /// Validates the size and the alignment, and returns the three areas of the queue as parts of `memory`.
    pub(crate) fn areas(&self, memory: &Memory) -> Result<Areas, ConfigError> {
        let (layout, size) = (self.layout, self.size);
        let is_size = match layout {
            Layout::Split => size.is_power_of_two(),
            Layout::Packed => size > 0,
        };
        if !is_size || size > MOST_DESCRIPTORS {
            return Err(ConfigError::Size { layout, size });
        }
        let find = |area, address, bytes, alignment| {
            let words = memory.words(address, bytes, alignment);
            words.ok_or(ConfigError::Area { area, address, bytes })
        };
        let descriptors_bytes = usize::from(size) * DESCRIPTOR_BYTES;
        let driver_alignment = match layout {
            Layout::Split => 2,
            Layout::Packed => 4,
        };
        let driver_bytes = driver_bytes(layout, size);
        Ok(Areas {
            descriptors: find(Area::Descriptors, self.descriptors, descriptors_bytes, 16)?,
            driver: find(Area::Driver, self.driver, driver_bytes, driver_alignment)?,
            device: find(Area::Device, self.device, device_bytes(layout, size), 4)?,
        })
    }
}

/// Returns the length of the driver area, in bytes. It always includes the field of the event index.
const fn driver_bytes(layout: Layout, size: u16) -> usize {
    match layout {
        Layout::Split => 6 + 2 * size as usize,
        Layout::Packed => 4,
    }
}

const fn device_bytes(layout: Layout, size: u16) -> usize {
    match layout {
        Layout::Split => 6 + 8 * size as usize,
        Layout::Packed => 4,
    }
}

/// The three areas of a queue, located in memory.
#[derive(Debug)]
pub(crate) struct Areas {
    pub(crate) descriptors: Words,
    pub(crate) driver: Words,
    pub(crate) device: Words,
}

/// One of the areas of memory that a queue uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Area {
    /// The descriptor area: the table of a split ring, or the ring of descriptors.
    Descriptors,
    /// The driver area: the available ring, or the driver's event suppression.
    Driver,
    /// The device area: the used ring, or the device's event suppression.
    Device,
    /// The driver's tables for indirect descriptors.
    Tables,
}

/// The reason for which a queue cannot be created: a fault of the side that chose its addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConfigError {
    /// The size of the queue is zero, too large, or for a split ring not a power of two.
    Size {
        /// The layout of the queue's ring.
        layout: Layout,
        /// The requested size, in descriptors.
        size: u16,
    },
    /// An area of the queue is not inside one region, or is not aligned.
    Area {
        /// The area that is refused.
        area: Area,
        /// The guest address of the area.
        address: u64,
        /// The length of the area, in bytes.
        bytes: usize,
    },
    /// The base, the position at which the device is to continue, is not a position in the ring of the queue.
    Base {
        /// The invalid base, in the form of `VHOST_USER_SET_VRING_BASE`.
        base: u32,
    },
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Size { layout: Layout::Split, size } => {
                write!(f, "a split queue of {size} descriptors: needs a power of two to 32768")
            }
            Self::Size { layout: Layout::Packed, size } => {
                write!(f, "a packed queue of {size} descriptors: needs 1 to 32768")
            }
            Self::Area { area, address, bytes } => {
                let area = match area {
                    Area::Descriptors => "descriptor area",
                    Area::Driver => "driver area",
                    Area::Device => "device area",
                    Area::Tables => "area of indirect tables",
                };
                write!(f, "{area} of {bytes} bytes at {address:#x}: unaligned or not in one region")
            }
            Self::Base { base } => write!(f, "queue base {base:#x} is not a position in the ring"),
        }
    }
}

impl std::error::Error for ConfigError {}
