//! Outbox: datagrams to be sent, in the form that the kernel accepts.

use std::net::SocketAddr;

use super::message::{Message, Train};

/// Memory in which datagrams are written one after the other. Consecutive datagrams of one size to one
/// address, with one ECN field, become a train; a shorter datagram ends the train.
#[derive(Debug)]
pub struct Outbox {
    bytes: Vec<u8>,
    used: usize,
    /// The number of bytes of datagrams that were sent or dropped.
    sent: usize,
    trains: Vec<Laid>,
    /// The index of the first train that is not sent completely.
    first: usize,
}

/// A train, with its position in the outbox's memory.
#[derive(Clone, Copy, Debug)]
struct Laid {
    to: SocketAddr,
    start: usize,
    end: usize,
    datagram_bytes: usize,
    ecn: u8,
}

impl Outbox {
    /// Creates an outbox for `bytes` bytes of datagrams, and allocates that memory.
    #[must_use]
    pub fn new(bytes: usize) -> Self {
        Self { bytes: vec![0; bytes], used: 0, sent: 0, trains: Vec::new(), first: 0 }
    }

    /// Returns memory for a datagram of up to `bytes` bytes, with arbitrary content; `None` if too little
    /// memory is free.
    #[inline]
    pub fn room(&mut self, bytes: usize) -> Option<&mut [u8]> {
        self.bytes.get_mut(self.used..)?.get_mut(..bytes)
    }

    /// Adds the first `bytes` bytes of the memory that [`Outbox::room`] returned as a datagram to `to`. The
    /// list of trains allocates memory as it grows, and keeps that memory. An empty datagram, or one longer
    /// than the free memory, is not added.
    #[inline]
    pub fn push(&mut self, bytes: usize, to: SocketAddr) {
        self.push_with_ecn(bytes, to, 0);
    }

    /// Adds a datagram as [`Outbox::push`] does, whose IP header has the ECN field `ecn`, 0 to 3 (RFC 3168,
    /// section 5). Higher bits are ignored.
    #[inline]
    pub fn push_with_ecn(&mut self, bytes: usize, to: SocketAddr, ecn: u8) {
        let (start, end, ecn) = (self.used, self.used + bytes, ecn & 3);
        if bytes == 0 || end > self.bytes.len() {
            return;
        }
        self.used = end;
        if !self.trains.last_mut().is_some_and(|train| train.take(bytes, to, ecn)) {
            self.trains.push(Laid { to, start, end, datagram_bytes: bytes, ecn });
        }
    }

    /// Returns `true` if all datagrams were sent or dropped.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.sent == self.used
    }

    /// Returns the number of bytes of datagrams that wait to be sent.
    #[must_use]
    pub const fn waiting_bytes(&self) -> usize {
        self.used - self.sent
    }

    /// Returns the messages to be sent, in order: whole trains if `permit` returns `true` for their address and the size
    /// of their datagrams, otherwise single datagrams.
    pub(super) fn messages(
        &self,
        permit: impl Fn(SocketAddr, usize) -> bool,
    ) -> impl Iterator<Item = Message<'_>> {
        self.trains[self.first..].iter().flat_map(move |train| {
            let bytes = &self.bytes[train.start.max(self.sent)..train.end];
            let Laid { to, datagram_bytes, ecn, .. } = *train;
            let most = if permit(to, datagram_bytes) { bytes.len() } else { datagram_bytes };
            bytes.chunks(most).map(move |bytes| Message::together(to, ecn, bytes, datagram_bytes))
        })
    }

    /// Removes the first `bytes` bytes of datagrams, which were sent or dropped.
    pub(super) fn advance(&mut self, bytes: usize) {
        self.sent += bytes;
        while self.trains.get(self.first).is_some_and(|train| train.end <= self.sent) {
            self.first += 1;
        }
        if self.is_empty() {
            (self.used, self.sent, self.first) = (0, 0, 0);
            self.trains.clear();
        }
    }
}

impl Laid {
    /// Adds a datagram of `bytes` bytes to the end of the train. Returns `false` if the datagram begins
    /// another train.
    fn take(&mut self, bytes: usize, to: SocketAddr, ecn: u8) -> bool {
        let mut train = Train { bytes: self.end - self.start, datagram_bytes: self.datagram_bytes };
        let takes = (to, ecn) == (self.to, self.ecn) && train.take(bytes);
        self.end = self.start + train.bytes;
        takes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn to(port: u16) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], port))
    }

    fn filled(datagrams: &[(usize, u16)]) -> Outbox {
        let mut outbox = Outbox::new(1 << 18);
        for (n, &(bytes, port)) in datagrams.iter().enumerate() {
            outbox.room(bytes).unwrap().fill(n as u8);
            outbox.push(bytes, to(port));
        }
        outbox
    }

    fn lengths(outbox: &Outbox, as_trains: bool) -> Vec<usize> {
        outbox.messages(|_, _| as_trains).map(|message| message.bytes).collect()
    }

    #[test]
    fn equal_datagrams_are_a_train_and_a_shorter_one_ends_it() {
        let outbox = filled(&[(100, 1), (100, 1), (60, 1), (60, 1), (100, 1)]);
        assert_eq!(lengths(&outbox, true), [260, 60, 100]);
        assert_eq!(lengths(&outbox, false), [100, 100, 60, 60, 100]);
        assert_eq!(outbox.messages(|_, _| true).next().unwrap().datagrams(), 3);
    }

    #[test]
    fn another_address_begins_a_train() {
        let outbox = filled(&[(100, 1), (100, 2), (100, 1)]);
        assert_eq!(lengths(&outbox, true), [100, 100, 100]);
    }

    #[test]
    fn another_ecn_field_begins_a_train() {
        let mut outbox = Outbox::new(1 << 10);
        for ecn in [2, 2, 3, 1, 0] {
            outbox.room(100).unwrap();
            outbox.push_with_ecn(100, to(1), ecn);
        }
        let messages: Vec<_> = outbox.messages(|_, _| true).map(|it| (it.bytes, it.ecn)).collect();
        assert_eq!(messages, [(200, 2), (100, 3), (100, 1), (100, 0)]);
    }

    #[test]
    fn a_train_has_no_more_datagrams_and_bytes_than_one_message_takes() {
        let small = filled(&[(10, 1); 65]);
        assert_eq!(lengths(&small, true), [640, 10]);
        let large = filled(&[(1_452, 1); 48]);
        assert_eq!(lengths(&large, true), [45 * 1_452, 3 * 1_452]);
    }

    #[test]
    fn what_was_sent_is_gone_also_in_the_middle_of_a_train() {
        let mut outbox = filled(&[(100, 1), (100, 1), (100, 1), (50, 2)]);
        outbox.advance(100);
        assert_eq!(lengths(&outbox, true), [200, 50]);
        let first = outbox.messages(|_, _| true).next().unwrap();
        assert_eq!(first.slices().next().unwrap()[0], 1);
        assert_eq!(outbox.waiting_bytes(), 250);
        outbox.advance(250);
        assert!(outbox.is_empty());
        assert_eq!(outbox.room(1 << 18).map(|room| room.len()), Some(1 << 18));
    }

    #[test]
    fn there_is_no_room_for_more_than_the_memory() {
        let mut outbox = Outbox::new(100);
        assert!(outbox.room(101).is_none());
        outbox.room(60).unwrap();
        outbox.push(60, to(1));
        assert!(outbox.room(41).is_none());
        outbox.push(41, to(1));
        outbox.push(0, to(1));
        assert_eq!(lengths(&outbox, true), [60]);
    }
}
