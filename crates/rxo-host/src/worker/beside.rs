//! The companion of a connection: code that runs whenever the connection is served. An ordinary connection
//! has none; the companion of a member of a cast is the group that sends its data (`cast.rs`).
//!
//! Separate so that the code that serves connections need not know groups. The compiler instantiates that
//! code per companion, so that a connection without one pays nothing.

use rxo_frame::Instant;
use rxo_tcp::{Connection, Transmit};

use super::last_acks::Closer;
use crate::buffer::Buffer;

/// The companion of a connection: hooks that run while the connection is served. By default they do nothing.
pub(super) trait Beside<B: AsRef<[u8]>> {
    /// The kind of peer whose FIN the connection acknowledges.
    const CLOSER: Closer = Closer::Peer;
    /// `true` if data is sent only while the device's queue has free space.
    const WAITS_FOR_DEVICE: bool = true;

    /// Prepares the connection, before its timers run.
    #[inline]
    fn before(&mut self, _connection: &mut Connection<Buffer<B>>, _now: Instant) {}

    /// Takes over `transmit` and returns `true`, or returns `false`; the connection then sends it itself.
    #[inline]
    fn takes(&mut self, _transmit: &Transmit<'_>) -> bool {
        false
    }

    /// Updates the companion, after the connection has sent everything it could.
    #[inline]
    fn after(&mut self, _connection: &mut Connection<Buffer<B>>, _now: Instant) {}
}

/// The companion of an ordinary connection, which does nothing.
#[derive(Clone, Copy, Debug)]
pub(super) struct Alone;

impl<B: AsRef<[u8]>> Beside<B> for Alone {}
