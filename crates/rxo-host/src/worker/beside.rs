//! The companion of a connection that is served: none, or the group that sends its text (`cast.rs`).
//!
//! Separate so that serving knows nothing of groups. The compiler makes one form of it for each, so that a connection alone
//! pays nothing.

use rxo_frame::Instant;
use rxo_tcp::{Connection, Transmit};

use super::last_acks::Closer;
use crate::buffer::Buffer;

/// A companion of a connection. By default it does nothing.
pub(super) trait Beside<B: AsRef<[u8]>> {
    /// The kind of peer whose FIN the connection acknowledges.
    const CLOSER: Closer = Closer::Peer;
    /// `true` if its text leaves only as far as the device's queue has room.
    const WAITS_FOR_DEVICE: bool = true;

    /// Called before its timers fire.
    #[inline]
    fn before(&mut self, _connection: &mut Connection<Buffer<B>>, _now: Instant) {}

    /// Takes `transmit` if it leaves another way, or later. Then returns `true`.
    #[inline]
    fn takes(&mut self, _transmit: &Transmit<'_>) -> bool {
        false
    }

    /// Called after it has sent all that it had to send.
    #[inline]
    fn after(&mut self, _connection: &mut Connection<Buffer<B>>, _now: Instant) {}
}

/// A connection by itself.
#[derive(Clone, Copy, Debug)]
pub(super) struct Alone;

impl<B: AsRef<[u8]>> Beside<B> for Alone {}
