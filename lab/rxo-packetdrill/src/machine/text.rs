//! Reading and writing data.

use std::collections::VecDeque;

use rxo_frame::Instant;

use super::call::{Answer, Outcome};
use super::endpoint::Endpoint;
use super::room::WriteLimits;
use super::socket::Socket;
use super::{Fd, Packet, VirtualHost};
use crate::abi::{Errno, MSG_DONTWAIT, MSG_EOR, MSG_MORE, MSG_NOSIGNAL, MSG_PEEK, MSG_WAITALL};

impl VirtualHost {
    /// Reads. `None` if there is nothing yet and the call must wait.
    pub(super) fn read(&mut self, fd: Fd, bytes: usize, flags: i32) -> Option<Outcome> {
        if flags & !(MSG_PEEK | MSG_DONTWAIT | MSG_WAITALL | MSG_NOSIGNAL) != 0 {
            return Some(Err(Errno::EOPNOTSUPP));
        }
        let (waits, says_rest) = match self.socket(fd) {
            Ok(Socket { options, .. }) => {
                (!options.is_nonblocking && flags & MSG_DONTWAIT == 0, options.says_rest)
            }
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
        let read = endpoint.read(bytes, flags & MSG_PEEK != 0);
        let rest = says_rest.then(|| endpoint.rest());
        Some(read.map(|answer| Answer { rest, ..answer }))
    }

    /// Writes. `written` is what earlier attempts of this call have written. `None` if there is no
    /// room and the call must wait.
    pub(super) fn write(
        &mut self,
        fd: Fd,
        data: &[u8],
        flags: i32,
        written: &mut usize,
    ) -> Option<Result<i64, Errno>> {
        if flags & !(MSG_DONTWAIT | MSG_NOSIGNAL | MSG_MORE | MSG_EOR) != 0 {
            return Some(Err(Errno::EOPNOTSUPP));
        }
        let (waits, is_corked) = match self.socket(fd) {
            Ok(Socket { options, .. }) => {
                (!options.is_nonblocking && flags & MSG_DONTWAIT == 0, options.is_corked)
            }
            Err(error) => return Some(Err(error)),
        };
        let limits = match self.write_limits(fd) {
            Ok(limits) => limits,
            Err(error) => return Some(Err(error)),
        };
        let (more, ends) = (flags & MSG_MORE != 0, flags & MSG_EOR != 0);
        let how = Writing { limits, is_corked, more, ends };
        let now = self.now;
        let mut left = core::mem::take(&mut self.left);
        let rest = data.get(*written..).unwrap_or_default();
        let taken = match self.stream(fd) {
            Ok(endpoint) if waits && !endpoint.was_open && !endpoint.tcp.is_closed() => None,
            Ok(endpoint) => Some(endpoint.write(rest, how, now, &mut left)),
            Err(error) => Some(Err(error)),
        };
        self.left = left;
        match taken? {
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
    /// Whether a waiting reader may still get data.
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

    /// TCP_CM_INQ: the number of unread bytes; 1 if only the end of the stream is left.
    fn rest(&self) -> i32 {
        match self.tcp.readable_bytes() {
            0 => self.tcp.is_peer_done().into(),
            bytes => i32::try_from(bytes).unwrap_or(i32::MAX),
        }
    }

    fn nothing_to_read(&mut self) -> Outcome {
        if let Some(error) = self.error.take() {
            return Err(error);
        }
        if self.may_get_more() { Err(Errno::EAGAIN) } else { Ok(Answer::of(0)) }
    }

    /// Takes as much of `data` as `limits` allow, and sends what may leave, because that makes room
    /// if unsent data is limited.
    fn write(
        &mut self,
        data: &[u8],
        how: Writing,
        now: Instant,
        left: &mut VecDeque<Packet>,
    ) -> Result<usize, Errno> {
        if self.tcp.is_closed() {
            return Err(self.error.take().unwrap_or(Errno::EPIPE));
        }
        if self.is_write_shut {
            return Err(Errno::EPIPE);
        }
        let mut written = 0;
        loop {
            let rest = &data[written..];
            let taken = rest.len().min(self.room(&how.limits));
            if taken == 0 {
                break;
            }
            let is_all = taken == rest.len();
            self.outbox.write(&rest[..taken], how.more, how.ends && is_all);
            self.is_corked = how.is_corked;
            written += taken;
            self.transmit_all(now, left);
        }
        self.wants_room |= written < data.len();
        Ok(written)
    }
}

/// The flags of a write.
#[derive(Clone, Copy, Debug)]
struct Writing {
    limits: WriteLimits,
    /// TCP_CORK.
    is_corked: bool,
    /// MSG_MORE.
    more: bool,
    /// MSG_EOR.
    ends: bool,
}
