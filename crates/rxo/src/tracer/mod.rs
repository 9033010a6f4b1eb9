//! Tracer: logs packets to one capture file, from any number of points.
//!
//! A trace point is the [`PacketLog`] of traced sources and sinks. Contract: tracing cannot disturb the traffic.
//! Packets that could not be written are counted, and the first such packet is reported. After a system error
//! nothing more is written to the file.

use std::io::Write;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rxo_capture::{CaptureWriter, Interface, LinkType, Packet, WriteError};
use rxo_device::middleware::{Direction, PacketLog};
use rxo_frame::{Gather, Instant, LinkKind, VlanTag};

/// A capture file that is being written. Clones write to the same file, from any thread.
///
/// Packets are written as they pass: an aggregate is one packet, and a partial checksum stays partial in the
/// file. A VLAN tag in the metadata is inserted into the bytes.
#[derive(Debug)]
pub struct Tracer<W: Write> {
    shared: Arc<Mutex<Shared<W>>>,
    /// The Unix time that corresponds to zero on the frames' clock.
    epoch: Duration,
}

/// The numbers of packets that a tracer has written and not written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TracerCounters {
    /// The number of packets written to the file or to its buffer.
    pub written: u64,
    /// The number of packets that could not be written.
    pub unwritten: u64,
}

/// A point whose packets a tracer logs. It appears as an interface in the capture file.
#[derive(Debug)]
pub struct TracePoint<W: Write> {
    tracer: Tracer<W>,
    interface: u32,
}

#[derive(Debug)]
struct Shared<W: Write> {
    file: File<W>,
    counters: TracerCounters,
    /// The message for the user about the first packet that could not be written; `None` if there is no such
    /// message, or it was already returned.
    notice: Option<String>,
}

#[derive(Debug)]
enum File<W: Write> {
    Open(CaptureWriter<W>),
    Failed(WriteError),
    Finished,
}

impl<W: Write> Tracer<W> {
    /// Starts a pcapng file that names `application` as its writer. `epoch` is the Unix time that corresponds
    /// to zero on the frames' clock.
    ///
    /// # Errors
    /// If `output` cannot be written.
    ///
    /// # Examples
    /// ```
    /// use std::time::Duration;
    ///
    /// use rxo::device::middleware::{Direction, PacketLog};
    /// use rxo::tracer::Tracer;
    /// use rxo::{Frame, Instant, LinkKind};
    ///
    /// let tracer = Tracer::new(Vec::new(), "an example", Duration::ZERO)?;
    /// let nic = tracer.point("nic", LinkKind::Ethernet)?;
    /// let frame = Frame::new(vec![0; 60], Instant::ZERO);
    /// nic.log(frame.borrowed(), Direction::In, frame.arrived_at);
    /// assert_eq!(tracer.counters().written, 1);
    /// let file = tracer.finish()?;
    /// assert!(file.len() > 60);
    /// # Ok::<(), rxo::capture::WriteError>(())
    /// ```
    pub fn new(output: W, application: &str, epoch: Duration) -> Result<Self, WriteError> {
        let file = File::Open(CaptureWriter::new(output, application)?);
        let shared = Shared { file, counters: TracerCounters::default(), notice: None };
        Ok(Self { shared: Arc::new(Mutex::new(shared)), epoch })
    }

    /// Adds a trace point called `name`, for packets with the link layer `link`.
    ///
    /// # Errors
    /// If the output cannot be written, or the file is finished.
    pub fn point(&self, name: &str, link: LinkKind) -> Result<TracePoint<W>, WriteError> {
        let link = match link {
            LinkKind::Ethernet => LinkType::ETHERNET,
            LinkKind::RawIp => LinkType::RAW,
        };
        let interface = Interface { link, snap_bytes: None, name: Some(name.to_owned()) };
        let interface = match &mut self.lock().file {
            File::Open(file) => file.add_interface(&interface)?,
            File::Failed(_) | File::Finished => return Err(WriteError::UnknownInterface(0)),
        };
        Ok(TracePoint { tracer: self.clone(), interface })
    }

