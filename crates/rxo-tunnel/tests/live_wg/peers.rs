//! Several peers of one interface.

use std::io::ErrorKind;
use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rxo_testbed::until;

use crate::common::assert_tcp_is_intact;
use crate::node::{self, Node, inside, run};

/// A hub with two threads for each direction, and its two peers.
pub(crate) fn star() -> (Node, [Node; 2]) {
    let hub = Node::start("hub", &["--threads", "4"]);
    node::star(hub, [(); 2].map(|()| Node::start("spoke", &[])))
}

pub(crate) fn each_has_its_own_addresses() {
    let (hub, spokes) = star();
    for version in [0, 1] {
        for (spoke, n) in spokes.iter().zip([2, 3]) {
            assert_tcp_is_intact(&hub.net, &spoke.net, inside(n)[version]);
            assert_tcp_is_intact(&spoke.net, &hub.net, inside(1)[version]);
        }
        assert_only_its_own(&hub, &spokes[0], (3, 2), version);
        assert_only_its_own(&hub, &spokes[1], (2, 3), version);
    }
    // The narrower network of the second spoke is gone, so the first one's is in force.
    hub.wg(&format!("set %i peer {} remove", spokes[1].public_key));
    let ips = hub.wg("show %i allowed-ips");
    assert_eq!(ips, format!("{}\t10.99.0.0/24 fd99::/64\n", spokes[0].public_key));
}

/// Sends from an address of the other spoke, then from the own one. Only the second datagram arrives.
fn assert_only_its_own(hub: &Node, spoke: &Node, (other, own): (u8, u8), version: usize) {
    let (other, own) = (inside(other)[version], inside(own)[version]);
    let bits = if other.is_ipv4() { 32 } else { 128 };
    spoke.net.interface("lo").add_address(other, bits).unwrap();
    let bind = |node: &Node, ip| node.net.run(|| UdpSocket::bind((ip, 0))).unwrap().unwrap();
    let receiver = bind(hub, inside(1)[version]);
    receiver.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    for (from, text) in [(other, "forged"), (own, "own")] {
        bind(spoke, from).send_to(text.as_bytes(), receiver.local_addr().unwrap()).unwrap();
    }
    let mut bytes = [0; 16];
    let (count, from) = loop {
        match receiver.recv_from(&mut bytes) {
            // The process was stopped for a while.
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            received => break received.unwrap(),
        }
    };
    assert_eq!((&bytes[..count], from.ip()), (&b"own"[..], own));
    run(&spoke.net, &format!("ip address delete {other}/{bits} dev lo"));
}

/// Moves the first spoke to another address of the wire, and then to another port.
pub(crate) fn a_peer_moves() {
    let (hub, [spoke, _]) = star();
    assert_tcp_is_intact(&spoke.net, &hub.net, inside(1)[0]);
    assert_eq!(hub.endpoint_of(&spoke), "10.77.2.2:51820");
    run(&spoke.net, "ip address delete 10.77.2.2/24 dev wire");
    run(&spoke.net, "ip address add 10.77.2.9/24 dev wire");
    assert_tcp_is_intact(&spoke.net, &hub.net, inside(1)[0]);
    assert_eq!(hub.endpoint_of(&spoke), "10.77.2.9:51820");
    assert_tcp_is_intact(&hub.net, &spoke.net, inside(2)[0]);
    spoke.wg("set %i listen-port 4500");
    assert_tcp_is_intact(&spoke.net, &hub.net, inside(1)[0]);
    assert_eq!(hub.endpoint_of(&spoke), "10.77.2.9:4500");
    assert_tcp_is_intact(&hub.net, &spoke.net, inside(2)[0]);
}

/// Raises the MTU of both ends while they run, as `wg-quick` does behind the start.
pub(crate) fn a_larger_mtu_is_followed() {
    const BYTES: usize = 8_000;
    let (hub, [spoke, _]) = star();
    for (node, wire) in [(&hub, "wire2"), (&spoke, "wire")] {
        node.net.interface(wire).set_mtu(9_000).unwrap();
        node.net.interface(&node.interface).set_mtu(8_920).unwrap();
    }
    let bind = |node: &Node, ip| node.net.run(|| UdpSocket::bind((ip, 0))).unwrap().unwrap();
    let (sender, receiver) = (bind(&spoke, inside(2)[0]), bind(&hub, inside(1)[0]));
    receiver.set_nonblocking(true).unwrap();
    let arrives = || {
        sender.send_to(&[7; BYTES], receiver.local_addr().unwrap()).unwrap();
        let mut bytes = [0; 2 * BYTES];
        Ok(receiver.recv(&mut bytes).is_ok_and(|count| bytes[..count] == [7; BYTES]))
    };
    until(arrives).unwrap().unwrap();
    assert_tcp_is_intact(&spoke.net, &hub.net, inside(1)[0]);
    assert_tcp_is_intact(&hub.net, &spoke.net, inside(2)[1]);
}

pub(crate) fn a_peer_is_removed() {
    let (hub, [stays, goes]) = star();
    let ends = AtomicBool::new(false);
    let received = || -> u64 {
        let all = hub.wg("show %i transfer");
        let line = all.lines().find(|line| line.starts_with(&goes.public_key));
        line.map_or(0, |line| line.split('\t').nth(1).unwrap().parse().unwrap())
    };
    std::thread::scope(|scope| {
        let flood = || {
            let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
            while !ends.load(Ordering::Relaxed) {
                // The queue may be full.
                _ = socket.send_to(&[7; 1_000], (inside(1)[0], 9));
            }
        };
        let net = &goes.net;
        let flood = scope.spawn(move || net.run(flood).unwrap());
        let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            until(|| Ok(received() > 100_000)).unwrap().unwrap();
            hub.wg(&format!("set %i peer {} remove", goes.public_key));
            assert_eq!(hub.wg("show %i peers").trim(), stays.public_key);
            assert_tcp_is_intact(&stays.net, &hub.net, inside(1)[0]);
        }));
        ends.store(true, Ordering::Relaxed);
        flood.join().unwrap();
        done.unwrap();
    });
    hub.add_peer(&goes, "endpoint 10.77.3.2:51820 allowed-ips 10.99.0.3/32,fd99::3/128");
    assert_tcp_is_intact(&hub.net, &goes.net, inside(3)[0]);
    assert_tcp_is_intact(&goes.net, &hub.net, inside(1)[0]);
}
