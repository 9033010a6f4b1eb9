//! Clients over rxo's own stack.

use std::io;
use std::net::{Shutdown, SocketAddr};
use std::time::Duration;

use rxo_host::TcpStream;

use super::client::Client;
use super::server::Door;
use crate::hosting::Listeners;

impl Client for TcpStream {
    fn read_within(&mut self, time: Duration) -> io::Result<()> {
        self.set_read_timeout(Some(time))
    }

    fn write_within(&mut self, time: Duration) -> io::Result<()> {
        self.set_write_timeout(Some(time))
    }

    fn finish(&mut self) -> io::Result<()> {
        self.shutdown(Shutdown::Write)
    }
}

impl Door for Listeners {
    type Client = TcpStream;

    fn accept_within(&self, time: Duration) -> io::Result<Option<(TcpStream, SocketAddr)>> {
        let accepted = Self::accept_within(self, time)?;
        if let Some((client, _)) = &accepted {
            // Answers are written whole, so Nagle's algorithm would only delay them. If this fails, it
            // does.
            _ = client.set_nodelay(true);
        }
        Ok(accepted)
    }
}
