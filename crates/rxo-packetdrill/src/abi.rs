//! The numbers of Linux that calls and scripts speak in: errors, options, flags.
//!
//! Separate because the host in memory is not to depend on the system it runs on, and because a
//! script names them.

use std::fmt;

/// Why a call failed, as Linux numbers it.
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

/// The number that a script's `name` stands for; `None` when it is not known here.
#[must_use]
pub fn symbol(name: &str) -> Option<i64> {
    SYMBOLS.iter().find(|(known, _)| *known == name).map(|(_, value)| *value)
}

impl Errno {
    /// No such descriptor.
    pub const EBADF: Self = Self(9);
    /// Nothing can be done now without waiting.
    pub const EAGAIN: Self = Self(11);
    /// The address of a buffer is none.
    pub const EFAULT: Self = Self(14);
    /// It is there already.
    pub const EEXIST: Self = Self(17);
    /// It is not there.
    pub const ENOENT: Self = Self(2);
    /// An argument cannot be.
    pub const EINVAL: Self = Self(22);
    /// Something inside went wrong.
    pub const EIO: Self = Self(5);
    /// Nothing can be sent any more.
    pub const EPIPE: Self = Self(32);
    /// There is no such call here.
    pub const ENOSYS: Self = Self(38);
    /// A connection needs an address.
    pub const EDESTADDRREQ: Self = Self(89);
    /// There is no such option here.
    pub const ENOPROTOOPT: Self = Self(92);
    /// There is no such protocol here.
    pub const EPROTONOSUPPORT: Self = Self(93);
    /// There is no such kind of socket here.
    pub const ESOCKTNOSUPPORT: Self = Self(94);
    /// This socket cannot do that.
    pub const EOPNOTSUPP: Self = Self(95);
    /// There is no such family of addresses here.
    pub const EAFNOSUPPORT: Self = Self(97);
    /// The address is taken.
    pub const EADDRINUSE: Self = Self(98);
    /// The connection was given up.
    pub const ECONNABORTED: Self = Self(103);
    /// The peer reset the connection.
    pub const ECONNRESET: Self = Self(104);
    /// It is connected already.
    pub const EISCONN: Self = Self(106);
    /// There is no connection.
    pub const ENOTCONN: Self = Self(107);
    /// The peer did not answer.
    pub const ETIMEDOUT: Self = Self(110);
    /// Nobody has the peer's address.
    pub const EHOSTUNREACH: Self = Self(113);
    /// The peer refused.
    pub const ECONNREFUSED: Self = Self(111);
    /// The connection is being opened.
    pub const EALREADY: Self = Self(114);
    /// The connection begins to be opened.
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
pub(crate) const MSG_EOR: i32 = 0x80;
pub(crate) const MSG_DONTWAIT: i32 = 0x40;
pub(crate) const MSG_WAITALL: i32 = 0x100;
pub(crate) const MSG_NOSIGNAL: i32 = 0x4000;
pub(crate) const MSG_MORE: i32 = 0x8000;

pub(crate) const POLLIN: i16 = 0x1;
pub(crate) const POLLOUT: i16 = 0x4;
pub(crate) const POLLERR: i16 = 0x8;
pub(crate) const POLLHUP: i16 = 0x10;
pub(crate) const POLLNVAL: i16 = 0x20;
pub(crate) const POLLRDHUP: i16 = 0x2000;

pub(crate) const EPOLL_CTL_ADD: i32 = 1;
pub(crate) const EPOLL_CTL_DEL: i32 = 2;
pub(crate) const EPOLL_CTL_MOD: i32 = 3;
pub(crate) const EPOLLET: u32 = 1 << 31;
pub(crate) const EPOLLONESHOT: u32 = 1 << 30;

pub(crate) const SOL_SOCKET: i32 = 1;
pub(crate) const SO_REUSEADDR: i32 = 2;
pub(crate) const SO_TYPE: i32 = 3;
pub(crate) const SO_ERROR: i32 = 4;
pub(crate) const SO_SNDBUF: i32 = 7;
pub(crate) const SO_RCVBUF: i32 = 8;
pub(crate) const SO_KEEPALIVE: i32 = 9;
pub(crate) const SO_LINGER: i32 = 13;
pub(crate) const SO_REUSEPORT: i32 = 15;
pub(crate) const SO_MEMINFO: i32 = 55;

pub(crate) const TCP_NODELAY: i32 = 1;
pub(crate) const TCP_MAXSEG: i32 = 2;
pub(crate) const TCP_CORK: i32 = 3;
pub(crate) const TCP_KEEPIDLE: i32 = 4;
pub(crate) const TCP_KEEPINTVL: i32 = 5;
pub(crate) const TCP_KEEPCNT: i32 = 6;
pub(crate) const TCP_INFO: i32 = 11;
pub(crate) const TCP_QUICKACK: i32 = 12;
pub(crate) const TCP_CONGESTION: i32 = 13;
pub(crate) const TCP_USER_TIMEOUT: i32 = 18;
pub(crate) const TCP_NOTSENT_LOWAT: i32 = 25;
pub(crate) const TCP_CC_INFO: i32 = 26;
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
