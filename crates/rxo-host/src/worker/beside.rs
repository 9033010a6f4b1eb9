//! The companion of a connection: code that runs whenever the connection is served. An ordinary connection has
//! no companion. The companion of a cast member's connection is the group that sends the member's data
//! (`cast.rs`).
//!
//! With this trait, the code that serves connections does not depend on groups. The compiler instantiates that
//! code per type of companion, so the trait costs nothing for a connection without a companion.

use rxo_frame::Instant;
use rxo_tcp::{Connection, Transmit};

use super::last_acks::Closer;
use crate::buffer::Buffer;

/// The companion of a connection: hooks that run while the connection is served. The default hooks do nothing.
pub(super) trait Beside<B: AsRef<[u8]>> {
    /// The kind of peer whose FIN the connection acknowledges.
    const CLOSER: Closer = Closer::Peer;
    /// `true` if data is sent only while the device's queue has free space.
    const WAITS_FOR_DEVICE: bool = true;

    /// Prepares the connection, before its timers run.
    #[inline]
    fn before(&mut self, _connection: &mut Connection<Buffer<B>>, _now: Instant) {}

    /// Returns `true` if the companion sends `transmit`. Returns `false` if the connection must send `transmit`
    /// itself.
    #[inline]
    fn takes(&mut self, _transmit: &Transmit<'_>) -> bool {
        false
    }

    /// Updates the companion after the connection has sent its data, as far as possible.
    #[inline]
    fn after(&mut self, _connection: &mut Connection<Buffer<B>>, _now: Instant) {}
}

/// The companion of an ordinary connection, which does nothing.
#[derive(Clone, Copy, Debug)]
pub(super) struct Alone;

impl<B: AsRef<[u8]>> Beside<B> for Alone {}
