//! Two ends of the example of a tunnel in tasks of a multi-threaded runtime: every byte arrives.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::fd::AsFd;
use std::thread;

use rxo::driver::udp::{UdpOptions, UdpSocket};
use rxo::driver::{DeviceSink, Tap, TapKind};
use rxo_testbed::traffic::{BulkConfig, BulkTransfer};
use rxo_testbed::{Namespace, create_veth};

#[path = "../../examples/tokio_tun.rs"]
mod tokio_tun;

use crate::Test;

pub(crate) const TESTS: &[Test] =
    &[("a_tunnel_in_tasks_that_move_between_threads_carries_every_byte", every_byte)];

/// The task's state must be `Send`: a multi-threaded runtime moves it.
const fn may_move<T: Send>() {}
const _: () = {
    may_move::<rxo::driver::Device>();
    may_move::<DeviceSink>();
    may_move::<rxo::driver::TapSource>();
    may_move::<rxo::driver::udp::UdpSink>();
    may_move::<rxo::driver::udp::UdpSource>();
    may_move::<rxo::io::PacketReader<rxo::driver::TapSource>>();
    may_move::<rxo::io::PacketWriter<DeviceSink>>();
};

const OUTSIDE: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 91, 0, 1), Ipv4Addr::new(10, 91, 0, 2)];
const INSIDE: [IpAddr; 2] =
    [IpAddr::V4(Ipv4Addr::new(10, 92, 0, 1)), IpAddr::V4(Ipv4Addr::new(10, 92, 0, 2))];
const PORT: u16 = 4_500;

/// Opens the end number `at` of the tunnel in its network: a TUN taken over by its descriptor, and a socket.
fn end(network: &Namespace, at: usize) -> (Tap, UdpSocket) {
    network
        .run(|| {
            let opened = Tap::open("tun9", TapKind::Tun).unwrap();
            let tun = Tap::from_fd(opened.as_fd().try_clone_to_owned().unwrap()).unwrap();
            tun.set_mtu(1_400).unwrap();
            network.interface("tun9").add_address(INSIDE[at], 24).unwrap();
            network.interface("tun9").up().unwrap();
            let local = SocketAddr::new(OUTSIDE[at].into(), PORT);
            let socket = std::net::UdpSocket::bind(local).unwrap();
            // One end is connected, the other is not.
            if at == 0 {
                socket.connect((OUTSIDE[1], PORT)).unwrap();
            }
            (tun, UdpSocket::from_fd(socket.into(), UdpOptions::default()).unwrap())
        })
        .unwrap()
}

fn every_byte() {
    let networks = [Namespace::new("near").unwrap(), Namespace::new("far").unwrap()];
    let wires = [networks[0].interface("wire"), networks[1].interface("wire")];
    create_veth(&wires[0], &wires[1]).unwrap();
    for (wire, address) in wires.iter().zip(OUTSIDE) {
        wire.add_address(address.into(), 24).unwrap();
        wire.up().unwrap();
    }
    let ends = [end(&networks[0], 0), end(&networks[1], 1)];
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    thread::scope(|scope| {
        scope.spawn(|| {
            let runtime = tokio_tun::runtime().unwrap();
            let [(near, near_socket), (far, far_socket)] = &ends;
            runtime.block_on(async {
                let peer = |at: usize| SocketAddr::new(OUTSIDE[at].into(), PORT);
                tokio::select! {
                    done = tokio_tun::forward(near, near_socket, peer(1)) => done.unwrap(),
                    done = tokio_tun::forward(far, far_socket, peer(0)) => done.unwrap(),
                    _ = stopped => {}
                }
            });
        });
        for (from, to) in [(0, 1), (1, 0)] {
            let config = BulkConfig {
                connections: 3,
                bytes_per_connection: Some(3_000_000),
                ..BulkConfig::default()
            };
            let transfer =
                BulkTransfer::start(&networks[from], &networks[to], INSIDE[to], &config).unwrap();
            let report = transfer.wait().unwrap();
            assert!(report.is_intact(), "{report:?}");
            assert_eq!(report.received_bytes, 9_000_000);
        }
        drop(stop);
    });
}
