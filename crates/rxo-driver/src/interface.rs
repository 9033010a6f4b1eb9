//! Settings of a network interface: index, MTU, up or down, hardware address, offloads.
//!
//! This module is separate because several modules read and change the settings: those for packet sockets, for
//! TAPs and for runs. Contract: a change takes effect at once, and the caller can undo it with the values that it
//! read before. An error names the interface and the change.
#![allow(unsafe_code, reason = "interface ioctls take an ifreq with a union in it")]

mod ethtool;
mod receiving;

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use libc::{c_short, c_ulong, ifreq};
use rxo_device::DeviceError;

pub use self::receiving::ReceiveSettings;

use self::ethtool::Value;
use crate::{fault, sys};

/// An interface of the network namespace of this thread.
#[derive(Debug)]
pub struct Interface {
    name: String,
    /// The index, which identifies the interface. The name does not: it may change, or another interface may get
    /// it.
    index: i32,
    control: OwnedFd,
}

/// An offload of an interface that can be turned on and off, as `ethtool -k` lists it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Feature {
    /// The device verifies checksums of received packets.
    ReceiveChecksum,
    /// The device completes checksums of sent packets.
    TransmitChecksum,
    /// The device segments TCP GSO frames.
    Tso,
    /// The kernel segments GSO frames late, in software.
    Gso,
    /// The kernel coalesces received packets into GSO frames.
    Gro,
}

impl Interface {
    /// Finds the interface `name`; alternative names work too.
    ///
    /// # Errors
    /// If there is no such interface, or no socket can be opened.
    pub fn find(name: &str) -> Result<Self, DeviceError> {
        let control = sys::socket(libc::AF_INET, libc::SOCK_DGRAM, 0)
            .map_err(|e| fault::system(format!("cannot ask about interface {name}"), e))?;
        let missing = || DeviceError::Usage(fault::no_interface(name));
        let mut request = sys::interface_request(name).ok_or_else(missing)?;
        // SAFETY: the code takes an `ifreq`.
        unsafe { sys::ioctl(control.as_fd(), libc::SIOCGIFINDEX, &mut request) }
            .map_err(|_| missing())?;
        // SAFETY: the kernel has filled in this member.
        let index = unsafe { request.ifr_ifru.ifru_ifindex };
        Ok(Self { name: name.to_owned(), index, control })
    }

    /// Returns the name of the interface with this index; `None` if there is none.
    #[must_use]
    pub fn name_of(index: u32) -> Option<String> {
        let control = sys::socket(libc::AF_INET, libc::SOCK_DGRAM, 0).ok()?;
        Self::named(control.as_fd(), index)
    }

    /// Returns the name of the interface with this index, as [`Interface::name_of`] does, but uses the open
    /// socket `control`. Returns `None` if there is no such interface.
    pub(crate) fn named(control: BorrowedFd<'_>, index: u32) -> Option<String> {
        let mut request = <ifreq as sys::Plain>::zeroed();
        request.ifr_ifru.ifru_ifindex = index.cast_signed();
        // SAFETY: the code takes an `ifreq`.
        unsafe { sys::ioctl(control, libc::SIOCGIFNAME, &mut request) }.ok()?;
        let bytes = request.ifr_name.iter().take_while(|&&c| c != 0).map(|&c| c as u8);
        String::from_utf8(bytes.collect()).ok()
    }

    /// Returns the name by which the caller has found the interface.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the interface's index in its namespace.
    ///
    /// # Errors
    /// If the interface no longer exists.
    pub fn index(&self) -> Result<i32, DeviceError> {
        self.request().map(|_| self.index)
    }

    /// Returns the MTU, the size of the largest IP packet, in bytes.
    ///
    /// # Errors
    /// If the interface no longer exists.
    pub fn mtu(&self) -> Result<u32, DeviceError> {
        let request = self.get(libc::SIOCGIFMTU, "read the MTU of")?;
        // SAFETY: the kernel has filled in this member.
        Ok(u32::try_from(unsafe { request.ifr_ifru.ifru_mtu }).unwrap_or(0))
    }

