//! The life of a socket: socket, bind, listen, accept, connect, shutdown, close.

use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr};

use rxo_wire::FlowKey;

use super::running::Running;
use super::socket::{Kind, Listener, Options, Socket, Stream};
use super::{Answer, Fd, Machine, Outcome, Settings, errno};
use crate::abi::{
    AF_INET, AF_INET6, Errno, IPPROTO_TCP, SHUT_RD, SHUT_RDWR, SHUT_WR, SOCK_CLOEXEC,
    SOCK_NONBLOCK, SOCK_STREAM,
};

impl Machine {
    /// Implements socket(2): family, type with flags, protocol.
    ///
    /// # Errors
    /// If the socket is not for TCP.
    pub fn make(&mut self, domain: i32, kind: i32, protocol: i32) -> Result<i64, Errno> {
        if !matches!(domain, AF_INET | AF_INET6) {
            return Err(Errno::EAFNOSUPPORT);
        }
        if kind & !(SOCK_NONBLOCK | SOCK_CLOEXEC) != SOCK_STREAM {
            return Err(Errno::ESOCKTNOSUPPORT);
        }
        if !matches!(protocol, 0 | IPPROTO_TCP) {
            return Err(Errno::EPROTONOSUPPORT);
        }
        let mut options = Options::new(&self.settings);
        options.is_nonblocking = kind & SOCK_NONBLOCK != 0;
        let (is_v6, kind) = (domain == AF_INET6, Kind::Fresh { local: None });
        Ok(self.add_socket(Socket { is_v6, kind, options }).into())
    }

    /// Implements bind(2). The address reaches the host when the socket listens; an outgoing connection uses
    /// a port that the host chooses.
    ///
    /// # Errors
    /// The errors that Linux returns.
    pub fn bind(&mut self, fd: Fd, to: SocketAddr) -> Result<i64, Errno> {
        if !self.socket(fd)?.options.reuses_address && self.is_taken(to) {
            return Err(Errno::EADDRINUSE);
        }
        match &mut self.socket(fd)?.kind {
            Kind::Fresh { local } if local.is_none() => *local = Some(to),
            _ => return Err(Errno::EINVAL),
        }
        Ok(0)
    }

    fn is_taken(&self, address: SocketAddr) -> bool {
        let has_it = |socket: &Socket| match &socket.kind {
            Kind::Fresh { local } => *local == Some(address),
            Kind::Listener(listener) => listener.tcp.local_addr().ok() == Some(address),
            Kind::Stream(stream) => stream.tcp.local_addr().ok() == Some(address),
        };
        address.port() != 0 && self.sockets.values().any(has_it)
    }

    /// Implements listen(2). A second call changes nothing.
    ///
    /// # Errors
    /// The errors that Linux returns; [`Errno::EOPNOTSUPP`] if the settings differ from those of a host that
    /// is in use.
    pub fn listen(&mut self, fd: Fd, backlog: i32) -> Result<i64, Errno> {
        let settings = self.settings.clone();
        let socket = self.socket(fd)?;
        let local = match &socket.kind {
            Kind::Listener(_) => return Ok(0),
            Kind::Stream(_) => return Err(Errno::EINVAL),
            Kind::Fresh { local } => local.unwrap_or_else(|| any_address(socket.is_v6)),
        };
        let settings = socket.options.settings(&settings, false);
        let handle = self.host_for(settings)?.host.handle();
        // Linux allows one more waiting connection than the backlog.
        let most = usize::try_from(backlog).unwrap_or(0) + 1;
        let tcp = handle.listen(local, most).map_err(|error| errno(&error))?;
        tcp.set_nonblocking(true).map_err(|error| errno(&error))?;
        self.socket(fd)?.kind = Kind::Listener(Listener { tcp, backlog, found: VecDeque::new() });
        self.turn();
        Ok(0)
    }

    /// Listens again, with options that were set in the meantime.
    pub(super) fn listen_again(&mut self, fd: Fd) -> Result<(), Errno> {
        let socket = self.socket(fd)?;
        if let Kind::Listener(listener) = &socket.kind {
            let (local, backlog) = (listener.tcp.local_addr().ok(), listener.backlog);
            socket.kind = Kind::Fresh { local };
            self.turn();
            self.listen(fd, backlog)?;
        }
        Ok(())
    }

    /// Implements accept(2).
    pub fn accept(&mut self, fd: Fd) -> Outcome {
        let socket = match self.socket(fd) {
            Ok(socket) => socket,
            Err(error) => return Some(Err(error)),
        };
        let Kind::Listener(listener) = &mut socket.kind else { return Some(Err(Errno::EINVAL)) };
        let Some(tcp) = listener.next() else {
            return socket.options.is_nonblocking.then_some(Err(Errno::EAGAIN));
        };
        let options = Options { is_nonblocking: false, ..socket.options.clone() };
        let is_v6 = socket.is_v6;
        Some(Stream::new(tcp).map_err(|error| errno(&error)).map(|stream| {
            let fd = self.add_socket(Socket { is_v6, kind: Kind::Stream(stream), options });
            Answer::of(fd.into())
        }))
    }

