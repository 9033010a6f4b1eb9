//! Carries a file into a guest and back, with other options of QEMU's card than the default. The guest shows
//! the negotiated features.

use std::path::Path;

use rxo_peers::{Guest, GuestNet};

use super::carried::{TIMEOUT, carried_by};

/// Feature bits of virtio 1.2, sections 5.1.3 and 6.
const MRG_RXBUF: usize = 15;
const MQ: usize = 22;
const RING_PACKED: usize = 34;

/// Aggregates are delivered into packed rings.
pub(crate) fn packed_rings() {
    carried_by(
        "",
        |socket| qemu(&socket, "", "packed=on"),
        |guest| {
            assert!(agrees(guest, RING_PACKED));
        },
    );
}

/// The front end has four rings; the guest has one processor, and uses two rings.
pub(crate) fn several_queues() {
    carried_by(
        "",
        |socket| qemu(&socket, ",queues=2", "mq=on"),
        |guest| {
            assert!(agrees(guest, MQ));
        },
    );
}

/// Without mergeable buffers, an aggregate must fit into one descriptor chain.
pub(crate) fn no_mergeable_buffers() {
    carried_by(
        "",
        |socket| qemu(&socket, "", "mrg_rxbuf=off"),
        |guest| {
            assert!(!agrees(guest, MRG_RXBUF));
        },
    );
}

/// Returns QEMU's command line with these options of the back end and of the card.
fn qemu(socket: &Path, netdev: &str, device: &str) -> GuestNet {
    let socket = socket.display();
    GuestNet::Line(format!(
        "qemu-system-x86_64 … -m 128 -object memory-backend-memfd,id=mem,size=128M,share=on \
         -machine memory-backend=mem -chardev socket,id=card,path={socket},reconnect=1 \
         -netdev vhost-user,id=net,chardev=card{netdev} \
         -device virtio-net-pci,netdev=net,mac=52:54:00:00:00:02,vectors=0,{device}"
    ))
}

/// Returns `true` if the guest's driver and its card negotiated the feature. The guest shows one digit for
/// each feature.
fn agrees(guest: &mut Guest, feature: usize) -> bool {
    let digits = guest.run("cat /sys/class/net/eth0/device/features", TIMEOUT).unwrap();
    digits.trim().as_bytes()[feature] == b'1'
}
