//! Congestion marks between the outer and the inner header (RFC 6040), on packets that are really sent.

use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use rxo::driver::udp::{Outbox, UdpOptions, UdpSink, UdpSocket, UdpSource};
use rxo::driver::wait;

use crate::node::{inside, run, try_run};
use crate::peers::star;

const LONG: Duration = Duration::from_secs(60);

/// Rules that count the fields of outer headers, and can mark all of them as a congested router does.
const COUNTING: &str = "table ip outer {
    chain arriving {
        type filter hook prerouting priority -300
        udp dport 51820 ip ecn not-ect counter
        udp dport 51820 ip ecn ect0 counter
        udp dport 51820 ip ecn ect1 counter
        udp dport 51820 ip ecn ce counter
    }
}";

pub(crate) fn marks_reach_the_packet_inside() {
    let (hub, [spoke, _]) = star();
    try_run(&hub.net, "nft -f -", COUNTING).unwrap();
    let counted = || -> Vec<u64> {
        let rules = run(&hub.net, "nft list table ip outer");
        let words: Vec<&str> = rules.split_whitespace().collect();
        let counters = words.windows(2).filter(|two| two[0] == "packets");
        counters.map(|two| two[1].parse().unwrap()).collect()
    };
    for version in [0, 1] {
        let address = inside(1)[version];
        let mut lane = Lane::open(&spoke.net, &hub.net, address);
        let before = counted();
        // What is inside stays, and the outer header is a copy.
        lane.assert_received(&[0, 2, 2, 1, 3], &[0, 2, 2, 1, 3]);
        let marked = counted();
        assert!(
            before.iter().zip(&marked).all(|(before, now)| before < now),
            "{before:?} {marked:?}"
        );
        // A router marks all datagrams. The packet whose sender does not understand that is dropped.
        run(&hub.net, "nft add rule ip outer arriving udp dport 51820 ip ecn set ce");
        lane.assert_received(&[0, 2, 1, 3], &[3, 3, 3]);
        run(&hub.net, "nft flush chain ip outer arriving");
        lane.assert_received(&[2, 0], &[2, 0]);
        run(&hub.net, "nft delete table ip outer");
        try_run(&hub.net, "nft -f -", COUNTING).unwrap();
    }
}

/// A sender and a receiver of datagrams inside the tunnel.
struct Lane {
    sink: UdpSink,
    source: UdpSource,
    to: SocketAddr,
}

impl Lane {
    fn open(
        from: &rxo_testbed::Namespace,
        to: &rxo_testbed::Namespace,
        address: std::net::IpAddr,
    ) -> Self {
        let options = UdpOptions { receive_details: true, ..UdpOptions::default() };
        let bind = |address| UdpSocket::bind(SocketAddr::new(address, 0), options).unwrap();
        let any = if address.is_ipv4() { "0.0.0.0" } else { "::" };
        let sender = from.run(|| bind(any.parse().unwrap())).unwrap();
        let receiver = to.run(|| bind(address)).unwrap();
        Self { sink: sender.sink(), source: receiver.source(), to: receiver.local_addr() }
    }

    /// Sends a datagram for each field, and compares the fields that arrive.
    fn assert_received(&mut self, fields: &[u8], expected: &[u8]) {
        let mut outbox = Outbox::new(1 << 14);
        for &field in fields {
            outbox.room(500).unwrap().fill(field);
            outbox.push_with_ecn(500, self.to, field);
        }
        assert!(self.sink.send(&mut outbox));
        let (mut received, ends_at) = (Vec::new(), Instant::now() + LONG);
        while received.len() < expected.len() {
            assert!(Instant::now() < ends_at, "{received:?} of {expected:?}");
            wait::wait_readable(&[self.source.as_fd()], Some(LONG)).unwrap();
            let each = |train: rxo::driver::udp::Train<'_>| {
                received.extend(train.datagrams().map(|_| train.ecn));
            };
            self.source.receive(each).unwrap();
        }
        assert_eq!(received, expected, "of {fields:?} to {}", self.to);
    }
}