    /// Sets the MTU, in bytes.
    ///
    /// # Errors
    /// If the device refuses that size, or privilege is missing.
    pub fn set_mtu(&self, mtu: u32) -> Result<(), DeviceError> {
        let mut request = self.request()?;
        request.ifr_ifru.ifru_mtu = i32::try_from(mtu).unwrap_or(i32::MAX);
        self.call(libc::SIOCSIFMTU, &mut request, &format!("set an MTU of {mtu} on"))
    }

    /// Returns the capacity of the transmit queue in packets (`txqueuelen`).
    ///
    /// # Errors
    /// If the interface no longer exists.
    pub fn queue_packets(&self) -> Result<u32, DeviceError> {
        let request = self.get(libc::SIOCGIFTXQLEN, "read the queue length of")?;
        // SAFETY: the kernel has filled in this member, as `ifr_qlen`, an `int`.
        Ok(u32::try_from(unsafe { request.ifr_ifru.ifru_metric }).unwrap_or(0))
    }

    /// Sets the capacity of the transmit queue, in packets.
    ///
    /// # Errors
    /// If the device refuses that number, or privilege is missing.
    pub fn set_queue_packets(&self, packets: u32) -> Result<(), DeviceError> {
        let mut request = self.request()?;
        request.ifr_ifru.ifru_metric = i32::try_from(packets).unwrap_or(i32::MAX);
        self.call(libc::SIOCSIFTXQLEN, &mut request, "set the queue length of")
    }

    /// Returns `true` if the interface is up.
    ///
    /// # Errors
    /// If the interface no longer exists.
    pub fn is_up(&self) -> Result<bool, DeviceError> {
        Ok(self.flags()? & libc::IFF_UP as c_short != 0)
    }

    /// Brings the interface up or takes it down.
    ///
    /// # Errors
    /// If the interface no longer exists, or privilege is missing.
    pub fn set_up(&self, up: bool) -> Result<(), DeviceError> {
        let flags = self.flags()?;
        let bit = libc::IFF_UP as c_short;
        let mut request = self.request()?;
        request.ifr_ifru.ifru_flags = if up { flags | bit } else { flags & !bit };
        let what = if up { "bring up" } else { "take down" };
        self.call(libc::SIOCSIFFLAGS, &mut request, what)
    }

    /// Returns the Ethernet address; all zeros for loopback.
    ///
    /// # Errors
    /// If the interface no longer exists.
    pub fn hardware_address(&self) -> Result<[u8; 6], DeviceError> {
        let request = self.get(libc::SIOCGIFHWADDR, "read the address of")?;
        // SAFETY: the kernel has filled in this member.
        let address = unsafe { request.ifr_ifru.ifru_hwaddr };
        let mut bytes = [0; 6];
        for (to, from) in bytes.iter_mut().zip(address.sa_data) {
            *to = from as u8;
        }
        Ok(bytes)
    }

    /// Returns `true` if the interface's frames begin with an Ethernet header.
    ///
    /// # Errors
    /// If the interface no longer exists.
    pub fn is_ethernet(&self) -> Result<bool, DeviceError> {
        let request = self.get(libc::SIOCGIFHWADDR, "read the address of")?;
        // SAFETY: the kernel has filled in this member.
        let kind = unsafe { request.ifr_ifru.ifru_hwaddr }.sa_family;
        Ok(matches!(kind, libc::ARPHRD_ETHER | libc::ARPHRD_LOOPBACK))
    }

    /// Returns `true` if `feature` is on.
    ///
    /// # Errors
    /// If the device does not report the feature.
    pub fn feature(&self, feature: Feature) -> Result<bool, DeviceError> {
        let mut value = Value { command: feature.commands().0, data: 0 };
        self.ethtool(&mut value, &format!("read {feature:?} of"))?;
        Ok(value.data != 0)
    }

