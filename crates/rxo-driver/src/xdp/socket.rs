//! Socket: opens an AF_XDP socket on one queue of an interface, with its memory and its four rings.
//!
//! This module is separate because it only makes system calls, in the only order that the kernel accepts.
//! Zero-copy is tried first: the driver then receives into the chunks and sends from them. Otherwise the
//! kernel copies.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use libc::{c_int, xdp_mmap_offsets, xdp_ring_offset};

use super::chunks::Chunks;
use super::memory::Mapping;
use super::ring::{Consumer, Places, Producer, Ring};
use crate::packet::socket::QUEUE_BYTES;
use crate::sys::{self, Plain};

/// The sizes of a socket's memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Settings {
    pub(super) interface: u32,
    pub(super) queue: u32,
    pub(super) chunk_bytes: u32,
    /// The number of chunks for received frames, a power of two.
    pub(super) receive: u32,
    /// The number of chunks for frames to send, a power of two; 0 for a socket that sends nothing.
    pub(super) send: u32,
    /// `true` if a frame of the interface may be larger than a chunk.
    pub(super) needs_pieces: bool,
}

/// An open socket, bound to its queue. Nothing arrives before a program is attached and the fill ring has chunks.
#[derive(Debug)]
pub(super) struct Socket {
    pub(super) file: Arc<OwnedFd>,
    pub(super) chunks: Arc<Chunks>,
    pub(super) fill: Producer<1>,
    pub(super) received: Consumer<2>,
    pub(super) completed: Consumer<1>,
    /// The ring of frames to send; `None` if the socket sends nothing.
    pub(super) send: Option<Producer<2>>,
    /// `true` if the driver uses the chunks directly, without a copy.
    pub(super) is_zero_copy: bool,
    /// `true` if a frame may be in several chunks.
    pub(super) has_pieces: bool,
}

impl Socket {
    /// Opens a socket in the best mode that kernel and driver support.
    pub(super) fn open(settings: Settings) -> io::Result<Self> {
        let ways = [
            libc::XDP_ZEROCOPY | libc::XDP_USE_SG,
            libc::XDP_ZEROCOPY,
            libc::XDP_COPY | libc::XDP_USE_SG,
            libc::XDP_COPY,
        ];
        let mut last = io::Error::from_raw_os_error(libc::EOPNOTSUPP);
        for way in ways {
            let has_pieces = way & libc::XDP_USE_SG != 0;
            if settings.needs_pieces && !has_pieces {
                continue;
            }
            match Self::open_as(settings, way) {
                Err(error) if is_unsupported(&error) => last = error,
                other => return other,
            }
        }
        Err(last)
    }

    fn open_as(settings: Settings, way: u16) -> io::Result<Self> {
        let Settings { chunk_bytes, receive, send, .. } = settings;
        let file = sys::socket(libc::AF_XDP, libc::SOCK_RAW, 0)?;
        let chunks = Chunks::new(chunk_bytes, receive, send)?;
        register(file.as_fd(), &chunks)?;
        let sizes = [
            (libc::XDP_UMEM_FILL_RING, receive),
            (libc::XDP_UMEM_COMPLETION_RING, send.max(LEAST_ENTRIES)),
            (libc::XDP_RX_RING, receive),
            (libc::XDP_TX_RING, send),
        ];
        for (ring, entries) in sizes.into_iter().filter(|(_, entries)| *entries > 0) {
            sys::set_option(file.as_fd(), libc::SOL_XDP, ring, &(entries as c_int))?;
        }
        // A sending socket waits for space in this queue; the system's default holds less than a batch.
        let (level, option) = (libc::SOL_SOCKET, libc::SO_SNDBUFFORCE);
        let _smaller_is_fine = sys::set_option(file.as_fd(), level, option, &QUEUE_BYTES);
        let at: xdp_mmap_offsets =
            sys::option(file.as_fd(), libc::SOL_XDP, libc::XDP_MMAP_OFFSETS)?;
        let fd = file.as_fd();
        let fill = ring(fd, (at.fr, libc::XDP_UMEM_PGOFF_FILL_RING), receive)?;
        let completed = (at.cr, libc::XDP_UMEM_PGOFF_COMPLETION_RING);
        let completed = ring(fd, completed, send.max(LEAST_ENTRIES))?;
        let received = ring(fd, (at.rx, libc::XDP_PGOFF_RX_RING as u64), receive)?;
        let to_send = || ring(fd, (at.tx, libc::XDP_PGOFF_TX_RING as u64), send);
        let to_send = (send > 0).then(to_send).transpose()?;
        bind(fd, settings, way | libc::XDP_USE_NEED_WAKEUP)?;
        Ok(Self {
            chunks,
            fill: Producer::new(fill),
            received: Consumer::new(received),
            completed: Consumer::new(completed),
            send: to_send.map(Producer::new),
            is_zero_copy: way & libc::XDP_ZEROCOPY != 0,
            has_pieces: way & libc::XDP_USE_SG != 0,
            file: Arc::new(file),
        })
    }
}

/// Returns the number of frames for this socket that the kernel has dropped.
pub(super) fn drops(socket: BorrowedFd<'_>) -> u64 {
    let statistics =
        sys::option::<libc::xdp_statistics>(socket, libc::SOL_XDP, libc::XDP_STATISTICS);
    statistics.map_or(0, |all| all.rx_dropped + all.rx_ring_full)
}

/// Returns `true` if `error` means that the kernel or driver does not support the attempted mode, so that the
/// next mode should be tried.
pub(super) fn is_unsupported(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EOPNOTSUPP | libc::EINVAL))
}

fn register(socket: BorrowedFd<'_>, chunks: &Chunks) -> io::Result<()> {
    let memory = chunks.memory();
    let request = libc::xdp_umem_reg {
        addr: memory.address(),
        len: memory.bytes() as u64,
        chunk_size: chunks.chunk_bytes(),
        ..libc::xdp_umem_reg::zeroed()
    };
    sys::set_option(socket, libc::SOL_XDP, libc::XDP_UMEM_REG, &request)
}

/// Maps a ring of `count` entries of `socket`.
fn ring<const WORDS: usize>(
    socket: BorrowedFd<'_>,
    (at, page): (xdp_ring_offset, u64),
    count: u32,
) -> io::Result<Ring<WORDS>> {
    let places = Places {
        producer: at.producer as usize,
        consumer: at.consumer as usize,
        flags: at.flags as usize,
        entries: at.desc as usize,
    };
    let bytes = places.entries + count as usize * WORDS * 8;
    let memory = Mapping::of_ring(socket, page, bytes)?;
    Ok(Ring::new(Arc::new(memory), places, count))
}

fn bind(socket: BorrowedFd<'_>, settings: Settings, flags: u16) -> io::Result<()> {
    let address = libc::sockaddr_xdp {
        sxdp_family: libc::AF_XDP as u16,
        sxdp_flags: flags,
        sxdp_ifindex: settings.interface,
        sxdp_queue_id: settings.queue,
        sxdp_shared_umem_fd: 0,
    };
    sys::bind(socket, &address)
}

/// The minimum number of entries of a ring, which the kernel also requires for a direction that is not used.
const LEAST_ENTRIES: u32 = 2;
