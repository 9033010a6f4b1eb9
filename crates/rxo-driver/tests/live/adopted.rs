//! Tests of taking over descriptors that other code has opened: with and without a header, shared, several queues.
#![allow(unsafe_code, reason = "other code attaches its descriptor by an ioctl")]

use std::ffi::c_int;
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, UdpSocket};
use std::num::NonZeroU16;
use std::os::fd::{AsFd, AsRawFd};

use rxo_device::FrameSink;
use rxo_driver::{SubmitMode, Tap, TapKind};
use rxo_frame::{ChecksumStatus, Frame, Gso, GsoKind, Instant, Offload};

use crate::Test;
use crate::network::{LONG, quiet_namespace, receive};
use crate::packets::{Pieces, folded_sum, udp_packet};

pub(crate) const TESTS: &[Test] = &[
    ("a_descriptor_of_other_code_takes_aggregates", || takes(libc::IFF_VNET_HDR)),
    ("a_descriptor_without_a_header_takes_their_packets", || takes(0)),
    ("a_descriptor_with_the_header_of_a_guest_takes_aggregates", guest_header),
    ("the_owner_of_a_shared_descriptor_reads_what_it_read_before", shared),
    ("every_queue_of_other_code_becomes_a_device", queues),
    ("a_descriptor_that_is_no_tun_names_what_to_give", refusals),
];

const ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 83, 0, 1);
/// The length of a test datagram's payload, in bytes.
const PAYLOAD: usize = 100;

/// Opens a TUN as code that knows nothing of rxo does. `/dev/net/tun` blocks by default.
fn open(flags: c_int) -> File {
    let file = OpenOptions::new().read(true).write(true).open("/dev/net/tun").unwrap();
    // SAFETY: the structure has only integers and bytes.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    request.ifr_name[..4].copy_from_slice(&[b'o', b't', b'h', b'0'].map(|byte| byte as _));
    request.ifr_ifru.ifru_flags = (libc::IFF_TUN | flags) as _;
    // SAFETY: this request takes an `ifreq`.
    assert_eq!(unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF as _, &raw mut request) }, 0);
    file
}

/// Runs `test` with a TUN of other code in a network of its own, and with a socket behind it.
fn with_tun(flags: c_int, test: impl FnOnce(File, &UdpSocket) + Send) {
    let host = quiet_namespace("host");
    host.run(|| {
        let file = open(libc::IFF_NO_PI | flags);
        host.interface("oth0").add_address(ADDRESS.into(), 24).unwrap();
        host.interface("oth0").up().unwrap();
        let socket = UdpSocket::bind((ADDRESS, 0)).unwrap();
        socket.set_read_timeout(Some(LONG)).unwrap();
        test(file, &socket);
    })
    .unwrap();
}

fn port(socket: &UdpSocket) -> u16 {
    socket.local_addr().unwrap().port()
}

fn datagram(socket: &UdpSocket, number: u8) -> Vec<u8> {
    udp_packet(ADDRESS, port(socket), &[number; PAYLOAD])
}

/// Creates an aggregate of datagrams with these numbers, whose checksum the receiver completes.
fn train(socket: &UdpSocket, numbers: std::ops::Range<u8>) -> Pieces {
    let payload: Vec<u8> = numbers.clone().flat_map(|number| [number; PAYLOAD]).collect();
    let mut bytes = udp_packet(ADDRESS, port(socket), &payload);
    let pseudo = [&bytes[12..20], &[0, 17], &bytes[24..26]].concat();
    bytes[26..28].copy_from_slice(&folded_sum(&pseudo).to_be_bytes());
    let size = NonZeroU16::new(PAYLOAD as u16).unwrap();
    let offload = Offload {
        checksum: ChecksumStatus::Partial { start: 20, offset: 6 },
        gso: Some(Gso::new(GsoKind::Udp, size)),
        header_bytes: 28,
    };
    let frames = numbers.map(|number| datagram(socket, number)).collect();
    Pieces { offload, frames, ..Pieces::cut(&bytes, 28, 60) }
}

