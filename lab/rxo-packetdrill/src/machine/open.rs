//! From a socket to a connection: socket, bind, listen, accept, connect.

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};

use rxo_tcp::{Config, Connection, Secret, State};
use rxo_wire::FlowKey;

use super::call::{Answer, Outcome};
use super::endpoint::Endpoint;
use super::socket::{Kind, Listener, Options, Socket};
use super::{Fd, VirtualHost};
use crate::abi::{AF_INET, AF_INET6, Errno, IPPROTO_TCP, SOCK_CLOEXEC, SOCK_NONBLOCK, SOCK_STREAM};

impl VirtualHost {
    pub(super) fn make(&mut self, domain: i32, kind: i32, protocol: i32) -> Result<i64, Errno> {
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

    pub(super) fn bind(&mut self, fd: Fd, to: SocketAddr) -> Result<i64, Errno> {
        let reuses = self.socket(fd)?.options.reuses_address;
        if !reuses && self.is_taken(to) {
            return Err(Errno::EADDRINUSE);
        }
        match &mut self.socket(fd)?.kind {
            Kind::Fresh { local } if local.is_none() => *local = Some(to),
            _ => return Err(Errno::EINVAL),
        }
        Ok(0)
    }

    fn is_taken(&self, address: SocketAddr) -> bool {
        let by_socket = self.sockets.keys().any(|fd| self.local_address(*fd) == Some(address));
        let by_connection = self.endpoints.values().any(|endpoint| {
            let pair = endpoint.tcp.pair();
            SocketAddr::new(pair.source(), pair.source_port()) == address
        });
        address.port() != 0 && (by_socket || by_connection)
    }

    pub(super) fn listen(&mut self, fd: Fd, backlog: i32) -> Result<i64, Errno> {
        let free = SocketAddr::new(self.any_address(fd), self.free_port());
        let socket = self.socket(fd)?;
        let backlog = usize::try_from(backlog).unwrap_or(0);
        match &mut socket.kind {
            Kind::Listener(listener) => listener.backlog = backlog,
            Kind::Fresh { local } => {
                let local = local.unwrap_or(free);
                let ready = VecDeque::new();
                socket.kind = Kind::Listener(Listener { local, backlog, ready, signals: 0 });
            }
            Kind::Stream(_) => return Err(Errno::EINVAL),
        }
        Ok(0)
    }

    pub(super) fn accept(&mut self, fd: Fd) -> Option<Outcome> {
        match self.take_ready(fd) {
            Ok(Some(number)) => Some(self.give_descriptor(fd, number)),
            Ok(None) => None,
            Err(error) => Some(Err(error)),
        }
    }

    /// The next open connection of a listener; `None` if the call must wait.
    fn take_ready(&mut self, fd: Fd) -> Result<Option<u32>, Errno> {
        let socket = self.socket(fd)?;
        let Kind::Listener(listener) = &mut socket.kind else { return Err(Errno::EINVAL) };
        match listener.ready.pop_front() {
            None if socket.options.is_nonblocking => Err(Errno::EAGAIN),
            ready => Ok(ready),
        }
    }

    fn give_descriptor(&mut self, listener: Fd, number: u32) -> Outcome {
        let socket = self.socket(listener)?;
        let (is_v6, mut options) = (socket.is_v6, socket.options.clone());
        options.is_nonblocking = false;
        let fd = self.add_socket(Socket { is_v6, kind: Kind::Stream(number), options });
        let endpoint = self.endpoints.get_mut(&number).ok_or(Errno::ECONNABORTED)?;
        (endpoint.fd, endpoint.listener) = (Some(fd), None);
        let pair = endpoint.tcp.pair();
        let peer = SocketAddr::new(pair.destination(), pair.destination_port());
        Ok(Answer { value: fd.into(), peer: Some(peer), ..Answer::default() })
    }

    /// Connects. `has_begun` means that this call has sent the SYN already. `None` if it must wait.
    pub(super) fn connect(
        &mut self,
        fd: Fd,
        to: SocketAddr,
        has_begun: bool,
    ) -> Option<Result<i64, Errno>> {
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

    /// Whether the connection attempt succeeded; `None` if it has not ended.
    fn connected(&mut self, fd: Fd) -> Option<Result<i64, Errno>> {
        match self.stream(fd) {
            Err(error) => Some(Err(error)),
            Ok(endpoint) if endpoint.was_open => Some(Ok(0)),
            Ok(endpoint) if endpoint.tcp.is_closed() => {
                Some(Err(endpoint.error.take().unwrap_or(Errno::ECONNABORTED)))
            }
            Ok(_) => None,
        }
    }

    fn open(&mut self, fd: Fd, to: SocketAddr) -> Result<(), Errno> {
        let free = SocketAddr::new(self.own_address(to.ip()), self.free_port());
        let (settings, now) = (self.settings.clone(), self.now);
        let socket = self.socket(fd)?;
        let local = match socket.kind {
            Kind::Fresh { local } => local.unwrap_or(free),
            Kind::Listener(_) => return Err(Errno::EISCONN),
            Kind::Stream(_) => return Err(self.why_not_again(fd)),
        };
        let config = socket.options.config(&settings, to.is_ipv4());
        let is_nagle_off = !config.nagle;
        let tcp = Connection::open_active(config, flow_key(local, to), SECRET, now)
            .map_err(|_| Errno::EINVAL)?;
        let endpoint = Endpoint { is_nagle_off, ..Endpoint::new(tcp) };
        let number = self.add_endpoint(Endpoint { fd: Some(fd), ..endpoint });
        self.socket(fd)?.kind = Kind::Stream(number);
        Ok(())
    }

    /// The error of connect(2) on a socket that was connected before.
    fn why_not_again(&mut self, fd: Fd) -> Errno {
        match self.stream(fd) {
            Err(error) => error,
            Ok(endpoint) if endpoint.tcp.is_closed() => {
                endpoint.error.take().unwrap_or(Errno::ECONNABORTED)
            }
            Ok(endpoint) if endpoint.was_open => Errno::EISCONN,
            Ok(_) => Errno::EALREADY,
        }
    }

    /// Makes a connection for a SYN to `listener`; `None` if its queue is full.
    pub(super) fn open_passive(&mut self, listener: Fd, pair: FlowKey) -> Option<u32> {
        let settings = self.settings.clone();
        let opening =
            self.endpoints.values().filter(|endpoint| endpoint.listener == Some(listener));
        let waiting = opening.count();
        let socket = self.sockets.get(&listener)?;
        let Kind::Listener(Listener { backlog, .. }) = &socket.kind else { return None };
        if waiting > *backlog {
            return None;
        }
        let mut config: Config = socket.options.config(&settings, pair.source().is_ipv4());
        config.ecn = settings.accepts_ecn;
        let is_nagle_off = !config.nagle;
        let tcp = Connection::open_passive(config, pair, SECRET).ok()?;
        debug_assert_eq!(tcp.state(), State::Listen);
        let endpoint = Endpoint { is_nagle_off, ..Endpoint::new(tcp) };
        Some(self.add_endpoint(Endpoint { listener: Some(listener), ..endpoint }))
    }

    fn any_address(&self, fd: Fd) -> IpAddr {
        if self.is_v6(fd) {
            IpAddr::V6(core::net::Ipv6Addr::UNSPECIFIED)
        } else {
            IpAddr::V4(core::net::Ipv4Addr::UNSPECIFIED)
        }
    }

    fn own_address(&self, to: IpAddr) -> IpAddr {
        match to {
            IpAddr::V4(_) => self.settings.local_v4.into(),
            IpAddr::V6(_) => self.settings.local_v6.into(),
        }
    }

    fn free_port(&self) -> u16 {
        let is_used = |port: u16| {
            let mut pairs = self.endpoints.values().map(|endpoint| endpoint.tcp.pair());
            pairs.any(|pair| pair.source_port() == port)
        };
        (FIRST_FREE_PORT..u16::MAX).find(|port| !is_used(*port)).unwrap_or(u16::MAX)
    }
}

/// The flow key from `source` to `destination`, which should be of one family; otherwise it matches
/// nothing.
pub(crate) fn flow_key(source: SocketAddr, destination: SocketAddr) -> FlowKey {
    let ports = u32::from(source.port()) << 16 | u32::from(destination.port());
    match (source.ip(), destination.ip()) {
        (IpAddr::V4(from), IpAddr::V4(to)) => FlowKey::v4(from.into(), to.into(), ports, 0),
        (IpAddr::V6(from), IpAddr::V6(to)) => {
            let mut addresses = [0; 32];
            addresses[..16].copy_from_slice(&from.octets());
            addresses[16..].copy_from_slice(&to.octets());
            FlowKey::v6(&addresses, ports, 0)
        }
        _ => FlowKey::NOBODY,
    }
}

/// The same in every run, so that a script has one outcome.
const SECRET: Secret = Secret([0x7061_636b_6574, 0x0064_7269_6c6c]);
const FIRST_FREE_PORT: u16 = 32_768;
