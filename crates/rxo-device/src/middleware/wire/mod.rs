//! Converts frames to the form in which a network carries them.
//!
//! A local sender leaves checksums and segmentation to the device. [`WireSource`] does this work of the device:
//! it segments GSO frames, completes partial checksums, can expand ACK templates, and can validate complete
//! checksums, as a network card does on reception.
//!
//! Separate from the impaired network, which segments GSO frames too, but leaves checksums and ACK templates
//! unchanged.
//!
//! Contract: the order is kept. A frame that needs no change is passed on in its own buffer; any other is
//! copied once. A GSO frame that cannot be segmented here (unreadable headers) passes unchanged. Between two
//! calls at most the segments of one batch are stored.

#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use rxo_frame::{ChecksumStatus, Frame, GsoKind, Instant, LinkKind};
use rxo_wire::checksum::{Summer, complete, verify_transport};
use rxo_wire::segmentation::Checksums;
use rxo_wire::{Parsed, Transport, parse, parse_ip};

use super::cut::cut;
use crate::{DeviceError, FrameSource, SourceCapabilities, SourceCounters};

/// A source whose frames have the form of a network.
///
/// A changed frame is a copy in the buffer type of the wrapped source, so the code that handles the source's
/// frames is compiled only once.
#[derive(Debug)]
pub struct WireSource<S: FrameSource> {
    source: S,
    link: LinkKind,
    validates: bool,
    expand: Option<Expand>,
    summer: Summer,
    batch: Vec<Frame<S::Buffer>>,
    ready: VecDeque<Frame<S::Buffer>>,
    given: SourceCounters,
    wire: WireCounters,
    /// The error that the source has returned. It is passed on after all frames that the source delivered
    /// before it; `None` if there is no error to pass on.
    failure: Option<DeviceError>,
}

/// A function that expands an ACK template, such as `rxo_ack::expand_packed`: calls its last argument with each
/// ACK, and returns the number of ACKs. If the frame is not an ACK template, returns `None` without a call.
pub type Expand = fn(Frame<&[u8]>, LinkKind, &mut dyn FnMut(Frame<&[u8]>)) -> Option<usize>;

rxo_frame::counters! {
    /// Counters of a [`WireSource`] since its creation.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct WireCounters {
        /// The number of GSO frames that were segmented.
        pub segmented: u64,
        /// The number of ACKs that resulted from expanded ACK templates.
        pub expanded: u64,
        /// The number of checksums of single frames that were completed. The checksums of segments are not
        /// counted.
        pub completed: u64,
        /// The number of checksums that were validated and are right.
        pub valid: u64,
        /// The number of ACK templates that were discarded: they are malformed, or no function was set to
        /// expand them.
        pub not_expanded: u64,
        /// The number of single frames whose checksum was validated and is wrong. They pass with the status
        /// `Unknown`.
        pub invalid: u64,
    }
}

impl<S: FrameSource<Buffer: From<Vec<u8>>>> WireSource<S> {
    /// Wraps `source`. With `validates`, each TCP segment and UDP datagram whose checksum is right or was
    /// completed here is `Verified`; without it, the status of all frames is `Unknown`.
    pub fn new(source: S, validates: bool) -> Self {
        let link = source.capabilities().link;
        Self {
            source,
            link,
            validates,
            expand: None,
            summer: Summer::detect(),
            batch: Vec::new(),
            ready: VecDeque::new(),
            given: SourceCounters::default(),
            wire: WireCounters::default(),
            failure: None,
        }
    }

    /// Returns the wrapped source.
    pub const fn inner(&self) -> &S {
        &self.source
    }

    /// Returns the wrapped source, to change its settings.
    pub const fn inner_mut(&mut self) -> &mut S {
        &mut self.source
    }

    /// Sets the function that expands ACK templates. Without one they are discarded.
    #[must_use]
    pub const fn expanding(mut self, expand: Expand) -> Self {
        self.expand = Some(expand);
        self
    }

    fn carry(&mut self, frame: Frame<S::Buffer>) {
        if frame.gso.is_some_and(|gso| gso.kind == GsoKind::AckTemplate) {
            self.expand(frame.borrowed());
            return;
        }
        if frame.gso.is_some() {
            if self.segment(frame.borrowed()) {
                self.wire.segmented += 1;
                return;
            }
        } else if let ChecksumStatus::Partial { start, offset } = frame.checksum {
            self.complete(&frame, (start.into(), offset.into()));
            return;
        }
        let checksum = self.validated(frame.borrowed());
        self.ready.push_back(Frame { checksum, ..frame });
    }

    fn expand(&mut self, frame: Frame<&[u8]>) {
        let (link, expand) = (self.link, self.expand);
        let mut give = |ack: Frame<&[u8]>| match ack.checksum {
            ChecksumStatus::Partial { start, offset } => {
                self.complete(&ack, (start.into(), offset.into()));
            }
            _ => self.ready.push_back(ack.with_bytes(ack.bytes.to_vec().into())),
        };
        match expand.and_then(|expand| expand(frame, link, &mut give)) {
            Some(count) => self.wire.expanded += count as u64,
            None => self.wire.not_expanded += 1,
        }
    }

