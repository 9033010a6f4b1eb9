//! Prints a script for a person who reads a failed test: one line for each event, and the bytes
//! that
//! reproduce it.

use std::fmt;

use super::{Script, Step};
use crate::naive::{Reading, Segment};

impl fmt::Debug for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:?}", self.setup)?;
        write!(f, "from the bytes ")?;
        self.source.iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
        writeln!(f)?;
        for (number, step) in self.steps.iter().enumerate() {
            match step {
                Step::Frame(index) => self.show_frame(f, *index)?,
                other => writeln!(f, "{other:?} (step {number})")?,
            }
        }
        Ok(())
    }
}

impl Script {
    fn show_frame(&self, f: &mut fmt::Formatter<'_>, index: usize) -> fmt::Result {
        let frame = &self.all_frames[index];
        write!(f, "{index}: {} bytes, {:?}", frame.bytes.len(), frame.checksum)?;
        if let Some(tag) = frame.vlan {
            write!(f, ", tag taken out {:#06x}", tag.tci)?;
        }
        if frame.gso.is_some() {
            write!(f, ", already aggregated")?;
        }
        match self.reading(index) {
            Reading::Segment(segment) => writeln!(f, ", {}", Line(&segment)),
            Reading::Datagram(segment) => writeln!(f, ", UDP {}", Line(&segment)),
            other => writeln!(f, ", {other:?}"),
        }
    }
}

/// Prints a segment in one line.
struct Line<'a>(&'a Segment);

impl fmt::Display for Line<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let segment = self.0;
        let end = segment.seq.wrapping_add(segment.payload.len() as u32);
        write!(f, "v{} ", if segment.v6 { 6 } else { 4 })?;
        write!(f, "{:?} {:?} {:?} ", segment.ends.vlans, segment.ports, segment.ends.addresses)?;
        write!(f, "{}..{end} ack {} window {}", segment.seq, segment.ack, segment.window)?;
        write!(f, " flags {:#05x} id {} ", segment.flags, segment.id)?;
        write!(f, "df {} tos {:#x}", segment.dont_fragment, segment.traffic_class)?;
        write!(f, " ttl {} options {:?}", segment.hop_limit, segment.options)?;
        write!(f, " between {:?}", segment.between)?;
        write!(f, " checksums {} {}", segment.ip_checksum_ok, segment.checksum_ok)
    }
}
