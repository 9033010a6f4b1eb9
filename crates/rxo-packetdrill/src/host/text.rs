//! Reading and writing.

use rxo_tcp::CallError;

use super::call::{Answer, Outcome};
use super::endpoint::Endpoint;
use super::{Fd, VirtualHost};
use crate::abi::{Errno, MSG_DONTWAIT, MSG_MORE, MSG_NOSIGNAL, MSG_PEEK, MSG_WAITALL};

impl VirtualHost {
    /// `None` when there is nothing yet and the call is to wait.
    pub(super) fn read(&mut self, fd: Fd, bytes: usize, flags: i32) -> Option<Outcome> {
        if flags & !(MSG_PEEK | MSG_DONTWAIT | MSG_WAITALL | MSG_NOSIGNAL) != 0 {
            return Some(Err(Errno::EOPNOTSUPP));
        }
        let waits = match self.socket(fd) {
            Ok(socket) => !socket.options.is_nonblocking && flags & MSG_DONTWAIT == 0,
            Err(error) => return Some(Err(error)),
        };
        let endpoint = match self.stream(fd) {
            Ok(endpoint) => endpoint,
            Err(error) => return Some(Err(error)),
        };
        let wanted = if flags & MSG_WAITALL != 0 { bytes } else { 1 };
        if waits && endpoint.may_get_more() && endpoint.tcp.readable_bytes() < wanted {
            return None;
        }
        Some(endpoint.read(bytes, flags & MSG_PEEK != 0))
    }

    /// `written` is what earlier attempts have taken. `None` when there is no room yet and the
    /// call is to wait.
    pub(super) fn write(
        &mut self,
        fd: Fd,
        data: &[u8],
        flags: i32,
        written: &mut usize,
    ) -> Option<Result<i64, Errno>> {
        if flags & !(MSG_DONTWAIT | MSG_NOSIGNAL | MSG_MORE) != 0 {
            return Some(Err(Errno::EOPNOTSUPP));
        }
        let (waits, limit, corked) = match self.socket(fd) {
            Ok(socket) => {
                let options = &socket.options;
                let waits = !options.is_nonblocking && flags & MSG_DONTWAIT == 0;
                (waits, options.send_limit, options.is_corked || flags & MSG_MORE != 0)
            }
            Err(error) => return Some(Err(error)),
        };
        let endpoint = match self.stream(fd) {
            Ok(endpoint) => endpoint,
            Err(error) => return Some(Err(error)),
        };
        if waits && !endpoint.was_open && !endpoint.tcp.is_closed() {
            return None;
        }
        let rest = data.get(*written..).unwrap_or_default();
        match endpoint.write(rest, limit, corked) {
            Ok(taken) => *written += taken,
            Err(error) if *written == 0 => return Some(Err(error)),
            Err(_) => return Some(Ok(*written as i64)),
        }
        match *written {
            all if all == data.len() => Some(Ok(all as i64)),
            _ if waits => None,
            0 => Some(Err(Errno::EAGAIN)),
            part => Some(Ok(part as i64)),
        }
    }
}

impl Endpoint {
    /// Whether a reader that waits may be rewarded.
    fn may_get_more(&self) -> bool {
        !self.is_read_shut && !self.tcp.is_closed() && !self.tcp.is_peer_done()
    }

    fn read(&mut self, bytes: usize, peeks: bool) -> Outcome {
        if !self.was_open && !self.tcp.is_closed() {
            return Err(Errno::ENOTCONN);
        }
        let mut data = vec![0; bytes.min(self.tcp.readable_bytes())];
        if data.is_empty() {
            return self.nothing_to_read();
        }
        if peeks {
            data = self.tcp.readable().flatten().take(data.len()).copied().collect();
        } else if self.tcp.receive(&mut data).is_err() {
            return Err(Errno::EIO);
        }
        Ok(Answer { value: data.len() as i64, data, ..Answer::default() })
    }

    fn nothing_to_read(&mut self) -> Outcome {
        if let Some(error) = self.error.take() {
            return Err(error);
        }
        if self.may_get_more() { Err(Errno::EAGAIN) } else { Ok(Answer::of(0)) }
    }

    /// Takes as much as there is room for below `limit`.
    fn write(&mut self, data: &[u8], limit: u32, is_corked: bool) -> Result<usize, Errno> {
        if self.tcp.is_closed() {
            return Err(self.error.take().unwrap_or(Errno::EPIPE));
        }
        let room = limit.saturating_sub(self.unacknowledged()) as usize;
        let taken = data.get(..data.len().min(room)).unwrap_or_default();
        if is_corked || !self.corked.is_empty() {
            self.corked.extend_from_slice(taken);
            self.push_corked(is_corked);
            return Ok(taken.len());
        }
        match self.tcp.send(taken) {
            Ok(bytes) => Ok(bytes),
            Err(CallError::NotYet) => Ok(0),
            Err(_) => Err(Errno::EPIPE),
        }
    }

    /// Hands on what is held back: full segments only while `is_corked`.
    fn push_corked(&mut self, is_corked: bool) {
        let segment = (self.tcp.statistics().mss as usize).max(1);
        let rest = if is_corked { self.corked.len() % segment } else { 0 };
        let bytes = self.corked.len() - rest;
        let taken = self.tcp.send(&self.corked[..bytes]).unwrap_or(0);
        self.corked.drain(..taken);
    }

    /// Nothing is held back any more.
    pub(super) fn uncork(&mut self) {
        self.push_corked(false);
    }
}
