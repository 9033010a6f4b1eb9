//! Three namespaces in a row: rxo's host, a router or bridge, and a Linux peer.

use std::net::IpAddr;

use rxo::host::{HostConfig, Route};
use rxo::live::host::{self, RunningHost};
use rxo::live::{Device, DeviceOptions};
use rxo_testbed::{Namespace, create_veth};

pub(crate) struct Row {
    pub(crate) peer: Namespace,
    /// The router or bridge between host and peer.
    _middle: Namespace,
    pub(crate) host: Namespace,
}

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

impl Row {
    /// Creates the row: host `a0` - `a1` middle `b0` - `b1` peer. The link from the middle to the peer has an
    /// MTU of `mtu` bytes. All other MTUs are as usual, also the one that the peer has for its side of that
    /// link.
    fn wired(mtu: u32) -> Self {
        let [host, middle, peer] = ["host", "middle", "peer"].map(|n| Namespace::new(n).unwrap());
        create_veth(&host.interface("a0"), &middle.interface("a1")).unwrap();
        create_veth(&middle.interface("b0"), &peer.interface("b1")).unwrap();
        let wire = host.interface("a0");
        wire.set_arp(false).unwrap();
        if host.has_ipv6() {
            host.set_sysctl("net.ipv6.conf.a0.disable_ipv6", "1").unwrap();
        }
        middle.interface("b0").set_mtu(mtu).unwrap();
        for interface in [wire, middle.interface("a1"), middle.interface("b0")] {
            interface.up().unwrap();
        }
        peer.interface("b1").up().unwrap();
        Self { peer, _middle: middle, host }
    }

    /// Creates a router between two networks, 10.1.0.0/24 of the host and 10.2.0.0/24 of the peer, and
    /// between two IPv6 networks with fd01 and fd02.
    pub(crate) fn routed(mtu: u32) -> Self {
        let row = Self::wired(mtu);
        let (router, peer) = (&row._middle, row.peer.interface("b1"));
        router.set_sysctl("net.ipv4.ip_forward", "1").unwrap();
        router.interface("a1").add_address(ip("10.1.0.1"), 24).unwrap();
        router.interface("b0").add_address(ip("10.2.0.1"), 24).unwrap();
        peer.add_address(ip("10.2.0.2"), 24).unwrap();
        peer.add_route((ip("10.1.0.0"), 24), Some(ip("10.2.0.1"))).unwrap();
        if row.peer.has_ipv6() {
            router.set_sysctl("net.ipv6.conf.all.forwarding", "1").unwrap();
            router.interface("a1").add_address(ip("fd01::1"), 64).unwrap();
            router.interface("b0").add_address(ip("fd02::1"), 64).unwrap();
            peer.add_address(ip("fd02::2"), 64).unwrap();
            peer.add_route((ip("fd01::"), 64), Some(ip("fd02::1"))).unwrap();
        }
        row
    }

    /// Creates a bridge in one network, 10.1.0.0/24: it drops frames that are too large without a message.
    pub(crate) fn bridged(mtu: u32) -> Self {
        let row = Self::wired(mtu);
        let bridge = row._middle.interface("br0");
        bridge.create_bridge().unwrap();
        for port in ["a1", "b0"] {
            row._middle.interface(port).join_bridge(&bridge).unwrap();
        }
        bridge.up().unwrap();
        row.peer.interface("b1").add_address(ip("10.1.0.9"), 24).unwrap();
        row
    }

    /// Starts rxo's host with the addresses 10.1.0.2 and fd01::2.
    pub(crate) fn start(&self, change: impl FnOnce(&mut HostConfig)) -> RunningHost {
        let addresses = ["10.1.0.2/24", "fd01::2/64"].map(|cidr| cidr.parse().unwrap());
        let mut config = host::config(addresses.to_vec());
        config.routes = ["10.1.0.1", "fd01::1"].map(|via| Route::default_by(ip(via))).to_vec();
        change(&mut config);
        let name = "packet:a0".parse().unwrap();
        let open = move || Device::open(&name, DeviceOptions::default());
        self.host.run(|| host::start_with("test".to_owned(), open, config).unwrap()).unwrap()
    }
}
