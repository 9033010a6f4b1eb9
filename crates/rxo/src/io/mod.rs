//! The ends of a tunnel in a program that has packets of its own: single packets in and few writes out, and the reverse.
//!
//! ```text
//!  decrypted packets ── push ──▶ PacketWriter: Engine ──▶ aggregates ──▶ TUN
//!  packets to encrypt ◀── read ── PacketReader: segments ◀── GSO frames ◀── TUN
//! ```
//!
//! * [`PacketWriter`] coalesces packets before a sink.
//! * [`PacketReader`] splits the GSO frames of a source, and completes checksums. [`PacketSplitter`] is this step alone.
//! * [`Ordered`] restores the order of batches that several threads have decrypted.
//!
//! Both are [`Send`], work with any sink and source, and neither block nor read a clock. With the feature `driver`,
//! `Tap::from_fd` makes source and sink of a descriptor that the program has opened, and `driver::udp` moves the datagrams
//! in trains. Contract: packets leave in the order in which they came within each flow, none is lost or changed, and
//! nothing is allocated after construction.
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

/// Makes both ends of a TUN or TAP that the caller has opened and keeps: duplicates the descriptor, enables its offloads,
/// and makes it non-blocking, as [`Tap::from_fd`] does. The caller no longer reads or writes it. The writer holds at most
/// `batch` packets. Both ends may move to other threads.
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
