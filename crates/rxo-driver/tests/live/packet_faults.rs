//! Tests of a packet source that cannot be opened, or whose interface goes down or is deleted.

use std::os::fd::AsFd;

use rxo_device::{DeviceError, FrameSource};
use rxo_driver::{PacketOptions, PacketSource, wait};
use rxo_testbed::create_veth;

use crate::Test;
use crate::network::{FAR, LONG, NEAR, Pair, QUIET, receive};
use crate::packet_source::{numbers, open_far, send};
use crate::packets::numbered;

pub(crate) const TESTS: &[Test] = &[
    ("an_interface_taken_down_is_waited_for", taken_down),
    ("an_interface_deleted_while_it_is_down_is_said", deleted_while_down),
    ("a_ring_without_room_for_large_frames_is_refused", refused_options),
    ("an_interface_that_vanishes_is_said", vanished),
    ("what_cannot_be_opened_is_said", cannot_open),
];

/// Waits until a frame is in the ring: a frame that is not yet there is lost when its interface is deleted.
fn await_frame(source: &PacketSource) {
    assert!(!wait::wait_readable(&[source.as_fd()], Some(LONG)).unwrap().is_none());
}

/// Returns the error texts of two calls of `receive` after the near end has done `harm`. Frames that arrived
/// before are still received.
fn fault_after(harm: impl FnOnce(&Pair) + Send) -> (String, String) {
    let pair = Pair::silent();
    let run = || {
        let mut source = open_far();
        send(&pair, &[numbered(0, 100)]);
        await_frame(&source);
        harm(&pair);
        let frames = receive(&mut source, 1);
        assert_eq!(numbers(&frames), [0]);
        let mut fault = || {
            let error = source.receive(&mut Vec::new(), 64).unwrap_err();
            assert!(matches!(error, DeviceError::Gone(_)), "{error}");
            error.to_string()
        };
        (fault(), fault())
    };
    pair.far.run(run).unwrap()
}

fn taken_down() {
    let pair = Pair::silent();
    let run = || {
        let mut source = open_far();
        send(&pair, &[numbered(0, 100)]);
        await_frame(&source);
        let far = pair.far.interface(FAR);
        far.down().unwrap();
        assert_eq!(numbers(&receive(&mut source, 1)), [0], "what came before is still given");
        // The fault is reported once; after that, waiting works as usual.
        for _ in 0..3 {
            assert_eq!(source.receive(&mut Vec::new(), 64).unwrap(), 0);
        }
        assert!(wait::wait_readable(&[source.as_fd()], Some(QUIET)).unwrap().is_none());
        far.up().unwrap();
        pair.near.interface(NEAR).await_wire().unwrap();
        send(&pair, &[numbered(1, 100)]);
        assert_eq!(numbers(&receive(&mut source, 1)), [1]);
    };
    pair.far.run(run).unwrap();
}

fn deleted_while_down() {
    let pair = Pair::silent();
    let run = || {
        let mut source = open_far();
        pair.far.interface(FAR).down().unwrap();
        assert_eq!(source.receive(&mut Vec::new(), 64).unwrap(), 0);
        pair.near.interface(NEAR).delete().unwrap();
        let error = source.receive(&mut Vec::new(), 64).unwrap_err();
        assert!(matches!(error, DeviceError::Gone(_)), "{error}");
        // An interface created with the same name is a different interface.
        create_veth(&pair.far.interface(FAR), &pair.near.interface(NEAR)).unwrap();
        assert!(source.receive(&mut Vec::new(), 64).is_err());
    };
    pair.far.run(run).unwrap();
}

fn refused_options() {
    let pair = Pair::silent();
    let usual = PacketOptions::default();
    let rows = [
        (PacketOptions { large_buffers: 0, ..usual }, "packet:far0: large_buffers is 0; it must"),
        (PacketOptions { ring_slots: 0, ..usual }, "packet:far0: ring_slots is 0; it must"),
        (PacketOptions { ring_slots: u32::MAX, ..usual }, "packet:far0: ring_slots is 4294967295"),
    ];
    for (options, begins) in rows {
        let error = pair.far.run(|| PacketSource::open(FAR, options).map(|_| ()).unwrap_err());
        let error = error.unwrap();
        assert!(matches!(error, DeviceError::Usage(_)));
        assert!(error.to_string().starts_with(begins), "{error}");
    }
}

fn vanished() {
    let (first, second) = fault_after(|pair| pair.near.interface(NEAR).delete().unwrap());
    assert!(first.contains("packet:far0 has gone away"), "{first}");
    assert_eq!(first, second);
}

fn cannot_open() {
    let pair = Pair::silent();
    pair.far.interface(FAR).down().unwrap();
    let open = |name: &str| {
        let open = || PacketSource::open(name, PacketOptions::default()).map(|_| ()).unwrap_err();
        pair.far.run(open).unwrap()
    };
    let down = open(FAR);
    assert!(matches!(down, DeviceError::System { .. }));
    assert!(down.to_string().contains("ip link set far0 up"), "{down}");
    let missing = open("nothing0");
    assert!(matches!(missing, DeviceError::Usage(_)));
    assert!(missing.to_string().contains("packet:nothing0"), "{missing}");
}
