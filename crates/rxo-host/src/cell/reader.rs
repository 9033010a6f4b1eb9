//! An application's reader: it gets received text on the worker's thread, where the text lies.
//!
//! Separate from the calls of sockets because nobody is woken and nothing is copied: the text is consumed before
//! the worker acknowledges it, so the buffers are free again and the window stays open.

use std::cell::Cell;
use std::{fmt, io};

use rxo_tcp::Connection;

use crate::buffer::Buffer;

type Read = dyn FnMut(&[u8]) + Send;

/// A function that gets text.
pub(crate) struct Reader(Box<Read>);

impl Reader {
    pub(crate) fn new(read: impl FnMut(&[u8]) + Send + 'static) -> Self {
        Self(Box::new(read))
    }

    /// Gives it everything that can be read.
    pub(crate) fn read_all<B: AsRef<[u8]>>(&mut self, connection: &mut Connection<Buffer<B>>) {
        let bytes = connection.readable_bytes();
        if bytes > 0 {
            reading(|| connection.readable().for_each(&mut self.0));
            connection.consume(bytes);
        }
    }
}

/// Runs an application's function that gets text while the connection is locked.
pub(super) fn reading<R>(read: impl FnOnce() -> R) -> R {
    struct End;
    impl Drop for End {
        fn drop(&mut self) {
            IS_READING.set(false);
        }
    }
    IS_READING.set(true);
    let _end = End;
    read()
}

/// Whether this thread runs such a function. Then it may not wait for another connection: that one's reader may wait
/// for this one.
pub(crate) fn is_reading() -> bool {
    IS_READING.get()
}

/// The error of a call that would have to wait.
pub(crate) fn deadlock() -> io::Error {
    io::Error::new(io::ErrorKind::Deadlock, NO_CALLS)
}

pub(super) const NO_CALLS: &str =
    "a reader may not use streams and listeners of a host; hand the text over by a channel";

thread_local! {
    static IS_READING: Cell<bool> = const { Cell::new(false) };
}

impl fmt::Debug for Reader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Reader")
    }
}
