//! Proxy: tun2proxy takes packets from a TUN of the near network, and carries on their connections in the far one.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use rxo_testbed::error::{Context, Result};
use rxo_testbed::{Namespace, Offload, until};

use super::{Programs, file};
use crate::folder::Folder;
use crate::process::Process;

#[derive(Debug)]
pub(super) struct Proxy {
    // Dropped first: it ends the program.
    pub(super) process: Process,
    pub(super) near: Namespace,
    pub(super) far: Namespace,
    /// `true` if this is the patched program.
    pub(super) has_rxo: bool,
    _folder: Folder,
}

const TUN: &str = "proxied0";
const NEAR: [IpAddr; 2] = [IpAddr::V4(Ipv4Addr::new(10, 98, 0, 1)), IpAddr::V6(inside(1))];

const fn inside(host: u16) -> Ipv6Addr {
    Ipv6Addr::new(0xfd98, 0, 0, 0, 0, 0, 0, host)
}

impl Proxy {
    pub(super) const FAR: [IpAddr; 2] =
        [IpAddr::V4(Ipv4Addr::new(10, 98, 0, 2)), IpAddr::V6(inside(2))];

    /// Starts the program in the far network, to which it opens connections, and moves its TUN to the near one.
    pub(super) fn start(programs: &Programs) -> Result<Self> {
        let folder = Folder::new("proxy")?;
        let (near, far) = (Namespace::new("near")?, Namespace::new("far")?);
        for address in Self::FAR {
            far.interface("lo").add_address(address, if address.is_ipv4() { 32 } else { 128 })?;
        }
        let program = file(&programs.folder, "tun2proxy-bin");
        let words = [&program, "--proxy", "none", "--tun", TUN, "--ipv6-enabled"];
        let mut process =
            Process::start(&far, &words.map(str::to_owned), &folder.path().join("out"))?;
        let tun = far.interface(TUN);
        // rxo enables the TUN's offloads where it finds the interface, so the TUN moves after that.
        let is_ready = || {
            process.said().contains("starting")
                && (!programs.have_rxo
                    || tun.offload(Offload::TransmitSegmentation).unwrap_or(false))
        };
        until(|| Ok(is_ready() || !process.is_alive()))?
            .context(|| format!("{program} makes no interface"))?;
        process.check()?;
        tun.move_to(&near)?;
        let tun = near.interface(TUN);
        for address in NEAR {
            tun.add_address(address, if address.is_ipv4() { 24 } else { 64 })?;
        }
        tun.up()?;
        Ok(Self { process, near, far, has_rxo: programs.have_rxo, _folder: folder })
    }
}
