//! Makes a socket lose every segment that arrives from a chosen moment on.

use std::io;
use std::net::TcpStream;

use crate::sys;

/// A socket that loses every arriving segment until this value is dropped. The socket can still send.
#[derive(Debug)]
pub struct DropIncoming<'a>(&'a TcpStream);

impl<'a> DropIncoming<'a> {
    /// Makes `socket` lose every segment that arrives from now on.
    ///
    /// # Errors
    /// If the kernel refuses the filter.
    pub fn new(socket: &'a TcpStream) -> io::Result<Self> {
        sys::drop_arrivals(socket)?;
        Ok(Self(socket))
    }
}

impl Drop for DropIncoming<'_> {
    fn drop(&mut self) {
        // The filter was attached, so detaching it cannot fail.
        _ = sys::take_arrivals(self.0);
    }
}