    /// Implements connect(2). `has_begun` means that this call has already sent the SYN.
    pub fn connect(&mut self, fd: Fd, to: SocketAddr, has_begun: bool) -> Outcome {
        let is_nonblocking = match self.socket(fd) {
            Ok(socket) => socket.options.is_nonblocking,
            Err(error) => return Some(Err(error)),
        };
        if has_begun {
            return self.connected(fd);
        }
        match self.open(fd, to) {
            Err(error) => Some(Err(error)),
            Ok(()) if is_nonblocking => Some(Err(Errno::EINPROGRESS)),
            Ok(()) => None,
        }
    }

    fn connected(&mut self, fd: Fd) -> Outcome {
        match self.stream(fd) {
            Err(error) => Some(Err(error)),
            Ok(stream) if stream.was_open() => Some(Ok(Answer::of(0))),
            Ok(stream) => {
                let end = stream.end()?;
                Some(Err(stream.take_error().unwrap_or(end)))
            }
        }
    }

    fn open(&mut self, fd: Fd, to: SocketAddr) -> Result<(), Errno> {
        let settings = self.settings.clone();
        let socket = self.socket(fd)?;
        match &mut socket.kind {
            Kind::Fresh { .. } => {}
            Kind::Listener(_) => return Err(Errno::EISCONN),
            Kind::Stream(stream) => return Err(why_not_again(stream)),
        }
        let settings = socket.options.settings(&settings, true);
        let handle = self.host_for(settings)?.host.handle();
        let opened = handle.connect_nonblocking(to).and_then(Stream::new);
        self.socket(fd)?.kind = Kind::Stream(opened.map_err(|error| errno(&error))?);
        self.turn();
        Ok(())
    }

    /// Returns the host, whatever its settings; used for packets that arrive before any socket exists.
    pub(super) fn any_host(&mut self) -> Result<&mut Running, Errno> {
        if self.running.is_none() {
            let settings = Options::new(&self.settings).settings(&self.settings, false);
            return self.host_for(settings);
        }
        self.running.as_mut().ok_or(Errno::EINVAL)
    }

    /// Returns a host with the settings of `socket`. A host with other settings is replaced if it is unused.
    ///
    /// # Errors
    /// If the host is in use with other settings.
    fn host_for(&mut self, settings: Settings) -> Result<&mut Running, Errno> {
        let differs = self.running.as_ref().is_some_and(|running| running.settings != settings);
        if differs {
            let is_used = |socket: &Socket| !matches!(socket.kind, Kind::Fresh { .. });
            let is_unused = self.running.as_mut().is_none_or(Running::is_unused);
            if !is_unused || self.sockets.values().any(is_used) {
                return Err(Errno::EOPNOTSUPP);
            }
            self.running = None;
        }
        if self.running.is_none() {
            self.running = Some(Running::new(settings).map_err(|_| Errno::EINVAL)?);
            self.turn();
        }
        self.running.as_mut().ok_or(Errno::EINVAL)
    }

    /// Implements close(2). The connection continues until the peer has received everything.
    ///
    /// # Errors
    /// [`Errno::EBADF`] if there is no such descriptor.
    pub fn close(&mut self, fd: Fd) -> Result<i64, Errno> {
        let socket = self.sockets.remove(&fd).ok_or(Errno::EBADF)?;
        if let Kind::Stream(stream) = &socket.kind
            && socket.options.resets_on_close
        {
            stream.tcp.abort();
        }
        drop(socket);
        self.turn();
        Ok(0)
    }

    /// Implements shutdown(2).
    ///
    /// # Errors
    /// The errors that Linux returns.
    pub fn shut_down(&mut self, fd: Fd, how: i32) -> Result<i64, Errno> {
        let direction = match how {
            SHUT_RD => Shutdown::Read,
            SHUT_WR => Shutdown::Write,
            SHUT_RDWR => Shutdown::Both,
            _ => return Err(Errno::EINVAL),
        };
        let stream = self.stream(fd)?;
        if !stream.was_open() || stream.end().is_some() {
            return Err(Errno::ENOTCONN);
        }
        stream.is_read_shut |= how != SHUT_WR;
        stream.is_write_shut |= how != SHUT_RD;
        stream.tcp.shutdown(direction).map_err(|error| errno(&error))?;
        self.turn();
        Ok(0)
    }
}

/// Returns the error of connect(2) on a socket that was connected before.
fn why_not_again(stream: &mut Stream) -> Errno {
    if let Some(end) = stream.end() {
        return stream.take_error().unwrap_or(end);
    }
    if stream.was_open() { Errno::EISCONN } else { Errno::EALREADY }
}

/// Returns the unspecified address with port 0.
fn any_address(is_v6: bool) -> SocketAddr {
    let ip: IpAddr =
        if is_v6 { Ipv6Addr::UNSPECIFIED.into() } else { Ipv4Addr::UNSPECIFIED.into() };
    SocketAddr::new(ip, 0)
}

/// Returns the flow key from `source` to `destination`. Addresses of different families give a key that
/// matches nothing.
pub(crate) fn flow_key(source: SocketAddr, destination: SocketAddr) -> FlowKey {
    FlowKey::between(source, destination).unwrap_or(FlowKey::NONE)
}
