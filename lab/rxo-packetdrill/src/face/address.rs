//! Socket addresses in C's form.

use std::ffi::c_int;
use std::mem::size_of;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use libc::{sockaddr, sockaddr_in, sockaddr_in6, socklen_t};

use crate::abi::Errno;

/// Reads an address. An IPv4-mapped IPv6 address gives an IPv4 address.
///
/// # Safety
/// `at` is null or points to `bytes` readable bytes.
pub(super) unsafe fn read(at: *const sockaddr, bytes: socklen_t) -> Result<SocketAddr, Errno> {
    if at.is_null() {
        return Err(Errno::EFAULT);
    }
    let bytes = bytes as usize;
    if bytes < size_of::<sockaddr_in>() {
        return Err(Errno::EINVAL);
    }
    // SAFETY: every address begins with its family, and there are at least that many bytes.
    let family = c_int::from(unsafe { at.cast::<libc::sa_family_t>().read_unaligned() });
    match family {
        libc::AF_INET => {
            // SAFETY: `bytes` is at least the size of this form.
            let v4 = unsafe { at.cast::<sockaddr_in>().read_unaligned() };
            let ip = Ipv4Addr::from_bits(u32::from_be(v4.sin_addr.s_addr));
            Ok(SocketAddr::new(ip.into(), u16::from_be(v4.sin_port)))
        }
        libc::AF_INET6 if bytes >= size_of::<sockaddr_in6>() => {
            // SAFETY: `bytes` is at least the size of this form.
            let v6 = unsafe { at.cast::<sockaddr_in6>().read_unaligned() };
            let ip = Ipv6Addr::from(v6.sin6_addr.s6_addr).to_canonical();
            Ok(SocketAddr::new(ip, u16::from_be(v6.sin6_port)))
        }
        libc::AF_INET6 => Err(Errno::EINVAL),
        _ => Err(Errno::EAFNOSUPPORT),
    }
}

/// Writes `address` as far as there is room; as an IPv6 address if `is_v6`. Null writes nothing.
///
/// # Safety
/// Both pointers are null, or `bytes` holds the number of bytes that may be written at `at`.
pub(super) unsafe fn write(
    address: SocketAddr,
    is_v6: bool,
    at: *mut sockaddr,
    bytes: *mut socklen_t,
) -> Result<(), Errno> {
    if at.is_null() || bytes.is_null() {
        return Ok(());
    }
    let image = image(address, is_v6);
    // SAFETY: not null, and the caller guarantees that it holds a length.
    let room = unsafe { bytes.read() } as usize;
    let part = image.len().min(room);
    // SAFETY: not null, and the caller guarantees `room` writable bytes.
    unsafe { std::ptr::copy_nonoverlapping(image.as_ptr(), at.cast::<u8>(), part) };
    // SAFETY: as above.
    unsafe { bytes.write(image.len() as socklen_t) };
    Ok(())
}

/// Encodes an address as in C: family, port, then the rest.
fn image(address: SocketAddr, is_v6: bool) -> Vec<u8> {
    let port = address.port().to_be_bytes();
    let mut image = Vec::new();
    match address.ip() {
        IpAddr::V4(v4) if !is_v6 => {
            image.extend((libc::AF_INET as libc::sa_family_t).to_ne_bytes());
            image.extend(port);
            image.extend(v4.octets());
            image.resize(size_of::<sockaddr_in>(), 0);
        }
        ip => {
            let v6 = match ip {
                IpAddr::V4(v4) => v4.to_ipv6_mapped(),
                IpAddr::V6(v6) => v6,
            };
            image.extend((libc::AF_INET6 as libc::sa_family_t).to_ne_bytes());
            image.extend(port);
            // The flow label.
            image.extend([0; 4]);
            image.extend(v6.octets());
            image.resize(size_of::<sockaddr_in6>(), 0);
        }
    }
    image
}