    /// Returns the numbers of packets written and not written.
    #[must_use]
    pub fn counters(&self) -> TracerCounters {
        self.lock().counters
    }

    /// Returns the next message for the user; each message is returned once. `None` if there is no message.
    #[must_use]
    pub fn take_notice(&self) -> Option<String> {
        self.lock().notice.take()
    }

    /// Writes the remaining data and returns the output. Packets that pass later count as not written.
    ///
    /// # Errors
    /// The system error that ended the file, or `UnknownInterface` if the file was finished before.
    pub fn finish(&self) -> Result<W, WriteError> {
        match std::mem::replace(&mut self.lock().file, File::Finished) {
            File::Open(file) => file.finish(),
            File::Failed(error) => Err(error),
            File::Finished => Err(WriteError::UnknownInterface(0)),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Shared<W>> {
        // No operation leaves the state half changed if it panics.
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<W: Write> Clone for Tracer<W> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared), epoch: self.epoch }
    }
}

impl<W: Write> Clone for TracePoint<W> {
    fn clone(&self) -> Self {
        Self { tracer: self.tracer.clone(), interface: self.interface }
    }
}

impl<W: Write> TracePoint<W> {
    /// Returns the tracer to which this point belongs.
    #[must_use]
    pub const fn tracer(&self) -> &Tracer<W> {
        &self.tracer
    }
}

impl<W: Write> PacketLog for TracePoint<W> {
    /// Writes `packet` to the capture file, or counts it as unwritten. Allocates.
    fn log<'a, G: Gather<'a>>(&self, packet: G, direction: Direction, at: Instant) {
        let mut pieces = Vec::new();
        packet.for_each_slice(|slice| pieces.push(slice));
        let tag = packet.vlan().map(tag_bytes);
        if let Some(tag) = &tag {
            insert_tag(&mut pieces, tag);
        }
        self.tracer.lock().write(&Packet {
            interface: self.interface,
            at: at + self.tracer.epoch,
            original_bytes: pieces.iter().map(|piece| piece.len() as u32).sum(),
            pieces: &pieces,
            direction: Some(match direction {
                Direction::In => rxo_capture::Direction::In,
                Direction::Out => rxo_capture::Direction::Out,
            }),
            comments: &[],
            custom: &[],
        });
    }

    fn take_notice(&self) -> Option<String> {
        self.tracer.take_notice()
    }
}

impl<W: Write> Shared<W> {
    fn write(&mut self, packet: &Packet<'_>) {
        let written = match &mut self.file {
            File::Open(file) => file.write(packet),
            File::Failed(_) | File::Finished => {
                self.counters.unwritten += 1;
                return;
            }
        };
        match written {
            Ok(()) => self.counters.written += 1,
            Err(error) => self.fail(error),
        }
    }

    fn fail(&mut self, error: WriteError) {
        if self.counters.unwritten == 0 {
            self.notice = Some(format!("packets are missing in the capture: {error}"));
        }
        self.counters.unwritten += 1;
        // An error for a packet that is too long concerns only that packet; after a system error the file is
        // truncated.
        if matches!(error, WriteError::Io(_)) {
            self.file = File::Failed(error);
        }
    }
}

fn tag_bytes(tag: VlanTag) -> [u8; 4] {
    let ([a, b], [c, d]) = (tag.tpid.get().to_be_bytes(), tag.tci.to_be_bytes());
    [a, b, c, d]
}

/// Inserts a VLAN tag into the pieces of a packet, at its position on the wire: after the two Ethernet addresses.
fn insert_tag<'a>(pieces: &mut Vec<&'a [u8]>, tag: &'a [u8; 4]) {
    let split = pieces.first().and_then(|first| first.split_at_checked(MAC_ADDRESSES_BYTES));
    if let Some((addresses, rest)) = split {
        pieces.splice(..1, [addresses, tag, rest]);
    }
}

const MAC_ADDRESSES_BYTES: usize = 12;

#[cfg(test)]
mod tests;
