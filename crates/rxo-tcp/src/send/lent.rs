//! Data that the application has lent without a copy, and its position among the copied data.

use alloc::collections::VecDeque;

use rxo_frame::SharedBytes;

use super::buffer::Place;

/// The parts of the send buffer's data that are not copied, in order. An index counts from the first byte of
/// the send buffer, so it changes when acknowledged bytes are removed. A position in the stream does not
/// change; it wraps around.
#[derive(Default)]
pub(super) struct Lent {
    parts: VecDeque<Part>,
    /// The length of all lent parts together, in bytes.
    bytes: u32,
    /// The stream position of the send buffer's first byte; meaningless while there is no lent part.
    start: u32,
}

/// A lent part, which is never empty.
struct Part {
    text: SharedBytes,
    /// The stream position of the lent part's first byte.
    at: u32,
    /// The total length in bytes of all parts lent before this part, including parts already dropped.
    before: u32,
}

impl Part {
    fn len(&self) -> u32 {
        self.text.len() as u32
    }

    /// Returns the stream position after the part's last byte.
    fn end(&self) -> u32 {
        self.at.wrapping_add(self.len())
    }
}

impl Lent {
    pub(super) fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// Frees the memory if there are no lent parts.
    pub(super) fn free_unused(&mut self) {
        if self.parts.is_empty() {
            self.parts = VecDeque::new();
        }
    }

    /// Returns the length of all lent parts together, in bytes.
    pub(super) fn bytes(&self) -> u32 {
        self.bytes
    }

    /// Returns `true` if `text` would extend the last part. `copied` is the number of copied bytes in the
    /// send buffer.
    pub(super) fn is_continued_by(&self, text: &SharedBytes, copied: u32) -> bool {
        let at = self.end(copied);
        self.parts.back().is_some_and(|last| last.end() == at && last.text.is_followed_by(text))
    }

    /// Appends `text`, which must not be empty, to the send buffer. `copied` is the number of copied bytes in
    /// the send buffer.
    pub(super) fn push(&mut self, text: SharedBytes, copied: u32) {
        let (at, bytes) = (self.end(copied), text.len() as u32);
        let joined = match self.parts.back_mut() {
            Some(last) if last.end() == at => last.text.join(text),
            _ => Err(text),
        };
        if let Err(text) = joined {
            let before = self.parts.back().map_or(0, |last| last.before.wrapping_add(last.len()));
            self.parts.push_back(Part { text, at, before });
        }
        self.bytes += bytes;
    }

    /// Returns the stream position after the last byte in the send buffer.
    fn end(&self, copied: u32) -> u32 {
        self.start.wrapping_add(copied).wrapping_add(self.bytes)
    }

    /// Removes the first `bytes` bytes of the send buffer from the lent parts. Returns the number of these
    /// bytes that are not lent: copied bytes, and bytes beyond the end.
    pub(super) fn advance(&mut self, bytes: u32) -> u32 {
        let (mut left, mut from_copied) = (bytes, 0);
        while let Some(part) = self.parts.front_mut().filter(|_| left > 0) {
            let before = part.at.wrapping_sub(self.start).min(left);
            let taken = part.len().min(left - before);
            self.start = self.start.wrapping_add(before + taken);
            self.bytes -= taken;
            (left, from_copied) = (left - before - taken, from_copied + before);
            if taken == part.len() {
                self.parts.pop_front();
            } else {
                part.text.advance(taken as usize);
                part.at = part.at.wrapping_add(taken);
                part.before = part.before.wrapping_add(taken);
            }
        }
        if self.parts.is_empty() {
            self.parts.shrink_to(KEPT_PARTS);
        }
        from_copied + left
    }

    /// Finds the contiguous data that starts at the index `from`, cut at `to`. Call this only if there are
    /// lent parts.
    pub(super) fn find(&self, from: u32, to: u32) -> Place<'_> {
        let index_of = |part: &Part| part.at.wrapping_sub(self.start);
        let next = self.parts.partition_point(|part| index_of(part) <= from);
        let mut lent_before = 0;
        if let Some(part) = next.checked_sub(1).and_then(|last| self.parts.get(last)) {
            let (at, bytes) = (from - index_of(part), &part.text[..]);
            if at < part.len() {
                let end = part.len().min(at + (to - from));
                return Place::Lent(bytes.get(at as usize..end as usize).unwrap_or_default());
            }
            let first = self.parts.front().map_or(0, |first| first.before);
            lent_before = part.before.wrapping_add(part.len()).wrapping_sub(first);
        }
        let to = self.parts.get(next).map_or(to, |part| index_of(part).min(to));
        Place::Copied { from: from - lent_before, to: to - lent_before }
    }
}

/// Maximum number of lent parts whose memory is kept while there are none.
const KEPT_PARTS: usize = 4;
