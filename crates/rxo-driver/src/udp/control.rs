//! Control messages: the properties of a message that a system call passes in addition to its bytes and its
//! address.
//!
//! This module is separate because only it depends on the layout of a `cmsghdr`. Contract: writes only within its
//! own memory, and reads only what the kernel has filled in.
#![allow(unsafe_code, reason = "control messages are structures of C in bytes")]

use std::mem::size_of;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use libc::{c_int, c_uint, cmsghdr};

use crate::sys::Plain;

// SAFETY: the structure has only integers.
unsafe impl Plain for libc::in_pktinfo {}
// SAFETY: the structure has only integers and bytes.
unsafe impl Plain for libc::in6_pktinfo {}
// SAFETY: an integer.
unsafe impl Plain for u16 {}
// SAFETY: an integer.
unsafe impl Plain for u8 {}

/// A buffer for the control messages of one `msghdr`, with the alignment of a `cmsghdr`. Its control messages are: the
/// size of the datagrams, if the message is a train of several; their ECN bits; and the source address (when sending)
/// or the destination address and the interface (when receiving).
#[derive(Clone, Copy, Debug)]
pub(super) struct Control {
    /// The memory of the control messages. It exceeds the needs of this module's options, because an adopted
    /// socket may have other options, whose messages come first.
    memory: [u64; 32],
    used: usize,
}

/// The details of a received message, read from its control messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Details {
    /// The size of the datagrams in the message; `None` if it is a single datagram.
    pub(super) datagram_bytes: Option<usize>,
    /// The address that the datagrams were sent to, and the index of the interface that they arrived on; `None` if
    /// the kernel did not report them.
    pub(super) to: Option<(IpAddr, u32)>,
    /// The ECN bits of the IP headers of the datagrams.
    pub(super) ecn: u8,
}

impl Control {
    pub(super) const EMPTY: Self = Self { memory: [0; 32], used: 0 };

    /// The memory's length, in bytes.
    pub(super) const BYTES: usize = size_of::<[u64; 32]>();

    pub(super) fn as_mut_ptr(&mut self) -> *mut libc::c_void {
        self.memory.as_mut_ptr().cast()
    }

    /// Returns the length of the messages that were added, in bytes.
    pub(super) const fn used(&self) -> usize {
        self.used
    }

    /// Marks the message as a train whose datagrams have `bytes` bytes each.
    pub(super) fn set_datagram_bytes(&mut self, bytes: usize) {
        self.push(libc::SOL_UDP, libc::UDP_SEGMENT, bytes as u16);
    }

    /// Sets the ECN bits of the datagrams. `to` is the address that they are sent to; its IP version selects the
    /// option.
    pub(super) fn set_ecn(&mut self, ecn: u8, to: IpAddr) {
        let (level, kind) = match to {
            IpAddr::V4(_) => (libc::IPPROTO_IP, libc::IP_TOS),
            IpAddr::V6(_) => (libc::IPPROTO_IPV6, libc::IPV6_TCLASS),
        };
        self.push(level, kind, c_int::from(ecn & ECN_BITS));
    }

    /// Sets the source address.
    pub(super) fn set_source(&mut self, from: IpAddr) {
        match from {
            IpAddr::V4(ip) => {
                let mut info = libc::in_pktinfo::zeroed();
                info.ipi_spec_dst.s_addr = u32::from(ip).to_be();
                self.push(libc::IPPROTO_IP, libc::IP_PKTINFO, info);
            }
            IpAddr::V6(ip) => {
                let mut info = libc::in6_pktinfo::zeroed();
                info.ipi6_addr.s6_addr = ip.octets();
                self.push(libc::IPPROTO_IPV6, libc::IPV6_PKTINFO, info);
            }
        }
    }

