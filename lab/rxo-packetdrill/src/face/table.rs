//! The table of functions as in `packetdrill.h`: 33 pointers, in this order.
//!
//! In C, `fcntl` and `ioctl` are variadic, and Rust cannot define such functions. In Linux's
//! calling conventions for x86-64 and AArch64, the argument after the named ones is passed like a
//! named one, so they are declared with it. It is not read where the caller passes none.

use std::ffi::{c_int, c_longlong, c_uint, c_ulong, c_void};

use libc::{
    epoll_event, iovec, loff_t, msghdr, nfds_t, pollfd, size_t, sockaddr, socklen_t, ssize_t,
    timeval, timezone, useconds_t,
};

use super::{connections, control, epoll, network, text};

type Data = *mut c_void;

/// `struct packetdrill_interface`.
#[repr(C)]
pub(crate) struct Interface {
    pub(super) userdata: Data,
    pub(super) free: unsafe extern "C" fn(Data),
    pub(super) socket: unsafe extern "C" fn(Data, c_int, c_int, c_int) -> c_int,
    pub(super) bind: unsafe extern "C" fn(Data, c_int, *const sockaddr, socklen_t) -> c_int,
    pub(super) listen: unsafe extern "C" fn(Data, c_int, c_int) -> c_int,
    pub(super) accept: unsafe extern "C" fn(Data, c_int, *mut sockaddr, *mut socklen_t) -> c_int,
    pub(super) connect: unsafe extern "C" fn(Data, c_int, *const sockaddr, socklen_t) -> c_int,
    pub(super) read: unsafe extern "C" fn(Data, c_int, *mut c_void, size_t) -> ssize_t,
    pub(super) readv: unsafe extern "C" fn(Data, c_int, *const iovec, c_int) -> ssize_t,
    pub(super) recv: unsafe extern "C" fn(Data, c_int, *mut c_void, size_t, c_int) -> ssize_t,
    pub(super) recvfrom: unsafe extern "C" fn(
        Data,
        c_int,
        *mut c_void,
        size_t,
        c_int,
        *mut sockaddr,
        *mut socklen_t,
    ) -> ssize_t,
    pub(super) recvmsg: unsafe extern "C" fn(Data, c_int, *mut msghdr, c_int) -> ssize_t,
    pub(super) write: unsafe extern "C" fn(Data, c_int, *const c_void, size_t) -> ssize_t,
    pub(super) writev: unsafe extern "C" fn(Data, c_int, *const iovec, c_int) -> ssize_t,
    pub(super) send: unsafe extern "C" fn(Data, c_int, *const c_void, size_t, c_int) -> ssize_t,
    pub(super) sendto: unsafe extern "C" fn(
        Data,
        c_int,
        *const c_void,
        size_t,
        c_int,
        *const sockaddr,
        socklen_t,
    ) -> ssize_t,
    pub(super) sendmsg: unsafe extern "C" fn(Data, c_int, *const msghdr, c_int) -> ssize_t,
    pub(super) fcntl: unsafe extern "C" fn(Data, c_int, c_int, c_int) -> c_int,
    pub(super) ioctl: unsafe extern "C" fn(Data, c_int, c_ulong, *mut c_int) -> c_int,
    pub(super) close: unsafe extern "C" fn(Data, c_int) -> c_int,
    pub(super) shutdown: unsafe extern "C" fn(Data, c_int, c_int) -> c_int,
    pub(super) getsockopt:
        unsafe extern "C" fn(Data, c_int, c_int, c_int, *mut c_void, *mut socklen_t) -> c_int,
    pub(super) setsockopt:
        unsafe extern "C" fn(Data, c_int, c_int, c_int, *const c_void, socklen_t) -> c_int,
    pub(super) poll: unsafe extern "C" fn(Data, *mut pollfd, nfds_t, c_int) -> c_int,
    pub(super) netdev_send: unsafe extern "C" fn(Data, *const c_void, size_t) -> c_int,
    pub(super) netdev_receive:
        unsafe extern "C" fn(Data, *mut c_void, *mut size_t, *mut c_longlong) -> c_int,
    pub(super) usleep: unsafe extern "C" fn(Data, useconds_t) -> c_int,
    pub(super) gettimeofday: unsafe extern "C" fn(Data, *mut timeval, *mut timezone) -> c_int,
    pub(super) epoll_create: unsafe extern "C" fn(Data, c_int) -> c_int,
    pub(super) epoll_ctl:
        unsafe extern "C" fn(Data, c_int, c_int, c_int, *mut epoll_event) -> c_int,
    pub(super) epoll_wait:
        unsafe extern "C" fn(Data, c_int, *mut epoll_event, c_int, c_int) -> c_int,
    pub(super) pipe: unsafe extern "C" fn(Data, *mut c_int) -> c_int,
    pub(super) splice:
        unsafe extern "C" fn(Data, c_int, *mut loff_t, c_int, *mut loff_t, size_t, c_uint) -> c_int,
}

impl Interface {
    pub(super) fn new(userdata: Data) -> Self {
        Self {
            userdata,
            free: super::free,
            socket: connections::socket,
            bind: connections::bind,
            listen: connections::listen,
            accept: connections::accept,
            connect: connections::connect,
            read: text::read,
            readv: text::readv,
            recv: text::recv,
            recvfrom: text::recvfrom,
            recvmsg: text::recvmsg,
            write: text::write,
            writev: text::writev,
            send: text::send,
            sendto: text::sendto,
            sendmsg: text::sendmsg,
            fcntl: control::fcntl,
            ioctl: control::ioctl,
            close: connections::close,
            shutdown: connections::shutdown,
            getsockopt: control::getsockopt,
            setsockopt: control::setsockopt,
            poll: control::poll,
            netdev_send: network::netdev_send,
            netdev_receive: network::netdev_receive,
            usleep: network::usleep,
            gettimeofday: network::gettimeofday,
            epoll_create: epoll::epoll_create,
            epoll_ctl: epoll::epoll_ctl,
            epoll_wait: epoll::epoll_wait,
            pipe: control::pipe,
            splice: control::splice,
        }
    }
}

const _: () = assert!(size_of::<Interface>() == MEMBERS * size_of::<Data>());
const MEMBERS: usize = 33;
