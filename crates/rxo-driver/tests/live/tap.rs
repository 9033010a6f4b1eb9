//! Tests of creating a TAP or TUN interface, opening an existing one, and losing it.
#![allow(unsafe_code, reason = "making an interface persistent is an ioctl")]

use std::os::fd::{AsFd, AsRawFd};

use rxo_device::{DeviceError, FrameSink, FrameSource};
use rxo_driver::{SubmitMode, Tap, TapKind};
use rxo_frame::{GsoKind, LinkKind};
use rxo_testbed::create_veth;

use crate::Test;
use crate::network::{quiet_namespace, receive, receive_until};
use crate::packets::{numbered, plain};

pub(crate) const TESTS: &[Test] = &[
    ("an_interface_we_made_vanishes_with_its_last_user", vanishes),
    ("a_persistent_interface_is_put_back_as_it_was", put_back),
    ("a_name_that_is_served_is_said_to_be_taken", name_taken),
    ("a_name_of_another_kind_of_interface_is_said_to_be_taken", name_of_another_kind),
    ("an_mtu_too_large_for_a_tap_names_the_largest", mtu_too_large),
    ("the_mtu_set_is_the_mtu_said", mtu_set),
    ("what_the_stack_sends_comes_with_partial_checksums_and_gso", stack_sends),
    ("writing_to_an_interface_that_is_down_names_the_remedy", down),
    ("an_interface_deleted_while_in_use_is_gone", deleted),
    ("what_the_queue_has_no_room_for_is_counted", queue_overflows),
    ("a_longer_queue_than_ours_is_left_alone", longer_queue),
];

fn vanishes() {
    let host = quiet_namespace("host");
    host.run(|| {
        let tap = Tap::open("rxo0", TapKind::Tap).unwrap();
        let source = tap.source().unwrap();
        let sink = tap.sink(SubmitMode::Auto).unwrap();
        drop((tap, source));
        assert!(host.interface("rxo0").exists());
        drop(sink);
        assert!(!host.interface("rxo0").exists());
    })
    .unwrap();
}

fn put_back() {
    let host = quiet_namespace("host");
    host.run(|| {
        let tap = Tap::open("rxo0", TapKind::Tap).unwrap();
        set_persistent(&tap);
        drop(tap);
        rxo_driver::Interface::find("rxo0").unwrap().set_queue_packets(500).unwrap();
        assert!(host.interface("rxo0").exists());
        let tap = Tap::open("rxo0", TapKind::Tap).unwrap();
        tap.set_mtu(1400).unwrap();
        tap.interface().set_up(true).unwrap();
        assert!(tap.interface().is_up().unwrap());
        assert_eq!(tap.interface().queue_packets().unwrap(), QUEUE_PACKETS);
        drop(tap);
        let after = rxo_driver::Interface::find("rxo0").unwrap();
        assert_eq!((after.mtu().unwrap(), after.is_up().unwrap()), (1500, false));
        assert_eq!(after.queue_packets().unwrap(), 500);
        host.interface("rxo0").delete().unwrap();
    })
    .unwrap();
}

/// The length of the queue that rxo sets on a TAP.
const QUEUE_PACKETS: u32 = 4_096;

/// If the queue of a TAP overflows, because nobody reads while the stack sends, the lost packets are counted,
/// without those that the interface had dropped before it was opened.
fn queue_overflows() {
    let host = quiet_namespace("host");
    host.run(|| {
        let tap = Tap::open("rxo0", TapKind::Tun).unwrap();
        set_persistent(&tap);
        host.interface("rxo0").add_address([10, 80, 0, 1].into(), 24).unwrap();
        host.interface("rxo0").up().unwrap();
        let socket = std::net::UdpSocket::bind("10.80.0.1:0").unwrap();
        let send = |count: usize| {
            (0..count).for_each(|_| drop(socket.send_to(b"one of many", "10.80.0.2:9")));
        };
        send(2 * QUEUE_PACKETS as usize);
        drop(tap);
        let tap = Tap::open("rxo0", TapKind::Tun).unwrap();
        host.interface("rxo0").up().unwrap();
        let mut source = tap.source().unwrap();
        assert_eq!(source.counters().ring_drops, 0, "dropped before it was opened");
        send(QUEUE_PACKETS as usize);
        assert_eq!(source.counters().ring_drops, 0, "there was room");
        send(1_000);
        let mut read = 0;
        loop {
            let mut batch = Vec::new();
            match source.receive(&mut batch, 64).unwrap() {
                0 => break,
                frames => read += frames as u64,
            }
        }
        assert_eq!((read, source.counters().ring_drops), (u64::from(QUEUE_PACKETS), 1_000));
        host.interface("rxo0").delete().unwrap();
    })
    .unwrap();
}

fn longer_queue() {
    let host = quiet_namespace("host");
    host.run(|| {
        let tap = Tap::open("rxo0", TapKind::Tap).unwrap();
        set_persistent(&tap);
        drop(tap);
        let interface = rxo_driver::Interface::find("rxo0").unwrap();
        interface.set_queue_packets(20_000).unwrap();
        let tap = Tap::open("rxo0", TapKind::Tap).unwrap();
        assert_eq!(interface.queue_packets().unwrap(), 20_000);
        drop(tap);
        assert_eq!(interface.queue_packets().unwrap(), 20_000);
        host.interface("rxo0").delete().unwrap();
    })
    .unwrap();
}

fn set_persistent(tap: &Tap) {
    let source = tap.source().unwrap();
    let fd = source.as_fd().as_raw_fd();
    // SAFETY: this request takes its argument as a number.
    let result = unsafe { libc::ioctl(fd, libc::TUNSETPERSIST as _, 1) };
    assert_eq!(result, 0);
}

