//! Clients over rxo's own stack.

use std::io;
use std::net::{Shutdown, SocketAddr};
use std::os::fd::AsFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rxo_host::{TcpListener, TcpStream};

use super::client::Client;
use super::server::Door;

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

/// Several non-blocking listeners as one.
pub(super) struct Doors(pub(super) Vec<TcpListener>);

impl Door for Doors {
    type Client = TcpStream;

    fn accept_within(&self, time: Duration) -> io::Result<Option<(TcpStream, SocketAddr)>> {
        if let Some(client) = self.accept()? {
            return Ok(Some(client));
        }
        let mut waiting: Vec<PollFd<'_>> = self
            .0
            .iter()
            .map(|listener| PollFd::from_borrowed_fd(listener.as_fd(), PollFlags::IN))
            .collect();
        let timeout = Timespec { tv_sec: 0, tv_nsec: i64::from(time.subsec_nanos()) };
        match poll(&mut waiting, Some(&timeout)) {
            Ok(_) | Err(Errno::INTR) => self.accept(),
            Err(error) => Err(error.into()),
        }
    }
}

impl Doors {
    fn accept(&self) -> io::Result<Option<(TcpStream, SocketAddr)>> {
        for listener in &self.0 {
            match listener.accept() {
                Ok((client, peer)) => {
                    // Answers are written whole, so Nagle's algorithm would only delay them. If this
                    // fails, it does.
                    _ = client.set_nodelay(true);
                    return Ok(Some((client, peer)));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }
}
