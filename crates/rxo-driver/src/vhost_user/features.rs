//! Features that front end and back end negotiate: virtio features (virtio 1.2, sections 2.2, 5.1.3 and 6)
//! and protocol features of vhost-user. Each constant is a bit mask.
//!
//! Some features are not offered by the device: `HASH_REPORT` and `RSS`, because a guest cannot choose the queue
//! of a flow; `CTRL_VQ`, `MAC` and `STATUS`, because the front end implements them itself; and `GUEST_ANNOUNCE`,
//! because a front end with `RARP` lets the device announce any guest.

/// Feature: the device accepts frames with a partial checksum.
pub const CSUM: u64 = 1;
/// Feature: the driver accepts frames with a partial checksum.
pub const GUEST_CSUM: u64 = 1 << 1;
/// Feature: the driver accepts TCP GSO frames over IPv4.
pub const GUEST_TSO4: u64 = 1 << 7;
/// Feature: the driver accepts TCP GSO frames over IPv6.
pub const GUEST_TSO6: u64 = 1 << 8;
/// Feature: the driver accepts GSO frames in which only the first segment has CWR.
pub const GUEST_ECN: u64 = 1 << 9;
/// Feature: the device accepts TCP GSO frames over IPv4.
pub const HOST_TSO4: u64 = 1 << 11;
/// Feature: the device accepts TCP GSO frames over IPv6.
pub const HOST_TSO6: u64 = 1 << 12;
/// Feature: the device accepts GSO frames in which only the first segment has CWR.
pub const HOST_ECN: u64 = 1 << 13;
/// Feature: a frame for the driver may span several of its buffers.
pub const MRG_RXBUF: u64 = 1 << 15;
/// Feature: the device may have several pairs of queues.
pub const MQ: u64 = 1 << 22;
/// Feature: the driver accepts UDP GSO frames over IPv4.
pub const GUEST_USO4: u64 = 1 << 54;
/// Feature: the driver accepts UDP GSO frames over IPv6.
pub const GUEST_USO6: u64 = 1 << 55;
/// Feature: the device accepts UDP GSO frames.
pub const HOST_USO: u64 = 1 << 56;
/// Feature: the device reports how many segments it has coalesced into an aggregate. Linux guests do not
/// request it.
pub const RSC_EXT: u64 = 1 << 61;

/// Feature: the device records its writes in the log of dirty pages. Not a feature of virtio: guests never
/// see it.
pub const LOG_ALL: u64 = 1 << 26;
/// Feature: a descriptor may refer to a table of descriptors.
pub const INDIRECT_DESC: u64 = 1 << 28;
/// Feature: each side writes the index of the buffer after which it wants a notification.
pub const EVENT_IDX: u64 = 1 << 29;
/// Feature: the back end has protocol features. Not a feature of virtio: guests never see it.
pub const PROTOCOL_FEATURES: u64 = 1 << 30;
/// Feature: the device follows virtio 1.0 or later.
pub const VERSION_1: u64 = 1 << 32;
/// Feature: queues have the packed layout instead of the split one.
pub const RING_PACKED: u64 = 1 << 34;

/// The device expands ACK templates. A private feature of rxo's driver and rxo's device, with a bit that virtio
/// reserves. Virtual machine monitors do not support it, so their guests never see it.
pub const ACK_TEMPLATES: u64 = 1 << 49;

/// The virtio features that `vhost:PATH` offers by default.
pub const DEVICE_OFFERS: u64 = CSUM
    | GUEST_CSUM
    | GUEST_TSO4
    | GUEST_TSO6
    | GUEST_ECN
    | HOST_TSO4
    | HOST_TSO6
    | HOST_ECN
    | MRG_RXBUF
    | MQ
    | GUEST_USO4
    | GUEST_USO6
    | HOST_USO
    | RSC_EXT
    | LOG_ALL
    | INDIRECT_DESC
    | EVENT_IDX
    | PROTOCOL_FEATURES
    | VERSION_1
    | RING_PACKED;

/// Protocol feature: the device may have several pairs of queues.
pub const PROTOCOL_MQ: u64 = 1;
/// Protocol feature: the log of dirty pages is a file that both sides share.
pub const PROTOCOL_LOG_SHMFD: u64 = 1 << 1;
/// Protocol feature: the back end announces a guest after a migration.
pub const PROTOCOL_RARP: u64 = 1 << 2;
/// Protocol feature: a request may ask for a reply that reports whether it succeeded.
pub const PROTOCOL_REPLY_ACK: u64 = 1 << 3;
/// Protocol feature: the front end sends the MTU.
pub const PROTOCOL_MTU: u64 = 1 << 4;
/// Protocol feature: chains in flight are recorded in a file of the front end, for the next back end.
pub const PROTOCOL_INFLIGHT_SHMFD: u64 = 1 << 12;
/// Protocol feature: the front end can reset the device.
pub const PROTOCOL_RESET_DEVICE: u64 = 1 << 13;
/// Protocol feature: memory regions are added and removed one by one.
pub const PROTOCOL_MEM_SLOTS: u64 = 1 << 15;
/// Protocol feature: the front end sends the virtio status.
pub const PROTOCOL_STATUS: u64 = 1 << 16;

/// The protocol features that `vhost:PATH` offers.
pub const DEVICE_OFFERS_PROTOCOL: u64 = PROTOCOL_MQ
    | PROTOCOL_LOG_SHMFD
    | PROTOCOL_RARP
    | PROTOCOL_INFLIGHT_SHMFD
    | PROTOCOL_REPLY_ACK
    | PROTOCOL_MTU
    | PROTOCOL_RESET_DEVICE
    | PROTOCOL_MEM_SLOTS
    | PROTOCOL_STATUS;