/// Writes a train, a GSO frame, a packet with a partial checksum and a plain one. Returns the numbers that arrived, and
/// the number of writes.
fn write_all(tap: &Tap, socket: &UdpSocket) -> (Vec<u8>, u64) {
    let mut sink = tap.sink(SubmitMode::Writev).unwrap();
    let aggregate = train(socket, 0..5);
    sink.transmit([&aggregate].into_iter()).unwrap();
    let large = train(socket, 5..8);
    let bytes = large.slices.concat();
    let Offload { checksum, gso, .. } = large.offload;
    let gso_frame = Frame { checksum, gso, ..Frame::new(&bytes[..], Instant::ZERO) };
    let bytes = train(socket, 8..9).slices.concat();
    let partial = Frame { checksum, ..Frame::new(&bytes[..], Instant::ZERO) };
    let plain = datagram(socket, 9);
    let plain = Frame::new(&plain[..], Instant::ZERO);
    sink.transmit([gso_frame, partial, plain].into_iter()).unwrap();
    let counters = sink.counters();
    assert_eq!((counters.dropped, sink.is_blocked()), (0, false));
    let receive = |_| {
        let mut bytes = [0; 200];
        assert_eq!(socket.recv(&mut bytes).unwrap(), PAYLOAD);
        bytes[0]
    };
    ((0..10).map(receive).collect(), counters.packets)
}

fn takes(flags: c_int) {
    with_tun(flags, |file, socket| {
        let tap = Tap::from_fd(file.into()).unwrap();
        assert_eq!((tap.kind(), tap.interface().name()), (TapKind::Tun, "oth0"));
        let mut sink = tap.sink(SubmitMode::Writev).unwrap();
        let has_header = flags != 0;
        assert_eq!(sink.capabilities().gso_bytes > 0, has_header);
        assert_eq!(sink.take_opening_notice().is_some(), !has_header);
        let (numbers, writes) = write_all(&tap, socket);
        assert_eq!(numbers, (0..10).collect::<Vec<_>>());
        assert_eq!(writes, if has_header { 4 } else { 10 });
        let mut source = tap.source().unwrap();
        socket.send_to(&[7; 50], "10.83.0.2:9").unwrap();
        let frames = receive(&mut source, 1);
        assert!(frames[0].bytes.as_ref().ends_with(&[7; 50]));
    });
}

fn guest_header() {
    with_tun(libc::IFF_VNET_HDR, |file, socket| {
        let mut bytes: c_int = 12;
        // SAFETY: this request reads an `int`.
        let set =
            unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETVNETHDRSZ as _, &raw mut bytes) };
        assert_eq!(set, 0);
        let tap = Tap::from_fd(file.into()).unwrap();
        assert_eq!(write_all(&tap, socket), ((0..10).collect(), 4));
        socket.send_to(&[7; 50], "10.83.0.2:9").unwrap();
        let frames = receive(&mut tap.source().unwrap(), 1);
        assert_eq!(frames[0].bytes.as_ref().len(), 28 + 50);
    });
}

fn shared() {
    with_tun(libc::IFF_VNET_HDR, |mut file, socket| {
        let tap = Tap::from_borrowed(file.as_fd()).unwrap();
        assert_eq!(write_all(&tap, socket), ((0..10).collect(), 4));
        drop(tap);
        // The kernel completes checksums for the owner, which has enabled no offload.
        socket.send_to(&[7; 50], "10.83.0.2:9").unwrap();
        let mut bytes = [1; 200];
        assert_eq!(file.read(&mut bytes).unwrap(), 10 + 28 + 50);
        assert_eq!(bytes[..2], [0, 0]);
        file.write_all(&[&[0; 10][..], &datagram(socket, 3)].concat()).unwrap();
        assert_eq!(socket.recv(&mut bytes).unwrap(), PAYLOAD);
    });
}

fn queues() {
    let flags = libc::IFF_VNET_HDR | libc::IFF_MULTI_QUEUE;
    with_tun(flags, |file, socket| {
        let other = open(libc::IFF_NO_PI | flags);
        let tap = Tap::from_queues([file.into(), other.into()]).unwrap();
        let mut devices = tap.devices(SubmitMode::Writev).unwrap();
        assert_eq!(devices.len(), 2);
        for (number, device) in devices.iter_mut().enumerate() {
            let bytes = datagram(socket, number as u8);
            device.sink.send(&[Frame::new(&bytes, Instant::ZERO)]).unwrap();
            let mut arrived = [9; 200];
            assert_eq!(socket.recv(&mut arrived).unwrap(), PAYLOAD);
            assert_eq!(usize::from(arrived[0]), number);
        }
    });
}

fn refusals() {
    let line = |file: File| Tap::from_fd(file.into()).unwrap_err().to_string();
    let null = line(File::open("/dev/null").unwrap());
    assert!(null.contains("is no TAP or TUN"), "{null}");
    let host = quiet_namespace("host");
    let unattached = OpenOptions::new().read(true).write(true).open("/dev/net/tun").unwrap();
    let unattached = line(unattached);
    assert!(unattached.contains("TUNSETIFF"), "{unattached}");
    let elsewhere = line(host.run(|| open(libc::IFF_NO_PI)).unwrap());
    assert!(elsewhere.contains("another network namespace"), "{elsewhere}");
}