    fn push<T: Plain>(&mut self, level: c_int, kind: c_int, value: T) {
        let bytes = size_of::<T>() as c_uint;
        // SAFETY: these functions only compute.
        let (length, space) = unsafe { (libc::CMSG_LEN(bytes), libc::CMSG_SPACE(bytes) as usize) };
        assert!(self.used + space <= Self::BYTES, "one message of each kind fits");
        // SAFETY: `used` is a multiple of the alignment of a header, and the header and the value after it fit.
        unsafe {
            let header: *mut cmsghdr = self.memory.as_mut_ptr().byte_add(self.used).cast();
            (*header).cmsg_level = level;
            (*header).cmsg_type = kind;
            (*header).cmsg_len = length as _;
            libc::CMSG_DATA(header).cast::<T>().write_unaligned(value);
        }
        self.used += space;
    }
}

/// A mask of the ECN bits in a traffic class (RFC 3168 section 5).
const ECN_BITS: u8 = 3;

impl Details {
    /// Reads the control messages of a message that the kernel has filled in.
    pub(super) fn of(message: &libc::msghdr) -> Self {
        let mut details = Self::default();
        // SAFETY: the kernel has filled in the control messages, which the header still points to.
        let mut next = unsafe { libc::CMSG_FIRSTHDR(message) };
        // SAFETY: the pointer is null or to a control message in that memory.
        while let Some(header) = unsafe { next.as_ref() } {
            details.read(header);
            // SAFETY: as for the first.
            next = unsafe { libc::CMSG_NXTHDR(message, header) };
        }
        details
    }

    fn read(&mut self, header: &cmsghdr) {
        match (header.cmsg_level, header.cmsg_type) {
            (libc::SOL_UDP, libc::UDP_GRO) => {
                let bytes = value::<c_int>(header).and_then(|bytes| usize::try_from(bytes).ok());
                self.datagram_bytes = bytes.filter(|bytes| *bytes > 0);
            }
            (libc::IPPROTO_IP, libc::IP_TOS) | (libc::IPPROTO_IPV6, libc::IPV6_TCLASS) => {
                let class = value::<c_int>(header).map(|class| class as u8);
                // IPv4 gives one byte.
                let class = class.or_else(|| value::<u8>(header));
                self.ecn = class.unwrap_or(0) & ECN_BITS;
            }
            (libc::IPPROTO_IP, libc::IP_PKTINFO) => {
                self.to = value::<libc::in_pktinfo>(header).map(|info| {
                    let ip = Ipv4Addr::from(u32::from_be(info.ipi_addr.s_addr));
                    (ip.into(), info.ipi_ifindex.cast_unsigned())
                });
            }
            (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO) => {
                self.to = value::<libc::in6_pktinfo>(header).map(|info| {
                    let ip = Ipv6Addr::from(info.ipi6_addr.s6_addr);
                    (ip.to_canonical(), info.ipi6_ifindex)
                });
            }
            _ => {}
        }
    }
}

/// Returns the value of a control message as a `T`; `None` if the message is shorter than a `T`.
fn value<T: Plain>(header: &cmsghdr) -> Option<T> {
    // SAFETY: this function only computes.
    let wanted = unsafe { libc::CMSG_LEN(size_of::<T>() as c_uint) } as usize;
    #[allow(clippy::unnecessary_cast, reason = "the length has another type in other C libraries")]
    let bytes = header.cmsg_len as usize;
    if bytes < wanted {
        return None;
    }
    // SAFETY: the value follows its header, and the header says that it has this length.
    Some(unsafe { libc::CMSG_DATA(header).cast::<T>().read_unaligned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_can_be_read() {
        for from in ["10.0.0.7", "fd00::7"] {
            let from: IpAddr = from.parse().unwrap();
            let mut control = Control::EMPTY;
            control.set_datagram_bytes(1_200);
            control.set_ecn(0xff, from);
            control.set_source(from);
            let mut message = libc::msghdr::zeroed();
            message.msg_control = control.as_mut_ptr();
            message.msg_controllen = control.used() as _;
            let details = Details::of(&message);
            // The kernel reports the size of received datagrams by another option (`UDP_GRO`) than the one that
            // sets it (`UDP_SEGMENT`).
            assert_eq!((details.datagram_bytes, details.ecn), (None, 3));
            let ip = details.to.map(|(ip, _)| ip);
            // For IPv4, the address to send from is in another field than the address that a datagram was sent to.
            assert_eq!(ip, Some(if from.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { from }));
        }
    }
}