    /// Turns `feature` on or off.
    ///
    /// # Errors
    /// If the device refuses, or privilege is missing.
    pub fn set_feature(&self, feature: Feature, on: bool) -> Result<(), DeviceError> {
        let mut value = Value { command: feature.commands().1, data: u32::from(on) };
        self.ethtool(&mut value, &format!("turn {feature:?} {} on", if on { "on" } else { "off" }))
    }

    fn flags(&self) -> Result<c_short, DeviceError> {
        let request = self.get(libc::SIOCGIFFLAGS, "read the state of")?;
        // SAFETY: the kernel has filled in this member.
        Ok(unsafe { request.ifr_ifru.ifru_flags })
    }

    /// Calls the `ethtool` ioctl for this interface; an error message names the operation as `what`. `value`
    /// must be the structure of its command, and begins with the command's number.
    fn ethtool<T: ethtool::Command>(&self, value: &mut T, what: &str) -> Result<(), DeviceError> {
        let mut request = self.request()?;
        request.ifr_ifru.ifru_data = std::ptr::from_mut(value).cast();
        self.call(libc::SIOCETHTOOL, &mut request, what)
    }

    fn get(&self, code: c_ulong, what: &str) -> Result<ifreq, DeviceError> {
        let mut request = self.request()?;
        self.call(code, &mut request, what)?;
        Ok(request)
    }

    /// Builds a request for this interface with its current name.
    fn request(&self) -> Result<ifreq, DeviceError> {
        // Uses the open socket, because a confined process may not create another.
        let name =
            u32::try_from(self.index).ok().and_then(|it| Self::named(self.control.as_fd(), it));
        name.and_then(|name| sys::interface_request(&name))
            .ok_or_else(|| DeviceError::Gone(self.name.clone()))
    }

    fn call(&self, code: c_ulong, request: &mut ifreq, what: &str) -> Result<(), DeviceError> {
        // SAFETY: every code passed in this file takes an `ifreq`; a pointer in it refers to the structure of
        // its command, which outlives the call.
        match unsafe { sys::ioctl(self.control.as_fd(), code, request) } {
            Ok(_) => Ok(()),
            Err(error) => Err(self.refused(what, error)),
        }
    }

    fn refused(&self, what: &str, error: io::Error) -> DeviceError {
        let name = &self.name;
        let remedy = match error.raw_os_error() {
            Some(libc::ENODEV | libc::ENXIO) => return DeviceError::Gone(name.clone()),
            Some(libc::EPERM | libc::EACCES) => "; run as root or give CAP_NET_ADMIN",
            Some(libc::EINVAL) => "; the device does not take this value",
            Some(libc::EOPNOTSUPP) => "; the device cannot do this",
            _ => "",
        };
        fault::system(format!("cannot {what} interface {name}{remedy}"), error)
    }
}

impl Feature {
    /// Returns the `ethtool` commands that read and set the feature.
    const fn commands(self) -> (u32, u32) {
        match self {
            Self::ReceiveChecksum => (0x14, 0x15),
            Self::TransmitChecksum => (0x16, 0x17),
            Self::Tso => (0x1e, 0x1f),
            Self::Gso => (0x23, 0x24),
            Self::Gro => (0x2b, 0x2c),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_can_be_asked_about() {
        let loopback = Interface::find("lo").unwrap();
        assert!(loopback.index().unwrap() > 0);
        assert!(loopback.mtu().unwrap() >= 1500);
        assert_eq!(loopback.hardware_address().unwrap(), [0; 6]);
        loopback.is_up().unwrap();
        loopback.feature(Feature::Gso).unwrap();
    }

    #[test]
    fn a_name_that_does_not_exist_is_a_usage_error() {
        for name in ["rxo-nowhere", "", "a-name-far-too-long-for-it"] {
            let error = Interface::find(name).unwrap_err();
            assert!(matches!(error, DeviceError::Usage(_)), "{error}");
        }
    }
}
