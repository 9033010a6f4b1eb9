//! The owner of a conversation with a scripted client. Time passes only while the client dawdles.

use std::io::{self, ErrorKind, Read, Write};
use std::time::{Instant, SystemTime};

use rxo_serve::{Exchange, Now, Owner};

use super::script::{Manner, Script};

pub(super) struct Client<'s> {
    pub(super) script: Script<'s>,
    pub(super) logged: Vec<Exchange>,
    instant: Instant,
}

impl<'s> Client<'s> {
    pub(super) fn new(says: &'s [u8], manner: Manner) -> Self {
        Self { script: Script::new(says, manner), logged: Vec::new(), instant: Instant::now() }
    }
}

impl Owner for Client<'_> {
    fn now(&mut self) -> Now {
        Now { instant: self.instant, date: SystemTime::now(), may_stay: true }
    }

    fn read(&mut self, into: &mut [u8], until: Instant) -> io::Result<Option<usize>> {
        let read = self.script.read(into);
        if read.as_ref().is_err_and(|error| error.kind() == ErrorKind::WouldBlock) {
            self.instant = until;
            return Ok(None);
        }
        again(read)
    }

    fn write(&mut self, bytes: &[u8], _: Instant) -> io::Result<Option<usize>> {
        again(self.script.write(bytes))
    }

    fn finish(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn answered(&mut self, exchange: Exchange) {
        self.logged.push(exchange);
    }
}

/// An interrupted step is asked for again.
fn again(result: io::Result<usize>) -> io::Result<Option<usize>> {
    match result {
        Err(error) if error.kind() == ErrorKind::Interrupted => Ok(None),
        other => other.map(Some),
    }
}
