//! The data that not all receivers have acknowledged, in the pieces in which the application has written it.
//!
//! Separate from the send buffers of the connections, which share its pieces. A connection keeps its own
//! references to data that the group has dropped.

use alloc::collections::VecDeque;

use rxo_frame::SharedBytes;

use crate::{SendBuffer, Text};

/// The data of the stream, starting at the slowest receiver's position.
#[derive(Debug)]
pub(super) struct GroupText {
    /// The data that segments to the group are built from.
    buffer: SendBuffer,
    /// The stream position of the first byte in `buffer`.
    una: u64,
    /// The pieces to pass to connections, each with its stream position.
    pieces: VecDeque<(u64, SharedBytes)>,
    is_finished: bool,
}

impl GroupText {
    pub(super) fn with_capacity(bytes: u32) -> Self {
        let buffer = SendBuffer::with_capacity(bytes);
        Self { buffer, una: 0, pieces: VecDeque::new(), is_finished: false }
    }

    /// Returns the stream position of the first byte of the data that is kept.
    pub(super) fn start(&self) -> u64 {
        self.una
    }

    /// Returns the stream position after the last byte of the data.
    pub(super) fn end(&self) -> u64 {
        self.una + u64::from(self.buffer.len())
    }

    /// Returns the length of the whole stream; `None` before [`GroupText::finish`].
    pub(super) fn length(&self) -> Option<u64> {
        self.is_finished.then(|| self.end())
    }

    pub(super) fn finish(&mut self) {
        self.is_finished = true;
    }

    /// Returns the free space in bytes; 0 once the stream is finished.
    pub(super) fn room(&self) -> u32 {
        if self.is_finished { 0 } else { self.buffer.room() }
    }

    /// Appends as much of `text` as fits and removes that part from `text`. Returns its length in bytes.
    pub(super) fn write(&mut self, text: &mut SharedBytes) -> usize {
        let at = self.end();
        let piece = text.split_to(self.room() as usize);
        let bytes = piece.len();
        if bytes > 0 {
            self.pieces.push_back((at, piece.clone()));
            self.buffer.append_shared(&mut { piece });
        }
        bytes
    }

    /// Drops the data before `una`, because all receivers have acknowledged it.
    pub(super) fn advance(&mut self, una: u64) {
        let una = una.min(self.end());
        let Some(bytes) = una.checked_sub(self.una).filter(|bytes| *bytes > 0) else { return };
        // `bytes` is at most the size of the buffer.
        self.buffer.advance(bytes as u32);
        self.una = una;
        while self.pieces.front().is_some_and(|(at, piece)| at + piece.len() as u64 <= una) {
            self.pieces.pop_front();
        }
    }

    /// Returns the data from `from` up to `to`. If that data lies in several pieces, returns only its part in
    /// the first piece. `None` if `from` is not kept.
    pub(super) fn piece(&self, from: u64, to: u64) -> Option<SharedBytes> {
        let next = self.pieces.partition_point(|(at, _)| *at <= from);
        let (at, piece) = self.pieces.get(next.checked_sub(1)?)?;
        let mut piece = piece.clone();
        piece.advance(usize::try_from(from - at).ok()?);
        let wanted = usize::try_from(to.checked_sub(from)?).unwrap_or(usize::MAX);
        let found = piece.split_to(wanted);
        (!found.is_empty()).then_some(found)
    }

    /// Returns the stream position of the first byte of data that can still be passed to connections.
    pub(super) fn first(&self) -> u64 {
        self.pieces.front().map_or(self.end(), |(at, _)| *at)
    }

    /// Returns the data from `from` up to `to` for a packet; empty if some of this data was dropped.
    pub(super) fn view(&self, from: u64, to: u64) -> Text<'_> {
        let index = |position: u64| u32::try_from(position.checked_sub(self.una)?).ok();
        match (index(from), index(to)) {
            (Some(from), Some(to)) => self.buffer.text(from, to),
            _ => Text::EMPTY,
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    #[test]
    fn pieces_are_dropped_when_all_have_them() {
        let mut text = GroupText::with_capacity(10_000);
        let bytes: Vec<u8> = (0..12_000_u32).map(|at| at as u8).collect();
        let mut whole = SharedBytes::from(bytes.clone());
        let mut first = whole.split_to(4_000);
        assert_eq!((text.write(&mut first), text.write(&mut whole)), (4_000, 6_000));
        assert_eq!((text.end(), text.room(), whole.len(), text.length()), (10_000, 0, 2_000, None));
        text.advance(5_000);
        assert_eq!((text.first(), text.room()), (4_000, 5_000));
        assert!(text.piece(3_999, 9_000).is_none());
        assert_eq!(text.piece(4_500, 4_600).unwrap()[..], bytes[4_500..4_600]);
        assert_eq!(text.view(5_000, 5_010).to_vec(), bytes[5_000..5_010]);
        assert_eq!(text.write(&mut whole), 2_000);
        assert_eq!(text.piece(9_000, u64::MAX).unwrap().len(), 1_000, "up to the next piece");
        text.finish();
        text.advance(u64::MAX);
        assert_eq!((text.first(), text.length(), text.room()), (12_000, Some(12_000), 0));
    }
}
