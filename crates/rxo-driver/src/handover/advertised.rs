//! Default route that the kernel learned from a router advertisement.
//!
//! The kernel renews such a route, and applies the rest of an advertisement, only if the route has flags that no
//! netlink request can set. A copy without these flags would block the renewal: the kernel would not recognise
//! the copy as its own route, could not add a second route, and would ignore the rest of the advertisement.
//! Addresses would then expire. So the copy is made by the older ioctl, which sets these flags. The metric of the
//! copy is higher by one, so that the next advertisement replaces it by the kernel's own route.
#![allow(unsafe_code, reason = "the ioctl takes a structure")]

use std::io;
use std::net::Ipv6Addr;
use std::os::fd::AsFd;

use libc::c_ulong;

use crate::sys;

/// A default route that is valid until the next router advertisement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Advertised {
    pub(super) gateway: Ipv6Addr,
    pub(super) metric: u32,
    /// The router's preference, two bits, as RFC 4191 encodes it.
    pub(super) preference: u8,
    /// The remaining lifetime in seconds; `None` if it is unlimited.
    pub(super) seconds: Option<u32>,
}

impl Advertised {
    /// Adds the route to the interface with this index. Its metric is one higher than that of the kernel's
    /// route.
    ///
    /// # Errors
    /// If the kernel refuses the route.
    pub(super) fn add(&self, index: u32) -> io::Result<()> {
        let socket = sys::socket(libc::AF_INET6, libc::SOCK_DGRAM, 0)?;
        let expires = if self.seconds.is_some() { EXPIRES } else { 0 };
        let preference = u32::from(self.preference & 3) << PREFERENCE_SHIFT;
        let mut request = RouteRequest {
            destination: [0; 16],
            source: [0; 16],
            gateway: self.gateway.octets(),
            kind: 0,
            prefix_lengths: [0; 2],
            metric: self.metric.saturating_add(1),
            ticks: c_ulong::from(self.seconds.unwrap_or(0)) * TICKS_A_SECOND,
            flags: UP | GATEWAY | DEFAULT | ADVERTISED | expires | preference,
            index: index.cast_signed(),
        };
        // SAFETY: for an IPv6 socket this request takes an `in6_rtmsg`, which
        // `RouteRequest` is.
        unsafe { sys::ioctl(socket.as_fd(), libc::SIOCADDRT as c_ulong, &mut request) }?;
        Ok(())
    }
}

/// The kernel's structure `in6_rtmsg`, with which the ioctl adds an IPv6 route.
#[repr(C)]
struct RouteRequest {
    destination: [u8; 16],
    source: [u8; 16],
    gateway: [u8; 16],
    kind: u32,
    prefix_lengths: [u16; 2],
    metric: u32,
    /// The lifetime of the route in ticks of `USER_HZ`.
    ticks: c_ulong,
    flags: u32,
    index: i32,
}

/// The value of `USER_HZ`, in ticks per second; the same on every architecture.
const TICKS_A_SECOND: c_ulong = 100;
// linux/route.h and linux/ipv6_route.h.
const UP: u32 = 0x0001;
const GATEWAY: u32 = 0x0002;
const DEFAULT: u32 = 0x0001_0000;
const ADVERTISED: u32 = 0x0004_0000;
const EXPIRES: u32 = 0x0040_0000;
const PREFERENCE_SHIFT: u32 = 27;
