//! A socket that loses all arriving segments from one known moment on, not at random ones.

use std::io;
use std::net::TcpStream;

use crate::sys;

/// Makes a socket lose every segment that arrives for it, until this value is dropped. Meanwhile the socket can still
/// send.
#[derive(Debug)]
pub struct Deaf<'a>(&'a TcpStream);

impl<'a> Deaf<'a> {
    /// Makes `socket` lose every segment from now on.
    ///
    /// # Errors
    /// If the kernel refuses the filter.
    pub fn new(socket: &'a TcpStream) -> io::Result<Self> {
        sys::drop_arrivals(socket)?;
        Ok(Self(socket))
    }
}

impl Drop for Deaf<'_> {
    fn drop(&mut self) {
        // The filter was attached, so detaching it cannot fail.
        _ = sys::take_arrivals(self.0);
    }
}