/// Returns the error text of opening `name` inside `host`.
fn refusal(host: &rxo_testbed::Namespace, name: &str, kind: TapKind) -> String {
    let error = host.run(|| Tap::open(name, kind).map(|_| ()).unwrap_err()).unwrap();
    let line = error.to_string();
    assert!(!line.contains('\n'));
    line
}

fn name_taken() {
    let host = quiet_namespace("host");
    let _tap = host.run(|| Tap::open("rxo0", TapKind::Tap).unwrap()).unwrap();
    let line = refusal(&host, "rxo0", TapKind::Tap);
    assert!(line.contains("tap:rxo0") && line.contains("choose another name"), "{line}");
}

fn name_of_another_kind() {
    let host = quiet_namespace("host");
    create_veth(&host.interface("taken0"), &host.interface("other0")).unwrap();
    let line = refusal(&host, "taken0", TapKind::Tun);
    assert!(line.contains("another kind than tun"), "{line}");
}

fn mtu_too_large() {
    let host = quiet_namespace("host");
    host.run(|| {
        let tap = Tap::open("rxo0", TapKind::Tap).unwrap();
        tap.set_mtu(65_521).unwrap();
        let error = tap.set_mtu(65_522).unwrap_err();
        assert!(matches!(error, DeviceError::Usage(_)));
        assert!(error.to_string().contains("the largest is 65521"), "{error}");
    })
    .unwrap();
}

fn mtu_set() {
    let host = quiet_namespace("host");
    host.run(|| {
        let tap = Tap::open("rxo0", TapKind::Tun).unwrap();
        tap.set_mtu(9000).unwrap();
        let sink = tap.sink(SubmitMode::Writev).unwrap().capabilities();
        assert_eq!((sink.mtu, sink.link), (9000, LinkKind::RawIp));
        assert_eq!(tap.source().unwrap().capabilities().mtu, 9000);
    })
    .unwrap();
}

fn stack_sends() {
    let host = quiet_namespace("host");
    host.run(|| {
        let tap = Tap::open("rxo0", TapKind::Tun).unwrap();
        let mut source = tap.source().unwrap();
        host.interface("rxo0").add_address([10, 80, 0, 1].into(), 24).unwrap();
        host.interface("rxo0").up().unwrap();
        let socket = std::net::UdpSocket::bind("10.80.0.1:0").unwrap();
        socket.send_to(b"to the tun", "10.80.0.2:9").unwrap();
        let frames = receive(&mut source, 1);
        assert_eq!(frames[0].bytes()[0], 0x45, "an IPv4 header at once");
        assert!(frames[0].bytes().ends_with(b"to the tun"));
        assert!(frames[0].checksum.is_partial());
        assert_eq!(frames[0].gso, None);
        send_udp_segments(&socket);
        let frames = receive_until(&mut source, |frames| !frames.is_empty());
        // Kernels before 6.2 cut UDP themselves.
        if let Some(gso) = frames[0].gso {
            assert_eq!((gso.kind, gso.size.get()), (GsoKind::Udp, 100));
            assert_eq!(frames[0].bytes().len(), 28 + 1_000);
        }
    })
    .unwrap();
}

/// Sends 1,000 bytes to be cut into datagrams of 100.
fn send_udp_segments(socket: &std::net::UdpSocket) {
    let size: libc::c_int = 100;
    // SAFETY: the option reads an `int`.
    let result = unsafe {
        let (fd, value) = (socket.as_raw_fd(), std::ptr::from_ref(&size).cast());
        libc::setsockopt(fd, libc::SOL_UDP, libc::UDP_SEGMENT, value, 4)
    };
    assert_eq!(result, 0);
    socket.send_to(&[0x5a; 1_000], "10.80.0.2:9").unwrap();
}

fn down() {
    let host = quiet_namespace("host");
    host.run(|| {
        let tap = Tap::open("rxo0", TapKind::Tap).unwrap();
        for mode in [SubmitMode::Writev, SubmitMode::Auto] {
            let mut sink = tap.sink(mode).unwrap();
            let frames = [numbered(0, 100), numbered(1, 100)];
            sink.transmit(plain(&frames)).unwrap();
            assert_eq!((sink.counters().packets, sink.counters().dropped), (0, 2));
            assert!(sink.take_notice().unwrap().contains("ip link set rxo0 up"));
            tap.interface().set_up(true).unwrap();
            sink.transmit(plain(&frames)).unwrap();
            assert_eq!((sink.counters().packets, sink.counters().dropped), (2, 2));
            assert_eq!(sink.take_notice().unwrap(), "tap:rxo0 is up again");
            tap.interface().set_up(false).unwrap();
            assert_eq!(tap.source().unwrap().receive(&mut Vec::new(), 1).unwrap(), 0);
        }
    })
    .unwrap();
}

fn deleted() {
    let host = quiet_namespace("host");
    host.run(|| {
        let tap = Tap::open("rxo0", TapKind::Tap).unwrap();
        tap.interface().set_up(true).unwrap();
        let mut source = tap.source().unwrap();
        let mut sink = tap.sink(SubmitMode::Auto).unwrap();
        let frames = [numbered(0, 100)];
        sink.transmit(plain(&frames)).unwrap();
        host.interface("rxo0").delete().unwrap();
        let sent = sink.transmit(plain(&frames)).unwrap_err();
        let received = source.receive(&mut Vec::new(), 1).unwrap_err();
        for error in [sent, received] {
            assert!(matches!(error, DeviceError::Gone(_)), "{error}");
            assert!(error.to_string().contains("tap:rxo0 has gone away"), "{error}");
        }
    })
    .unwrap();
}
