//! The owner of a conversation with one client, on a thread of its own.

use std::io;
use std::time::{Instant, SystemTime};

use rxo_serve::{Exchange, Now, Owner};

use super::client::{self, Client};

/// A client, and the server as its conversation sees it.
pub(super) struct Host<'h, C> {
    pub(super) client: &'h mut C,
    /// Whether clients that only wait may stay at the moment.
    pub(super) may_stay: &'h dyn Fn() -> bool,
    /// Called with each request when its answer was sent.
    pub(super) log: &'h dyn Fn(Exchange),
}

impl<C: Client> Owner for Host<'_, C> {
    fn now(&mut self) -> Now {
        Now { instant: Instant::now(), date: SystemTime::now(), may_stay: (self.may_stay)() }
    }

    fn read(&mut self, into: &mut [u8], until: Instant) -> io::Result<Option<usize>> {
        client::read(self.client, into, until)
    }

    fn write(&mut self, bytes: &[u8], until: Instant) -> io::Result<Option<usize>> {
        client::write(self.client, bytes, until)
    }

    fn finish(&mut self) -> io::Result<()> {
        self.client.finish()
    }

    fn answered(&mut self, exchange: Exchange) {
        (self.log)(exchange);
    }
}

#[cfg(test)]
mod tests;
