//! A client in memory, for tests: what it sends is given, what it hears is kept.

use std::io::{self, Cursor, Read, Write};
use std::time::Duration;

use super::client::Client;

#[derive(Debug)]
pub(super) struct Pipe {
    sends: Cursor<Vec<u8>>,
    /// So many bytes at most in one read or write.
    at_once: usize,
    pub(super) heard: Vec<u8>,
}

impl Pipe {
    pub(super) fn sending(bytes: &[u8], at_once: usize) -> Self {
        Self { sends: Cursor::new(bytes.to_vec()), at_once, heard: Vec::new() }
    }
}

impl Read for Pipe {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let length = into.len().min(self.at_once);
        self.sends.read(&mut into[..length])
    }
}

impl Write for Pipe {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let length = bytes.len().min(self.at_once);
        self.heard.extend_from_slice(&bytes[..length]);
        Ok(length)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Client for Pipe {
    fn read_within(&mut self, _: Duration) -> io::Result<()> {
        Ok(())
    }

    fn write_within(&mut self, _: Duration) -> io::Result<()> {
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        Ok(())
    }
}
