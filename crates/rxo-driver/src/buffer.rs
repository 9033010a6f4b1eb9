//! How large the buffers are that frames are read into.

/// Room for the largest IP packet, its Ethernet header, two VLAN tags, and a `virtio_net_hdr`. An
/// odd number of cache lines, so that the first lines of such buffers do not all meet in one set.
pub(crate) const LARGE_BUFFER_BYTES: usize = 1_027 * 64;

/// Room for the largest packet that Linux makes where `gso_max_size` or `gro_max_size` is above
/// 64 KiB (BIG TCP): eight times as much.
pub(crate) const GIANT_BUFFER_BYTES: usize = 8_193 * 64;
