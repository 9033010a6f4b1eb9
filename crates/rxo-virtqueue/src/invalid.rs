//! The rules that a chain of descriptors can break, with counters for them.

/// A rule of VIRTIO 1.2 that an available chain of descriptors breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum InvalidChain {
    /// The available index decreased, or is ahead of the device's position by more than the queue size. The queue
    /// is unusable until it is created anew.
    AvailableIndex,
    /// The available ring or a `next` field names a descriptor outside the table.
    DescriptorIndex,
    /// The chain has more descriptors than the queue (VIRTIO 1.2, section 2.7.5.3.1), which includes every
    /// chain with a loop. Or the chains of one packet together have more than 4,096 descriptors, which no
    /// driver needs. A packed queue is then unusable, because its next chain cannot be located.
    TooLong,
    /// A descriptor of the chain has length 0 (section 2.7.5).
    ZeroLength,
    /// A buffer of the chain is not inside the memory regions.
    OutsideMemory,
    /// The buffers of the chain together have 2³² bytes or more (section 2.7.5).
    TooManyBytes,
    /// In the chain, a buffer that the device reads follows a buffer that it writes (section 2.7.4.2).
    ReadableAfterWritable,
    /// The chain has an indirect table, but `VIRTIO_F_INDIRECT_DESC` was not negotiated.
    IndirectNotNegotiated,
    /// The length of the indirect table is 0 or not a multiple of 16 (section 2.7.5.3).
    IndirectLength,
    /// The indirect table is not inside the memory regions.
    IndirectOutside,
    /// An indirect table contains another indirect table (section 2.7.5.3.1).
    IndirectNested,
    /// An indirect descriptor is chained: it also has the NEXT flag (section 2.7.5.3.1) or, in a packed ring,
    /// follows another descriptor.
    IndirectChained,
    /// The device needs to read a frame, but the chain has no readable buffer.
    NothingReadable,
    /// The device needs to fill a buffer, but the chain has no writable buffer.
    NothingWritable,
    /// The frame in the chain is larger than the buffer of the caller.
    FrameTooLarge,
}

impl InvalidChain {
    /// All kinds of invalid chains, in the order of the counters.
    pub const ALL: [Self; 15] = [
        Self::AvailableIndex,
        Self::DescriptorIndex,
        Self::TooLong,
        Self::ZeroLength,
        Self::OutsideMemory,
        Self::TooManyBytes,
        Self::ReadableAfterWritable,
        Self::IndirectNotNegotiated,
        Self::IndirectLength,
        Self::IndirectOutside,
        Self::IndirectNested,
        Self::IndirectChained,
        Self::NothingReadable,
        Self::NothingWritable,
        Self::FrameTooLarge,
    ];

    /// Returns the name of this kind's counter, in lower case.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::AvailableIndex => "available-index",
            Self::DescriptorIndex => "descriptor-index",
            Self::TooLong => "too-long",
            Self::ZeroLength => "zero-length",
            Self::OutsideMemory => "outside-memory",
            Self::TooManyBytes => "too-many-bytes",
            Self::ReadableAfterWritable => "readable-after-writable",
            Self::IndirectNotNegotiated => "indirect-not-negotiated",
            Self::IndirectLength => "indirect-length",
            Self::IndirectOutside => "indirect-outside",
            Self::IndirectNested => "indirect-nested",
            Self::IndirectChained => "indirect-chained",
            Self::NothingReadable => "nothing-readable",
            Self::NothingWritable => "nothing-writable",
            Self::FrameTooLarge => "frame-too-large",
        }
    }
}

/// The number of invalid chains of each kind in a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InvalidCounts([u64; InvalidChain::ALL.len()]);

impl InvalidCounts {
    /// Returns the number of invalid chains of `kind`.
    #[must_use]
    pub const fn of(&self, kind: InvalidChain) -> u64 {
        self.0[kind as usize]
    }

    /// Returns the number of invalid chains of all kinds.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    pub(crate) const fn count(&mut self, kind: InvalidChain) {
        self.0[kind as usize] += 1;
    }
}
