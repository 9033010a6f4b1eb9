//! Frames in several ring buffers that do not arrive together.

use std::os::fd::AsFd;
use std::sync::Arc;

use rxo_virtqueue::{Base, DeviceQueue, Fit, Memory, Region};
use rxo_vnet::{BUFFER_COUNT_AT, VIRTIO_HEADER_BYTES};

use crate::vhost_user::features::{MRG_RXBUF, RING_PACKED};
use crate::virtio::driver::Driver;
use crate::virtio::layout::{Places, START};
use crate::virtio_net::mapping::{self, Holes};
use crate::virtio_net::{Buffers, RingRead};

/// Returns the first ring buffer of a frame of `buffers` ring buffers.
fn first(buffers: u8, byte: u8) -> [u8; 100] {
    let mut piece = [byte; 100];
    piece[..VIRTIO_HEADER_BYTES].fill(0);
    piece[BUFFER_COUNT_AT] = buffers;
    piece
}

/// The back end publishes each ring buffer on its own, as no correct one does. The frame waits for its last one.
#[test]
fn a_frame_waits_for_ring_buffers_that_were_not_published_with_it() {
    for features in [MRG_RXBUF, MRG_RXBUF | RING_PACKED] {
        let places = Places::new(features, 1);
        let file = mapping::memory_file(places.bytes).unwrap();
        let mut driver = Driver::new(file.as_fd(), places.clone()).unwrap();
        let (mapped, _) = mapping::map(file.as_fd(), 0..places.bytes, Holes::Filled).unwrap();
        let mut memory = Memory::new();
        memory.add(Region::new(START, START, Arc::new(mapped), 0, places.bytes).unwrap()).unwrap();
        let mut device = DeviceQueue::new(&memory, &places.rings[0], Base::Start).unwrap();
        let mut write = |bytes: &[u8]| {
            let length = bytes.len() as u32;
            let mut writer = device.reserve(&memory, length, Fit::OneChain).unwrap();
            writer.write(bytes);
            writer.finish().unwrap();
            device.publish();
        };
        let mut buffers = Buffers::new(1, 10_000);
        for round in 0..2_000 {
            write(&first(3, 7));
            assert_eq!(driver.take(&mut buffers), RingRead::Nothing);
            write(&[8; 50]);
            assert_eq!(driver.take(&mut buffers), RingRead::Nothing);
            write(&[9; 20]);
            assert_eq!(driver.take(&mut buffers), RingRead::Frame(170), "{round}");
            let content = &buffers.content()[VIRTIO_HEADER_BYTES..170];
            assert_eq!(content, [[7; 88].as_slice(), &[8; 50], &[9; 20]].concat());
            assert!(!buffers.is_exhausted());
            write(&first(1, 5));
            assert_eq!(driver.take(&mut buffers), RingRead::Frame(100));
            assert_eq!(driver.take(&mut buffers), RingRead::Nothing);
            driver.finish_taking(|_| ());
        }
        assert_eq!(driver.invalid(), 0);
    }
}
