//! Two programs, one at each end of a tunnel, and traffic between them. Every byte is checked.

use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsFd;
use std::path::Path;
use std::time::{Duration, Instant};

use rxo::driver::udp::{Outbox, UdpOptions, UdpSocket};
use rxo::driver::wait;
use rxo_peers::{Tunnel, TunnelProgram};
use rxo_testbed::Namespace;

use crate::common::assert_tcp_is_intact;

/// Maximum time for which a test waits for an expected event.
const LONG: Duration = Duration::from_secs(60);

/// Returns the program with these arguments.
pub(crate) fn ours(arguments: &[&str]) -> TunnelProgram {
    TunnelProgram::rxo(Path::new(env!("CARGO_BIN_EXE_rxo-tunnel")), arguments)
}

/// Sends TCP and UDP through the tunnel in both directions, over IPv4 and IPv6.
pub(crate) fn assert_intact_both_ways(tunnel: &Tunnel) {
    let ways =
        [(tunnel.near(), tunnel.far(), Tunnel::FAR), (tunnel.far(), tunnel.near(), Tunnel::NEAR)];
    for (from, to, addresses) in ways {
        for address in addresses {
            assert_tcp_is_intact(from, to, address);
            assert_udp_is_intact(from, to, address);
        }
    }
}

/// Sends trains of few datagrams, so that no queue overflows. The first train waits for the handshake and may
/// be lost.
fn assert_udp_is_intact(from: &Namespace, to: &Namespace, address: IpAddr) {
    let bind = |namespace: &Namespace, address: &str| {
        let address = address.parse().unwrap();
        namespace.run(|| UdpSocket::bind(address, UdpOptions::default())).unwrap().unwrap()
    };
    let any = if address.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
    let (sender, receiver) = (bind(from, any), bind(to, any));
    let to = SocketAddr::new(address, receiver.local_addr().port());
    let (mut sink, mut source, mut outbox) =
        (sender.sink(), receiver.source(), Outbox::new(1 << 17));
    for round in 0..10_u8 {
        let lengths = [vec![1_200; 40], vec![700], vec![1_300; 20]].concat();
        for (n, &bytes) in lengths.iter().enumerate() {
            outbox.room(bytes).unwrap().fill(round.wrapping_mul(31).wrapping_add(n as u8));
            outbox.push(bytes, to);
        }
        assert!(sink.send(&mut outbox));
        let (mut received, ends_at) = (Vec::new(), Instant::now() + LONG);
        while received.len() < lengths.len() {
            assert!(Instant::now() < ends_at, "{} datagrams to {to}", received.len());
            wait::wait_readable(&[source.as_fd()], Some(LONG)).unwrap();
            source.receive(|train| received.extend(train.datagrams().map(<[u8]>::to_vec))).unwrap();
        }
        for (n, (datagram, &bytes)) in received.iter().zip(&lengths).enumerate() {
            let value = round.wrapping_mul(31).wrapping_add(n as u8);
            assert_eq!(*datagram, vec![value; bytes], "datagram {n} to {to}");
        }
    }
}
