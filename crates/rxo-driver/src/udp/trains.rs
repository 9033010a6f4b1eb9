//! Trains: decides if datagrams are sent as a train or one by one.
//!
//! This module is separate because a refusal has three meanings. A system without the option refuses every train of the
//! socket. A route that leads through IPsec, or through a device without checksum offload on older kernels, refuses the
//! trains to its own destinations. A route whose MTU is smaller than the datagrams refuses those of trains of that size.

use std::net::{IpAddr, SocketAddr};

use super::message::Message;

/// Maximum number of routes that are remembered because they have refused a train. A further route replaces the oldest.
/// The next train on a replaced route costs a refused call again.
const MOST_ROUTES: usize = 8;

/// Number of datagrams that are sent one by one before a train is tried again: the route may have changed.
const TRY_AGAIN_AFTER: u16 = 1_000;

/// The destinations to which trains may be sent. Allocates nothing.
#[derive(Clone, Copy, Debug)]
pub(super) struct Trains {
    /// `false` if no trains are sent at all.
    are_sent: bool,
    refusing: [Option<RefusingRoute>; MOST_ROUTES],
    /// The entry that the next new route replaces.
    oldest: usize,
}

/// A destination to which the system has refused a train.
#[derive(Clone, Copy, Debug)]
struct RefusingRoute {
    to: IpAddr,
    /// The size of the smallest datagrams that do not leave in trains, in bytes; 0 if none do.
    datagram_bytes: usize,
    /// The number of further datagrams to this destination that are sent one by one.
    singly: u16,
}

impl Trains {
    pub(super) const fn new(are_sent: bool) -> Self {
        Self { are_sent, refusing: [None; MOST_ROUTES], oldest: 0 }
    }

    /// Returns `true` if trains are sent to destinations that have not refused a train.
    pub(super) const fn are_sent(&self) -> bool {
        self.are_sent
    }

    /// Returns `true` if datagrams of `datagram_bytes` bytes to `to` may form a train.
    #[inline]
    pub(super) fn permit(&self, to: SocketAddr, datagram_bytes: usize) -> bool {
        let refuses = |route: &RefusingRoute| route.refuses(to, datagram_bytes);
        self.are_sent && !self.refusing.iter().flatten().any(refuses)
    }

    /// Ends trains to all destinations.
    pub(super) const fn end(&mut self) {
        self.are_sent = false;
    }

    /// Ends trains on the route to `to` whose datagrams have `datagram_bytes` bytes or more.
    pub(super) fn end_on_route(&mut self, to: IpAddr, mut datagram_bytes: usize) {
        let known = self.refusing.iter().position(|it| it.is_some_and(|it| it.to == to));
        let place = known.unwrap_or(self.oldest);
        if known.is_none() {
            self.oldest = (self.oldest + 1) % MOST_ROUTES;
        } else if let Some(route) = self.refusing[place] {
            datagram_bytes = datagram_bytes.min(route.datagram_bytes);
        }
        self.refusing[place] = Some(RefusingRoute { to, datagram_bytes, singly: TRY_AGAIN_AFTER });
    }

    /// Counts `messages`, which were sent. Forgets each route on which [`TRY_AGAIN_AFTER`] datagrams were sent
    /// one by one.
    pub(super) fn count(&mut self, messages: &[Message<'_>]) {
        for entry in &mut self.refusing {
            let Some(route) = entry else { continue };
            let singly = messages.iter().filter(|it| route.refuses(it.to, it.datagram_bytes));
            route.singly = route.singly.saturating_sub(singly.count() as u16);
            if route.singly == 0 {
                *entry = None;
            }
        }
    }
}

impl RefusingRoute {
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
    fn a_route_refuses_trains_of_a_size_and_larger_ones() {
        let mut trains = Trains::new(true);
        trains.end_on_route(to(1).ip(), 100);
        trains.end_on_route(to(1).ip(), 120);
        assert!(!trains.permit(to(1), 100) && !trains.permit(to(1), 1_000));
        assert!(trains.permit(to(1), 99) && trains.permit(to(2), 1_000));
    }

    #[test]
    fn a_train_is_tried_again_after_many_single_datagrams() {
        let mut trains = Trains::new(true);
        trains.end_on_route(to(1).ip(), 100);
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
    fn the_oldest_of_too_many_routes_is_forgotten() {
        let mut trains = Trains::new(true);
        for n in 0..=MOST_ROUTES as u8 {
            trains.end_on_route(to(n).ip(), 100);
        }
        assert!(trains.permit(to(0), 100));
        assert!((1..=MOST_ROUTES as u8).all(|n| !trains.permit(to(n), 100)));
        trains.end();
        assert!(!trains.permit(to(0), 100) && !trains.are_sent());
    }
}
