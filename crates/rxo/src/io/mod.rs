//! Reader and writer for a program that processes single packets, such as a tunnel. The writer makes few writes
//! from many packets. The reader makes single packets from large frames.
//!
//! ```text
//!  decrypted packets ── push ──▶ PacketWriter: Engine ──▶ aggregates ──▶ TUN
//!  packets to encrypt ◀── read ── PacketReader: segments ◀── GSO frames ◀── TUN
//! ```
//!
//! * [`PacketWriter`] coalesces packets before a sink.
//! * [`PacketReader`] splits the GSO frames of a source, and completes checksums. [`PacketSplitter`] does only
//!   this, for frames that the program receives itself.
//! * [`Ordered`] restores the order of batches that several threads have decrypted.
//!
//! Reader and writer are [`Send`], work with any sink and source, and neither block nor read a clock. With the
//! feature `driver`, `Tap::from_fd` makes a source and a sink from a descriptor that the program has opened,
//! and `driver::udp` receives and sends datagrams in batches. Contract: within each flow, packets leave in the
//! order in which they arrived; no packet is lost or changed; nothing is allocated after construction.
//!
//! # Examples
//! ```
//! use rxo::device::{MemoryLink, MemoryOptions};
//! use rxo::frame::LinkKind;
//! use rxo::io::PacketWriter;
//!
//! let tun = MemoryLink::new(MemoryOptions { link: LinkKind::RawIp, ..MemoryOptions::default() });
//! let mut writer = PacketWriter::new(tun.sink(), 64)?;
//! for index in 0..40 {
//!     writer.write(&rxo_testkit::seg().raw_ip().seq(1 + index * 1_000).len(1_000).bytes())?;
//! }
//! writer.flush()?;
//! assert_eq!(tun.take_all().len(), 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod ordered;
mod reader;
mod splitter;
mod writer;

#[cfg(feature = "driver")]
use std::os::fd::BorrowedFd;

pub use ordered::{Exit, Ordered, Ticket};
pub use reader::PacketReader;
#[cfg(feature = "driver")]
use rxo_device::DeviceError;
#[cfg(feature = "driver")]
use rxo_driver::{DeviceSink, SubmitMode, Tap, TapSource};
pub use splitter::PacketSplitter;
pub use writer::PacketWriter;

/// Creates a reader and a writer for a TUN or TAP device that the caller has opened. Duplicates the descriptor,
/// enables the device's offloads, and makes the descriptor non-blocking, as [`Tap::from_fd`] does. The caller
/// keeps its descriptor, but must no longer read from it or write to it. The writer holds at most `batch`
/// packets. Reader and writer may move to different threads.
///
/// # Errors
/// Returns the errors of [`Tap::from_fd`] and [`PacketWriter::new`].
#[cfg(feature = "driver")]
pub fn ends(
    tun: BorrowedFd<'_>,
    batch: usize,
) -> Result<(PacketReader<TapSource>, PacketWriter<DeviceSink>), DeviceError> {
    let copy = tun.try_clone_to_owned().map_err(|source| {
        let message = "cannot duplicate the descriptor of a TUN".to_owned();
        DeviceError::System { message, source }
    })?;
    let tap = Tap::from_fd(copy)?;
    let writer = PacketWriter::new(tap.sink(SubmitMode::Writev)?, batch)?;
    Ok((PacketReader::new(tap.source()?), writer))
}
