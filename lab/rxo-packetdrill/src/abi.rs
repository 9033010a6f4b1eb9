//! Linux's numbers for errors, options and flags.
//!
//! Separate because the host in memory must not depend on the system that it runs on, and because
//! scripts use the names.

use std::fmt;

/// An error number of Linux.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Errno(pub i32);

impl fmt::Display for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match name_of(self.0) {
            Some(name) => f.write_str(name),
            None => write!(f, "errno {}", self.0),
        }
    }
}

fn name_of(number: i32) -> Option<&'static str> {
    let named = SYMBOLS.iter().find(|(name, value)| {
        name.starts_with('E') && !name.starts_with("EPOLL") && *value == i64::from(number)
    });
    named.map(|(name, _)| *name)
}

/// Returns the value of the symbol `name` in a script; `None` if the name is unknown.
#[must_use]
pub fn symbol(name: &str) -> Option<i64> {
    SYMBOLS.iter().find(|(known, _)| *known == name).map(|(_, value)| *value)
}

impl Errno {
    /// Bad descriptor.
    pub const EBADF: Self = Self(9);
    /// The call would block.
    pub const EAGAIN: Self = Self(11);
    /// Bad buffer address.
    pub const EFAULT: Self = Self(14);
    /// Already exists.
    pub const EEXIST: Self = Self(17);
    /// Does not exist.
    pub const ENOENT: Self = Self(2);
    /// Invalid argument.
    pub const EINVAL: Self = Self(22);
    /// Internal error.
    pub const EIO: Self = Self(5);
    /// The connection can send nothing more.
    pub const EPIPE: Self = Self(32);
    /// The call is not supported.
    pub const ENOSYS: Self = Self(38);
    /// A destination address is required.
    pub const EDESTADDRREQ: Self = Self(89);
    /// The option is not supported.
    pub const ENOPROTOOPT: Self = Self(92);
    /// The protocol is not supported.
    pub const EPROTONOSUPPORT: Self = Self(93);
    /// The socket type is not supported.
    pub const ESOCKTNOSUPPORT: Self = Self(94);
    /// The operation is not supported on this socket.
    pub const EOPNOTSUPP: Self = Self(95);
    /// The address family is not supported.
    pub const EAFNOSUPPORT: Self = Self(97);
    /// The address is in use.
    pub const EADDRINUSE: Self = Self(98);
    /// The connection was aborted.
    pub const ECONNABORTED: Self = Self(103);
    /// The peer reset the connection.
    pub const ECONNRESET: Self = Self(104);
    /// Already connected.
    pub const EISCONN: Self = Self(106);
    /// Not connected.
    pub const ENOTCONN: Self = Self(107);
    /// The connection timed out.
    pub const ETIMEDOUT: Self = Self(110);
    /// The host is unreachable.
    pub const EHOSTUNREACH: Self = Self(113);
    /// The connection was refused.
    pub const ECONNREFUSED: Self = Self(111);
    /// A connection attempt is in progress already.
    pub const EALREADY: Self = Self(114);
    /// A connection attempt has begun.
    pub const EINPROGRESS: Self = Self(115);
}

pub(crate) const AF_INET: i32 = 2;
pub(crate) const AF_INET6: i32 = 10;
pub(crate) const SOCK_STREAM: i32 = 1;
pub(crate) const SOCK_NONBLOCK: i32 = 0o4000;
pub(crate) const SOCK_CLOEXEC: i32 = 0o2_000_000;
pub(crate) const IPPROTO_TCP: i32 = 6;

pub(crate) const O_RDWR: i32 = 2;
pub(crate) const O_NONBLOCK: i32 = 0o4000;
pub(crate) const F_GETFD: i32 = 1;
pub(crate) const F_SETFD: i32 = 2;
pub(crate) const F_GETFL: i32 = 3;
pub(crate) const F_SETFL: i32 = 4;

pub(crate) const SIOCINQ: u64 = 0x541b;
pub(crate) const SIOCOUTQ: u64 = 0x5411;
pub(crate) const SIOCOUTQNSD: u64 = 0x894b;

pub(crate) const SHUT_RD: i32 = 0;
pub(crate) const SHUT_WR: i32 = 1;
pub(crate) const SHUT_RDWR: i32 = 2;

pub(crate) const MSG_PEEK: i32 = 0x2;
pub(crate) const MSG_DONTWAIT: i32 = 0x40;
pub(crate) const MSG_WAITALL: i32 = 0x100;
pub(crate) const MSG_NOSIGNAL: i32 = 0x4000;

pub(crate) const POLLIN: i16 = 0x1;
pub(crate) const POLLOUT: i16 = 0x4;
pub(crate) const POLLERR: i16 = 0x8;
pub(crate) const POLLHUP: i16 = 0x10;
pub(crate) const POLLNVAL: i16 = 0x20;
pub(crate) const POLLRDHUP: i16 = 0x2000;

pub(crate) const SOL_SOCKET: i32 = 1;
pub(crate) const SO_REUSEADDR: i32 = 2;
pub(crate) const SO_TYPE: i32 = 3;
pub(crate) const SO_ERROR: i32 = 4;
pub(crate) const SO_SNDBUF: i32 = 7;
pub(crate) const SO_RCVBUF: i32 = 8;
pub(crate) const SO_KEEPALIVE: i32 = 9;
pub(crate) const SO_LINGER: i32 = 13;
pub(crate) const SO_REUSEPORT: i32 = 15;

