//! An application's reader: it gets received text on the worker's thread, where the text lies.
//!
//! Separate from the calls of sockets because nobody is woken and nothing is copied: the text is consumed before
//! the worker acknowledges it, so the buffers are free again and the window stays open.

use std::fmt;

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
            connection.readable().for_each(&mut self.0);
            connection.consume(bytes);
        }
    }
}

impl fmt::Debug for Reader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Reader")
    }
}
