//! The ways in which a user can connect host and rxo.

use std::fs;

use rxo_testbed::{Lab, LabOptions};
use serde_json::Value;

use crate::process::{Rxo, wait_until};

/// A way to connect host and rxo.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SetUp {
    /// The nic has no address, does not answer, and its hardware address differs from the TAP's.
    Apart,
    /// The commands of docs/run.md: the TAP gets the nic's hardware address and the host's addresses.
    ByHand,
    /// rxo moves the configuration itself, by `--take-over`.
    TakeOver,
}

impl SetUp {
    pub(crate) const ALL: [Self; 3] = [Self::Apart, Self::ByHand, Self::TakeOver];

    /// Returns the network as it is before rxo starts.
    pub(crate) fn lab(self, options: LabOptions) -> Lab {
        match self {
            Self::Apart => Lab::through_with(options).unwrap(),
            Self::ByHand => Lab::with_bare_nic(options).unwrap(),
            Self::TakeOver => {
                let lab = Lab::with_addressed_nic(options).unwrap();
                await_routes(&lab);
                lab
            }
        }
    }

    /// Returns the flags of `rxo run`.
    pub(crate) const fn flags(self) -> &'static str {
        match self {
            Self::Apart => "--nic packet:wire0 --host tap:rxo0",
            Self::ByHand => "--nic packet:eth1 --host tap:rxo0",
            Self::TakeOver => "--nic packet:eth1 --host tap:rxo0 --take-over",
        }
    }

    /// Configures the host's side after rxo has started.
    pub(crate) fn attach(self, lab: &Lab) {
        if self == Self::ByHand {
            let mac = lab.host().interface(Lab::NIC).mac().unwrap();
            lab.host().interface("rxo0").set_mac(mac).unwrap();
        }
        if self != Self::TakeOver {
            lab.attach_host("rxo0").unwrap();
        }
    }
}

/// Waits until the kernel has added the routes to the host's own IPv6 addresses, a moment after the
/// addresses.
pub(crate) fn await_routes(lab: &Lab) {
    let read = |name| fs::read_to_string(format!("/proc/thread-self/net/{name}"));
    let have_all = || {
        let (addresses, routes) = (read("if_inet6").unwrap(), read("ipv6_route").unwrap());
        let mut addresses = addresses.lines().filter_map(|line| line.split(' ').next());
        addresses.all(|address| routes.contains(&format!("{address} 80 ")))
    };
    wait_until("the host has its routes", || {
        !lab.host().has_ipv6() || lab.host().run(have_all).unwrap()
    });
}

/// Returns a network with a running rxo, which has `flags` besides those of the setup.
pub(crate) fn start(set_up: SetUp, options: LabOptions, flags: &str) -> (Lab, Rxo) {
    let lab = set_up.lab(options);
    let (rxo, _) = Rxo::start(lab.host(), &format!("{} {flags}", set_up.flags()));
    set_up.attach(&lab);
    (lab, rxo)
}

/// Asserts that the peer received few reports of duplicates: a busy machine retransmits some segments
/// needlessly, but if each frame were delivered twice, about half would be reported.
pub(crate) fn assert_nothing_came_twice(lab: &Lab, totals: &Value) {
    let told = lab.peer().stack_counters().unwrap().duplicates_told;
    let packets = totals["nic_in"]["packets"].as_u64().unwrap();
    assert!(told * 10 <= packets, "{told} duplicates of {packets} packets");
}
