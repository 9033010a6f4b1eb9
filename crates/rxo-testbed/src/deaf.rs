//! A socket that loses what comes for it: segments are lost at one known moment, not at random ones.

use std::io;
use std::net::TcpStream;

use crate::sys;

/// Makes a socket lose every segment that arrives for it, until this is dropped. What it sends leaves.
#[derive(Debug)]
pub struct Deaf<'a>(&'a TcpStream);

impl<'a> Deaf<'a> {
    /// From now on `socket` hears nothing.
    ///
    /// # Errors
    /// If the kernel takes no filter.
    pub fn new(socket: &'a TcpStream) -> io::Result<Self> {
        sys::drop_arrivals(socket)?;
        Ok(Self(socket))
    }
}

impl Drop for Deaf<'_> {
    fn drop(&mut self) {
        // It was attached, so it can be detached.
        _ = sys::take_arrivals(self.0);
    }
}
