//! Creates the interfaces of tunnels.

use std::net::IpAddr;

use super::Interface;
use crate::error::Result;

/// The configuration of a VXLAN tunnel between two hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vxlan {
    /// The outer address of this host.
    pub local: IpAddr,
    /// The outer address of the other host.
    pub remote: IpAddr,
    /// The UDP destination port of the tunnel.
    pub port: u16,
    /// `true` if the outer UDP headers have a checksum.
    pub has_checksum: bool,
}

impl Interface<'_> {
    /// Creates this interface as one end of a VXLAN tunnel with the network identifier 7. The interface is down.
    ///
    /// # Errors
    /// If the interface's name is taken, or the kernel has no VXLAN.
    pub fn create_vxlan(&self, tunnel: Vxlan) -> Result<()> {
        let Vxlan { local, remote, port, has_checksum } = tunnel;
        let octets = |address| match address {
            IpAddr::V4(address) => address.octets().to_vec(),
            IpAddr::V6(address) => address.octets().to_vec(),
        };
        let (remote, local, checksum) = (octets(remote), octets(local), [u8::from(has_checksum)]);
        let (remote_at, local_at) =
            if remote.len() == 4 { (REMOTE, LOCAL) } else { (REMOTE_6, LOCAL_6) };
        let without = [u8::from(!has_checksum)];
        self.create(self.of_kind(
            "vxlan",
            &[
                (NETWORK, &7_u32.to_ne_bytes()),
                (remote_at, &remote),
                (local_at, &local),
                (PORT, &port.to_be_bytes()),
                (CHECKSUM, &checksum),
                (SENDS_NONE_6, &without),
                (TAKES_NONE_6, &without),
            ],
        ))
    }
}

/// The number of the netlink attribute for a VXLAN's network identifier (`IFLA_VXLAN_…` of
/// `linux/if_link.h`).
const NETWORK: u16 = 1;
const REMOTE: u16 = 2;
const LOCAL: u16 = 4;
const PORT: u16 = 15;
const REMOTE_6: u16 = 16;
const LOCAL_6: u16 = 17;
const CHECKSUM: u16 = 18;
const SENDS_NONE_6: u16 = 19;
const TAKES_NONE_6: u16 = 20;
