//! Adds addresses and routes to an interface that this process created.

use std::net::IpAddr;

use rxo_device::DeviceError;
use rxo_netlink::{Netlink, Request};

use crate::fault;
use crate::interface::Interface;

impl Interface {
    /// Adds the address `ip` with a prefix of `prefix` bits to the interface; the system then has a route to
    /// that prefix. Duplicate address detection is skipped. An address that the interface already has is not
    /// an error. The kernel removes the address together with the interface.
    ///
    /// # Errors
    /// If the prefix is too long, privilege is missing, or the interface no longer exists.
    pub fn add_address(&self, ip: IpAddr, prefix: u8) -> Result<(), DeviceError> {
        let (family, bytes) = family(ip);
        let header = [&[family, prefix, libc::IFA_F_NODAD as u8, 0][..], &self.index_bytes()?];
        let request = Request::new(libc::RTM_NEWADDR, &header.concat())
            .flags(libc::NLM_F_CREATE | libc::NLM_F_REPLACE)
            .attribute(libc::IFA_LOCAL, &bytes)
            .attribute(libc::IFA_ADDRESS, &bytes);
        self.change(&request, &format!("add the address {ip}/{prefix} to"))
    }

    /// Adds a route to the first `prefix` bits of `ip` through this interface, without a gateway. The kernel
    /// removes the route together with the interface, which must be up.
    ///
    /// # Errors
    /// If there is a route to the same prefix with the same metric, bits of `ip` beyond the prefix are set,
    /// privilege is missing, or the interface is down or no longer exists.
    pub fn add_route(&self, ip: IpAddr, prefix: u8) -> Result<(), DeviceError> {
        self.add_route_in(libc::RT_TABLE_MAIN.into(), ip, prefix)
    }

    /// Adds a route as [`add_route`](Self::add_route) does, in the routing table with the number `table`.
    pub(crate) fn add_route_in(
        &self,
        table: u32,
        ip: IpAddr,
        prefix: u8,
    ) -> Result<(), DeviceError> {
        let (family, bytes) = family(ip);
        let scope = if ip.is_ipv4() { libc::RT_SCOPE_LINK } else { libc::RT_SCOPE_UNIVERSE };
        let kind = [libc::RT_TABLE_UNSPEC, libc::RTPROT_STATIC, scope, libc::RTN_UNICAST];
        // An existing route is the host's, and is never replaced.
        let request =
            Request::new(libc::RTM_NEWROUTE, &[[family, prefix, 0, 0], kind, [0; 4]].concat())
                .flags(libc::NLM_F_CREATE | libc::NLM_F_EXCL)
                .attribute(libc::RTA_DST, &bytes)
                .attribute(libc::RTA_OIF, &self.index_bytes()?)
                .attribute(libc::RTA_TABLE, &table.to_ne_bytes());
        self.change(&request, &format!("add a route to {ip}/{prefix} through"))
    }

    fn index_bytes(&self) -> Result<[u8; 4], DeviceError> {
        Ok(self.index()?.to_ne_bytes())
    }

    fn change(&self, request: &Request, what: &str) -> Result<(), DeviceError> {
        Netlink::route()
            .and_then(|netlink| netlink.change(request))
            .map_err(|error| fault::system(format!("cannot {what} {}", self.name()), error))
    }
}

fn family(ip: IpAddr) -> (u8, Vec<u8>) {
    match ip {
        IpAddr::V4(v4) => (libc::AF_INET as u8, v4.octets().to_vec()),
        IpAddr::V6(v6) => (libc::AF_INET6 as u8, v6.octets().to_vec()),
    }
}