    /// Queues the segments of `frame`. Returns `false` and queues nothing if it cannot be segmented here.
    fn segment(&mut self, frame: Frame<&[u8]>) -> bool {
        let checksum = self.status(true);
        let (ready, checksums) = (&mut self.ready, Checksums::Complete(self.summer));
        cut(frame, self.link, checksums, |part| {
            ready.push_back(Frame { checksum, ..part.with_bytes(part.bytes.to_vec().into()) });
        })
    }

    /// Completes a partial checksum. If its offsets are outside the frame, which is a mistake of the sender,
    /// the frame passes unchanged.
    fn complete<B: AsRef<[u8]>>(&mut self, frame: &Frame<B>, (start, offset): (usize, usize)) {
        let mut bytes = frame.bytes().to_vec();
        let sum = complete(&bytes, start, offset, self.summer);
        if let Some((sum, field)) = sum.zip(bytes.get_mut(start + offset..start + offset + 2)) {
            field.copy_from_slice(&sum.to_be_bytes());
            self.wire.completed += 1;
        }
        let checksum = self.status(sum.is_some());
        self.ready.push_back(Frame { checksum, ..frame.with_bytes(bytes.into()) });
    }

    /// Returns the status that `frame` gets. Validates its checksum and counts the result, unless the source
    /// has verified the checksum. A GSO frame keeps its status; without validation, and for packets other than
    /// TCP and UDP, the status is `Unknown`.
    fn validated(&mut self, frame: Frame<&[u8]>) -> ChecksumStatus {
        if frame.gso.is_some() {
            return frame.checksum;
        }
        let parsed = self.link.read(frame.bytes, parse, parse_ip);
        let has_checksum =
            |it: &Parsed| matches!(it.transport, Transport::Tcp(_) | Transport::Udp(_));
        let Some(parsed) = parsed.ok().filter(has_checksum).filter(|_| self.validates) else {
            return ChecksumStatus::Unknown;
        };
        let is_valid = frame.checksum == ChecksumStatus::Verified
            || verify_transport(&parsed, frame.bytes, self.summer);
        self.wire.valid += u64::from(is_valid);
        self.wire.invalid += u64::from(!is_valid);
        self.status(is_valid)
    }

    const fn status(&self, is_valid: bool) -> ChecksumStatus {
        if self.validates && is_valid { ChecksumStatus::Verified } else { ChecksumStatus::Unknown }
    }
}

impl<S: FrameSource<Buffer: From<Vec<u8>>>> FrameSource for WireSource<S> {
    type Buffer = S::Buffer;

    fn capabilities(&self) -> SourceCapabilities {
        SourceCapabilities { gives_gso: false, ..self.source.capabilities() }
    }

    fn receive(
        &mut self,
        batch: &mut Vec<Frame<Self::Buffer>>,
        budget: usize,
    ) -> Result<usize, DeviceError> {
        if self.ready.len() < budget && self.failure.is_none() {
            let mut taken = std::mem::take(&mut self.batch);
            let most = budget - self.ready.len();
            self.failure = self.source.receive(&mut taken, most).err();
            taken.drain(..).for_each(|frame| self.carry(frame));
            self.batch = taken;
        } else {
            self.source.attend();
        }
        let given = budget.min(self.ready.len());
        for frame in self.ready.drain(..given) {
            self.given.frames += 1;
            self.given.bytes += frame.bytes().len() as u64;
            batch.push(frame);
        }
        match self.failure.take_if(|_| given == 0) {
            Some(failure) => Err(failure),
            None => Ok(given),
        }
    }

    fn counters(&mut self) -> SourceCounters {
        let SourceCounters { frames, bytes, .. } = self.given;
        SourceCounters { frames, bytes, wire: self.wire, ..self.source.counters() }
    }

    fn lends(&self) -> Option<usize> {
        self.source.lends()
    }

    fn queue_frames(&self) -> Option<usize> {
        self.source.queue_frames()
    }

    fn expect_holds(&mut self) {
        self.source.expect_holds();
    }

    fn peers_gone(&self) -> u64 {
        self.source.peers_gone()
    }

    fn attend(&mut self) {
        self.source.attend();
    }

    fn is_starved(&self) -> bool {
        self.ready.is_empty() && self.source.is_starved()
    }

    /// Returns a time in the past while converted frames are queued; otherwise the result of the wrapped source.
    fn poll_at(&self) -> Option<Instant> {
        if self.ready.is_empty() && self.failure.is_none() {
            self.source.poll_at()
        } else {
            Some(Instant::ZERO)
        }
    }
}

#[cfg(unix)]
impl<S: FrameSource + crate::Descriptors> crate::Descriptors for WireSource<S> {
    fn visit_descriptors<'f>(&'f self, visit: &mut dyn FnMut(std::os::fd::BorrowedFd<'f>)) {
        self.source.visit_descriptors(visit);
    }
}
