//! An application's reader: a function that receives data on the worker's thread, without a copy.
//!
//! With a reader, no thread is woken and no data is copied. The data is consumed before the worker acknowledges
//! it, so its buffers are free again and the receive window stays open.

use std::cell::Cell;
use std::{fmt, io};

use rxo_tcp::Connection;

use crate::buffer::Buffer;

type Read = dyn FnMut(&[u8]) + Send;

/// An application's function that receives data.
pub(crate) struct Reader(Box<Read>);

impl Reader {
    pub(crate) fn new(read: impl FnMut(&[u8]) + Send + 'static) -> Self {
        Self(Box::new(read))
    }

    /// Passes all readable data to the function and consumes it.
    pub(crate) fn read_all<B: AsRef<[u8]>>(&mut self, connection: &mut Connection<Buffer<B>>) {
        let bytes = connection.readable_bytes();
        if bytes > 0 {
            reading(|| connection.readable().for_each(&mut self.0));
            connection.consume(bytes);
        }
    }
}

/// Runs an application's function that receives data while the connection is locked; calls on sockets fail
/// meanwhile.
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

/// Returns `true` while this thread runs an application's reader. The thread must not lock another connection
/// during this time: two readers that lock each other's connections would deadlock.
pub(crate) fn is_reading() -> bool {
    IS_READING.get()
}

/// Returns the error of a call on a socket from inside a reader, which could deadlock.
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
