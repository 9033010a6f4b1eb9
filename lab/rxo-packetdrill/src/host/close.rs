//! Closes a descriptor, or one direction of a connection.

use super::socket::Kind;
use super::{Fd, VirtualHost};
use crate::abi::{Errno, SHUT_RD, SHUT_RDWR, SHUT_WR};

impl VirtualHost {
    /// Closes `fd`. The connection lives on until the peer has received everything.
    pub(super) fn close(&mut self, fd: Fd) -> Result<i64, Errno> {
        if self.epolls.remove(&fd).is_some() {
            return Ok(0);
        }
        self.forget_in_epolls(fd);
        let socket = self.sockets.remove(&fd).ok_or(Errno::EBADF)?;
        match socket.kind {
            Kind::Fresh { .. } => {}
            Kind::Listener(_) => self.close_listener(fd),
            Kind::Stream(number) => {
                let resets = socket.options.resets_on_close;
                self.close_stream(number, resets);
            }
        }
        Ok(0)
    }

    fn close_listener(&mut self, fd: Fd) {
        for endpoint in self.endpoints.values_mut() {
            if endpoint.listener == Some(fd) {
                endpoint.listener = None;
                endpoint.tcp.abort();
            }
        }
    }

    fn close_stream(&mut self, number: u32, resets: bool) {
        let now = self.now;
        let Some(endpoint) = self.endpoints.get_mut(&number) else { return };
        endpoint.fd = None;
        endpoint.uncork();
        if resets {
            endpoint.tcp.abort();
        } else {
            endpoint.tcp.abandon(now);
        }
    }

    pub(super) fn shut_down(&mut self, fd: Fd, how: i32) -> Result<i64, Errno> {
        if !matches!(how, SHUT_RD | SHUT_WR | SHUT_RDWR) {
            return Err(Errno::EINVAL);
        }
        let endpoint = self.stream(fd)?;
        if !endpoint.was_open || endpoint.tcp.is_closed() {
            return Err(Errno::ENOTCONN);
        }
        endpoint.is_read_shut |= how != SHUT_WR;
        if how != SHUT_RD {
            endpoint.uncork();
            endpoint.is_write_shut = true;
            // A second shutdown changes nothing.
            let _ = endpoint.tcp.shutdown();
        }
        Ok(0)
    }
}
