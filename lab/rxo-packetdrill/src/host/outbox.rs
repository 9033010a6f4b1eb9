//! Data that the application has written and the connection does not have yet: corked data, and the
//! ends of records.
//!
//! TCP_CORK and MSG_MORE hold back data that does not fill a segment. MSG_EOR ends a record, and no
//! segment has bytes of two records. The connection knows neither; it gets data when it may leave.

use std::collections::VecDeque;

/// Data in order, with the ends of records.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    text: VecDeque<u8>,
    /// Length of each record that has ended. The data after them belongs to an open record.
    ended: VecDeque<usize>,
    /// Whether the data given to the connection last ended a record.
    has_ended_last: bool,
    /// Whether the last write announced more data.
    is_more_coming: bool,
}

/// Data that may be given to the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) bytes: usize,
    /// Whether another record follows, so that this one need not wait for more.
    pub(super) is_followed: bool,
}

impl Outbox {
    pub(super) fn len(&self) -> usize {
        self.text.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Appends `text`. `more` is MSG_MORE and `ends` is MSG_EOR.
    pub(super) fn write(&mut self, text: &[u8], more: bool, ends: bool) {
        self.text.extend(text);
        self.is_more_coming = more;
        if ends {
            let open = self.text.len() - self.ended.iter().sum::<usize>();
            self.ended.push_back(open);
        }
    }

    /// Stops waiting for more data.
    pub(super) fn forget_more(&mut self) {
        self.is_more_coming = false;
    }

    /// The data that the connection may get now; `None` for nothing. `unsent` is what it has not
    /// sent yet, `segment` is the size of a full segment, and `is_corked` is TCP_CORK.
    pub(super) fn next(&self, unsent: u32, segment: usize, is_corked: bool) -> Option<Piece> {
        if self.is_empty() || self.has_ended_last && unsent > 0 {
            return None;
        }
        if let Some(&bytes) = self.ended.front() {
            return Some(Piece { bytes, is_followed: self.text.len() > bytes });
        }
        let all = self.text.len();
        let waits = if is_corked || self.is_more_coming { all % segment.max(1) } else { 0 };
        (all > waits).then_some(Piece { bytes: all - waits, is_followed: false })
    }

    /// The first `bytes` bytes.
    pub(super) fn text(&mut self, bytes: usize) -> &[u8] {
        let text = self.text.make_contiguous();
        &text[..bytes.min(text.len())]
    }

    /// Removes `bytes` of the next piece, which the connection has taken.
    pub(super) fn taken(&mut self, bytes: usize) {
        self.text.drain(..bytes.min(self.text.len()));
        self.has_ended_last = false;
        if let Some(first) = self.ended.front_mut() {
            *first = first.saturating_sub(bytes);
            if *first == 0 {
                self.ended.pop_front();
                self.has_ended_last = true;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn corked_text_leaves_in_full_segments() {
        let mut outbox = Outbox::default();
        outbox.write(&[0; 2_500], true, false);
        assert_eq!(outbox.next(0, 1000, false).map(|piece| piece.bytes), Some(2_000));
        outbox.taken(2_000);
        assert_eq!(outbox.next(2_000, 1000, false), None);
        outbox.write(&[0; 10], false, false);
        assert_eq!(outbox.next(2_000, 1000, true), None);
        assert_eq!(outbox.next(2_000, 1000, false).map(|piece| piece.bytes), Some(510));
    }

    #[test]
    fn a_record_waits_until_the_one_before_was_sent() {
        let mut outbox = Outbox::default();
        outbox.write(&[0; 400], false, true);
        outbox.write(&[0; 300], false, false);
        let first = Piece { bytes: 400, is_followed: true };
        assert_eq!(outbox.next(100, 1000, false), Some(first));
        outbox.taken(400);
        assert_eq!(outbox.next(400, 1000, false), None);
        let last = Piece { bytes: 300, is_followed: false };
        assert_eq!(outbox.next(0, 1000, false), Some(last));
        outbox.taken(300);
        assert!(outbox.is_empty());
    }
}
