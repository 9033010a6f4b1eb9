//! The TAP as an interface: carrier, MTU, names, groups.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6, UdpSocket};
use std::time::Duration;

use rxo_testbed::Lab;

use super::{BOTH, becomes, end, lab, start, state};
use crate::Test;
use crate::at_once::at_once;
use crate::process::wait_until;
use crate::takeover::{PARKED, shell, sorted};

pub(crate) const TESTS: &[Test] = &[
    ("hostlife_the_tap_shows_carrier_and_mtu_of_the_nic", what_the_nic_shows),
    ("hostlife_all_names_of_the_nic_go_with_the_tap_and_come_back", names),
    ("hostlife_a_tap_that_is_renamed_gives_the_nic_its_new_name", renamed),
    ("hostlife_sockets_that_are_bound_to_the_nic_are_named", bound_sockets),
    ("hostlife_groups_that_were_joined_before_are_received", groups),
];

fn what_the_nic_shows() {
    at_once(BOTH, |takes_part| {
        let lab = lab();
        let before = state(&lab);
        let link = || sorted(&lab, "ip -o link show dev eth1");
        let rxo = start(&lab, takes_part);
        assert!(link().contains("LOWER_UP"));
        let peer = lab.peer().interface(Lab::PEER_INTERFACE);
        peer.down().unwrap();
        wait_until("the cable is out", || link().contains("NO-CARRIER"));
        peer.up().unwrap();
        wait_until("the cable is in", || link().contains("LOWER_UP"));
        let nic = if takes_part { PARKED } else { Lab::NIC };
        lab.host().interface(nic).set_mtu(1400).unwrap();
        wait_until("the MTU is the nic's", || link().contains("mtu 1400"));
        lab.host().interface(nic).set_mtu(1500).unwrap();
        wait_until("the MTU is the nic's again", || link().contains("mtu 1500"));
        end(rxo);
        becomes(&lab, &before, &format!("with rxo: {takes_part}"));
    });
    // The link is down from the start.
    let lab = lab();
    let peer = lab.peer().interface(Lab::PEER_INTERFACE);
    peer.down().unwrap();
    let rxo = start(&lab, true).unwrap();
    let link = || sorted(&lab, "ip -o link show dev eth1");
    wait_until("the TAP has no carrier", || link().contains("NO-CARRIER"));
    peer.up().unwrap();
    wait_until("the TAP has carrier", || link().contains("LOWER_UP"));
    rxo.signal("TERM");
    let (code, _, said) = rxo.end();
    assert!(code == Some(0) && said.contains("has no carrier"), "{said}");
}

/// The host can use every name under which a program may know the nic.
fn names() {
    for name in ["eth1", "enp0s31f6ab", "enx0123456789ab"] {
        let lab = lab();
        shell(
            &lab,
            &[
                &format!("ip link set eth1 name {name}"),
                &format!("ip link property add dev {name} altname office0 altname enp9s0"),
                &format!("ip link set {name} alias 'to the office' group 7"),
            ],
        );
        let links = || sorted(&lab, "ip -d -o link show; ip -o address show; ip -o route show");
        let before = links();
        let flags = format!("--nic packet:{name} --host tap:rxo0 --take-over");
        let (rxo, _) = crate::process::Rxo::start(lab.host(), &flags);
        for other in [name, "office0", "enp9s0", "rxo0"] {
            let shown = sorted(&lab, &format!("ip -d -o link show dev {other}"));
            assert!(shown.contains("tun type tap"), "{other}: {shown}");
            assert!(shown.contains(&format!(": {name}:")), "{other}: {shown}");
            assert!(shown.contains("group 7") && shown.contains("to the office"), "{shown}");
        }
        end(Some(rxo));
        assert_eq!(links(), before, "{name}");
    }
}

fn renamed() {
    let lab = lab();
    let rxo = start(&lab, true);
    shell(&lab, &["ip link set eth1 name lan0", "ip link property add dev lan0 altname office0"]);
    // Another interface has the TAP's own name.
    shell(
        &lab,
        &[
            "ip link property del dev lan0 altname rxo0",
            "ip link add rxo0 type veth peer name rxo9",
        ],
    );
    end(rxo);
    let shown = sorted(&lab, "ip -o address show dev office0");
    assert!(shown.contains(": lan0 ") && shown.contains("10.77.0.2/24"), "{shown}");
    assert!(!lab.host().interface(Lab::NIC).exists() && !lab.host().interface(PARKED).exists());
}

/// A socket with a link-local address is bound to its interface's index.
fn bound_sockets() {
    let lab = lab();
    let shown = sorted(&lab, "ip -6 -o address show dev eth1 scope link");
    let address = shown.split_whitespace().nth(3).unwrap().trim_end_matches("/64");
    let index = lab.host().interface(Lab::NIC).index().unwrap();
    let to = SocketAddrV6::new(address.parse().unwrap(), 7999, 0, index);
    let _socket = lab.host().run(|| UdpSocket::bind(to).unwrap()).unwrap();
    let rxo = start(&lab, true).unwrap();
    rxo.signal("TERM");
    let (code, _, said) = rxo.end();
    assert_eq!((code, said.lines().count()), (Some(0), 1), "{said}");
    assert!(said.contains("sockets are bound to packet:eth1 itself"), "{said}");
    assert!(said.contains(&format!("UDP [{address}]:7999")), "{said}");
}

/// A socket that joined groups before the run, as for mDNS, still receives.
fn groups() {
    at_once(BOTH, |takes_part| {
        let lab = lab();
        let v4 = Ipv4Addr::new(239, 7, 7, 7);
        let v6 = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0x77, 0x77);
        let index = lab.host().interface(Lab::NIC).index().unwrap();
        let bind = |any: IpAddr, port: u16| {
            lab.host().run(|| UdpSocket::bind((any, port)).unwrap()).unwrap()
        };
        let members =
            [bind(Ipv4Addr::UNSPECIFIED.into(), 7777), bind(Ipv6Addr::UNSPECIFIED.into(), 7778)];
        members[0].join_multicast_v4(&v4, &Lab::HOST_ADDRESSES.0).unwrap();
        members[1].join_multicast_v6(&v6, index).unwrap();
        let peer_index = lab.peer().interface(Lab::PEER_INTERFACE).index().unwrap();
        let arrives = |to: SocketAddr, member: &UdpSocket| {
            member.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
            let any: IpAddr = if to.is_ipv4() {
                Lab::PEER_ADDRESSES.0.into()
            } else {
                Ipv6Addr::UNSPECIFIED.into()
            };
            let sender = lab.peer().run(|| UdpSocket::bind((any, 0)).unwrap()).unwrap();
            wait_until("a datagram for the group arrives", || {
                sender.send_to(b"hello", to).unwrap();
                member.recv(&mut [0; 8]).is_ok()
            });
        };
        let rows = [
            (SocketAddr::from((v4, 7777)), &members[0]),
            (SocketAddrV6::new(v6, 7778, 0, peer_index).into(), &members[1]),
        ];
        sorted_route(&lab);
        rows.iter().for_each(|(to, member)| arrives(*to, member));
        let rxo = start(&lab, takes_part);
        rows.iter().for_each(|(to, member)| arrives(*to, member));
        end(rxo);
        rows.iter().for_each(|(to, member)| arrives(*to, member));
    });
}

/// The peer sends to groups through its only interface.
fn sorted_route(lab: &Lab) {
    assert!(super::succeeds(lab.peer(), "ip route add 239.0.0.0/8 dev eth0"));
}