pub(crate) const TCP_NODELAY: i32 = 1;
pub(crate) const TCP_MAXSEG: i32 = 2;
pub(crate) const TCP_KEEPIDLE: i32 = 4;
pub(crate) const TCP_KEEPINTVL: i32 = 5;
pub(crate) const TCP_KEEPCNT: i32 = 6;
pub(crate) const TCP_QUICKACK: i32 = 12;
pub(crate) const TCP_CONGESTION: i32 = 13;
pub(crate) const TCP_USER_TIMEOUT: i32 = 18;
pub(crate) const TCP_INQ: i32 = 36;

/// Every name that a script may use.
const SYMBOLS: &[(&str, i64)] = &[
    ("ENOENT", 2),
    ("EIO", 5),
    ("EBADF", 9),
    ("EAGAIN", 11),
    ("EWOULDBLOCK", 11),
    ("EFAULT", 14),
    ("EEXIST", 17),
    ("EINVAL", 22),
    ("EPIPE", 32),
    ("ENOSYS", 38),
    ("EDESTADDRREQ", 89),
    ("EMSGSIZE", 90),
    ("ENOPROTOOPT", 92),
    ("EPROTONOSUPPORT", 93),
    ("ESOCKTNOSUPPORT", 94),
    ("EOPNOTSUPP", 95),
    ("EAFNOSUPPORT", 97),
    ("EADDRINUSE", 98),
    ("EADDRNOTAVAIL", 99),
    ("ENETUNREACH", 101),
    ("ECONNABORTED", 103),
    ("ECONNRESET", 104),
    ("EISCONN", 106),
    ("ENOTCONN", 107),
    ("ETIMEDOUT", 110),
    ("ECONNREFUSED", 111),
    ("EHOSTUNREACH", 113),
    ("EALREADY", 114),
    ("EINPROGRESS", 115),
    ("AF_INET", 2),
    ("AF_INET6", 10),
    ("SOCK_STREAM", 1),
    ("SOCK_DGRAM", 2),
    ("SOCK_NONBLOCK", 0o4000),
    ("SOCK_CLOEXEC", 0o2_000_000),
    ("IPPROTO_TCP", 6),
    ("IPPROTO_UDP", 17),
    ("O_RDONLY", 0),
    ("O_RDWR", 2),
    ("O_NONBLOCK", 0o4000),
    ("F_GETFL", 3),
    ("F_SETFL", 4),
    ("SIOCINQ", 0x541b),
    ("FIONREAD", 0x541b),
    ("SIOCOUTQ", 0x5411),
    ("SIOCOUTQNSD", 0x894b),
    ("SHUT_RD", 0),
    ("SHUT_WR", 1),
    ("SHUT_RDWR", 2),
    ("MSG_PEEK", 0x2),
    ("MSG_DONTWAIT", 0x40),
    ("MSG_EOR", 0x80),
    ("MSG_WAITALL", 0x100),
    ("MSG_NOSIGNAL", 0x4000),
    ("MSG_MORE", 0x8000),
    ("POLLIN", 0x1),
    ("POLLOUT", 0x4),
    ("POLLERR", 0x8),
    ("POLLHUP", 0x10),
    ("POLLNVAL", 0x20),
    ("POLLRDHUP", 0x2000),
    ("EPOLLIN", 0x1),
    ("EPOLLOUT", 0x4),
    ("EPOLLERR", 0x8),
    ("EPOLLHUP", 0x10),
    ("EPOLLRDHUP", 0x2000),
    ("EPOLLONESHOT", 1 << 30),
    ("EPOLLET", 1 << 31),
    ("EPOLL_CTL_ADD", 1),
    ("EPOLL_CTL_DEL", 2),
    ("EPOLL_CTL_MOD", 3),
    ("SOL_SOCKET", 1),
    ("SOL_TCP", 6),
    ("SO_REUSEADDR", 2),
    ("SO_TYPE", 3),
    ("SO_ERROR", 4),
    ("SO_SNDBUF", 7),
    ("SO_RCVBUF", 8),
    ("SO_KEEPALIVE", 9),
    ("SO_LINGER", 13),
    ("SO_REUSEPORT", 15),
    ("TCP_NODELAY", 1),
    ("TCP_MAXSEG", 2),
    ("TCP_CORK", 3),
    ("TCP_KEEPIDLE", 4),
    ("TCP_KEEPINTVL", 5),
    ("TCP_KEEPCNT", 6),
    ("TCP_QUICKACK", 12),
    ("TCP_CONGESTION", 13),
    ("TCP_USER_TIMEOUT", 18),
    ("TCP_NOTSENT_LOWAT", 25),
    ("TCP_INQ", 36),
    ("TCP_CM_INQ", 36),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_agree() {
        assert_eq!(symbol("ECONNRESET"), Some(i64::from(Errno::ECONNRESET.0)));
        assert_eq!(Errno::EAGAIN.to_string(), "EAGAIN");
        assert_eq!(Errno(4000).to_string(), "errno 4000");
        assert_eq!(symbol("NO_SUCH_NAME"), None);
    }
}
