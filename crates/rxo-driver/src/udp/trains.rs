//! Trains: decides if datagrams are sent as a train or one by one.
//!
//! This module is separate because a refusal can have two causes. A system without checksum offload refuses every
//! train. If the MTU of a route is smaller than the datagrams, the system refuses only trains on this route.

use std::net::{IpAddr, SocketAddr};

use super::message::Message;

/// Maximum number of narrow routes (routes whose MTU was too small for a train) that are remembered. A further
/// route replaces the oldest. After that, the next train on the replaced route costs another refused call.
const MOST_ROUTES: usize = 8;

/// Number of datagrams that are sent one by one before a train is tried again: the route may have changed.
const TRY_AGAIN_AFTER: u16 = 1_000;

/// The destinations to which trains may be sent. Allocates nothing.
#[derive(Clone, Copy, Debug)]
pub(super) struct Trains {
    /// `false` if no trains are sent at all.
    are_sent: bool,
    narrow: [Option<NarrowRoute>; MOST_ROUTES],
    /// The entry that the next new route replaces.
    oldest: usize,
}

/// A destination to which the system has refused a train.
#[derive(Clone, Copy, Debug)]
struct NarrowRoute {
    to: IpAddr,
    /// The size of the smallest datagrams of a refused train, in bytes.
    datagram_bytes: usize,
    /// The number of further datagrams to this destination that are sent one by one.
    singly: u16,
}

impl Trains {
    pub(super) const fn new(are_sent: bool) -> Self {
        Self { are_sent, narrow: [None; MOST_ROUTES], oldest: 0 }
    }

    /// Returns `true` if trains are sent to destinations that have not refused a train.
    pub(super) const fn are_sent(&self) -> bool {
        self.are_sent
    }

    /// Returns `true` if datagrams of `datagram_bytes` bytes to `to` may form a train.
    #[inline]
    pub(super) fn permit(&self, to: SocketAddr, datagram_bytes: usize) -> bool {
        let refuses = |route: &NarrowRoute| route.refuses(to, datagram_bytes);
        self.are_sent && !self.narrow.iter().flatten().any(refuses)
    }

    /// Ends trains to all destinations.
    pub(super) const fn end(&mut self) {
        self.are_sent = false;
    }

    /// Remembers that the MTU of the route of `train` is too small for its datagrams.
    pub(super) fn end_on_route(&mut self, train: &Message<'_>) {
        let (to, mut datagram_bytes) = (train.to.ip(), train.datagram_bytes);
        let known = self.narrow.iter().position(|it| it.is_some_and(|it| it.to == to));
        let place = known.unwrap_or(self.oldest);
        if known.is_none() {
            self.oldest = (self.oldest + 1) % MOST_ROUTES;
        } else if let Some(route) = self.narrow[place] {
            datagram_bytes = datagram_bytes.min(route.datagram_bytes);
        }
        self.narrow[place] = Some(NarrowRoute { to, datagram_bytes, singly: TRY_AGAIN_AFTER });
    }

    /// Counts `messages`, which were sent. Forgets each route on which [`TRY_AGAIN_AFTER`] datagrams were sent
    /// one by one.
    pub(super) fn count(&mut self, messages: &[Message<'_>]) {
        for entry in &mut self.narrow {
            let Some(route) = entry else { continue };
            let singly = messages.iter().filter(|it| route.refuses(it.to, it.datagram_bytes));
            route.singly = route.singly.saturating_sub(singly.count() as u16);
            if route.singly == 0 {
                *entry = None;
            }
        }
    }
}

impl NarrowRoute {
    fn refuses(&self, to: SocketAddr, datagram_bytes: usize) -> bool {
        self.to == to.ip() && datagram_bytes >= self.datagram_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn to(n: u8) -> SocketAddr {
        SocketAddr::from(([10, 0, 0, n], 9))
    }

    fn message(n: u8, bytes: &[u8], datagram_bytes: usize) -> Message<'_> {
        Message::together(to(n), 0, bytes, datagram_bytes)
    }

    #[test]
    fn a_narrow_route_ends_trains_of_its_size_and_larger_ones() {
        let mut trains = Trains::new(true);
        trains.end_on_route(&message(1, &[0; 300], 100));
        trains.end_on_route(&message(1, &[0; 300], 120));
        assert!(!trains.permit(to(1), 100) && !trains.permit(to(1), 1_000));
        assert!(trains.permit(to(1), 99) && trains.permit(to(2), 1_000));
    }

    #[test]
    fn a_train_is_tried_again_after_many_single_datagrams() {
        let mut trains = Trains::new(true);
        trains.end_on_route(&message(1, &[0; 300], 100));
        for _ in 1..TRY_AGAIN_AFTER {
            // Neither smaller datagrams nor those to other destinations count.
            trains.count(&[
                message(1, &[0; 100], 100),
                message(1, &[0; 50], 50),
                message(2, &[0; 100], 100),
            ]);
            assert!(!trains.permit(to(1), 100));
        }
        trains.count(&[message(1, &[0; 100], 100)]);
        assert!(trains.permit(to(1), 100));
    }

    #[test]
    fn the_oldest_of_too_many_narrow_routes_is_forgotten() {
        let mut trains = Trains::new(true);
        for n in 0..=MOST_ROUTES as u8 {
            trains.end_on_route(&message(n, &[0; 300], 100));
        }
        assert!(trains.permit(to(0), 100));
        assert!((1..=MOST_ROUTES as u8).all(|n| !trains.permit(to(n), 100)));
        trains.end();
        assert!(!trains.permit(to(0), 100) && !trains.are_sent());
    }
}
