//! The loop of an owner that does each step at once, such as a thread that may wait.

use std::io;
use std::time::Instant;

use crate::conversation::{Conversation, Exchange, Now, Step};
use crate::files::{Opened, Root};

/// The connection of a conversation, and what its owner wants to know.
pub trait Owner {
    /// The time, and whether clients that only wait may stay.
    fn now(&mut self) -> Now;

    /// Reads once, until `until` at most. Returns the number of bytes, 0 at the end of the stream;
    /// `None` if nothing came in time.
    ///
    /// # Errors
    /// If the connection broke.
    fn read(&mut self, into: &mut [u8], until: Instant) -> io::Result<Option<usize>>;

    /// Writes once, until `until` at most. Returns the number of bytes; `None` if none was taken in time.
    ///
    /// # Errors
    /// If the connection broke.
    fn write(&mut self, bytes: &[u8], until: Instant) -> io::Result<Option<usize>>;

    /// Sends nothing more; what was written still arrives.
    ///
    /// # Errors
    /// If the connection broke.
    fn finish(&mut self) -> io::Result<()>;

    /// Takes note of a request whose answer was sent, or as much of it as could be written.
    fn answered(&mut self, exchange: Exchange);
}

/// Holds a conversation to its end, with the files below `root`. A connection that breaks is no error:
/// clients do that.
pub fn talk(owner: &mut impl Owner, mut conversation: Conversation, root: &Root) {
    let mut opened = Opened::new(root);
    loop {
        let done: io::Result<()> = match conversation.next(owner.now()) {
            Step::Read { into, until } => owner
                .read(into, until)
                .map(|read| read.into_iter().for_each(|bytes| conversation.received(bytes))),
            Step::Write { bytes, until } => owner
                .write(bytes, until)
                .map(|written| written.into_iter().for_each(|bytes| conversation.wrote(bytes))),
            Step::Load { from, into } => opened.load(from, into).map(|()| conversation.loaded()),
            Step::Find(lookup) => {
                conversation.found(opened.find(&lookup));
                Ok(())
            }
            Step::List => {
                conversation.listed(opened.names());
                Ok(())
            }
            Step::Answered(exchange) => {
                opened.close();
                owner.answered(exchange);
                Ok(())
            }
            Step::Finish => owner.finish(),
            Step::Close => return,
        };
        if done.is_err() {
            conversation.broken();
        }
    }
}
