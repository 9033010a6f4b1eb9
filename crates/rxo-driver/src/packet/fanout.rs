//! Fanout: several sources on one interface. Each receives the frames that the rule of
//! [`steering`](crate::steering) assigns to it.
//!
//! This module is separate because the sockets form a group, and the group's filter decides which socket gets
//! a frame. While the interface is down, the kernel removes the sockets from the group; it adds them again in
//! the same order.

use std::ffi::c_int;
use std::os::fd::AsFd;

use rxo_device::DeviceError;

use super::{PacketOptions, PacketSource};
use crate::steering::{MOST_QUEUES, program};
use crate::{fault, sys};

impl PacketSource {
    /// Opens `shards` sources on the interface `name`, which must be up. An unfragmented TCP packet is received
    /// by the source whose number [`shard_of`](rxo_wire::shard_of()) returns. For any other IP packet, the
    /// addresses determine the source. All other frames are received by the first source. Frames that arrive
    /// before all sources are open are discarded.
    ///
    /// # Errors
    /// Returns the errors of [`PacketSource::open`], and an error if `shards` is not from 1 to 256.
    pub fn open_shards(
        name: &str,
        options: PacketOptions,
        shards: u32,
    ) -> Result<Vec<Self>, DeviceError> {
        if !(1..=MOST_QUEUES).contains(&shards) {
            return Err(DeviceError::Usage(format!(
                "packet:{name}: {shards} shards; choose from 1 to {MOST_QUEUES}"
            )));
        }
        let open = |_| Self::open(name, options);
        let mut sources = (0..shards).map(open).collect::<Result<Vec<_>, _>>()?;
        if let Some((first, others)) = sources.split_first() {
            first.found_group(shards).map_err(|error| fault::opening(first.device(), error))?;
            let group = first.group().map_err(|error| fault::opening(first.device(), error))?;
            for other in others {
                other.join(group).map_err(|error| fault::opening(other.device(), error))?;
            }
        }
        Self::begin_together(&mut sources);
        Ok(sources)
    }

    /// Makes this socket the first member of a new group with the filter for `shards` sources.
    fn found_group(&self, shards: u32) -> std::io::Result<()> {
        self.join((CBPF | UNIQUE_ID | IGNORE_OUTGOING) << 16)?;
        sys::set_filter(self.as_fd(), libc::SOL_PACKET, PACKET_FANOUT_DATA, &program(shards))
    }

    /// Returns the group's number and flags, in the form that [`join`](Self::join) takes.
    fn group(&self) -> std::io::Result<c_int> {
        let number: c_int = sys::option(self.as_fd(), libc::SOL_PACKET, PACKET_FANOUT)?;
        Ok(number & 0xffff | (CBPF | IGNORE_OUTGOING) << 16)
    }

    fn join(&self, group: c_int) -> std::io::Result<()> {
        sys::set_option(self.as_fd(), libc::SOL_PACKET, PACKET_FANOUT, &group)
    }
}

// linux/if_packet.h.
const PACKET_FANOUT: c_int = 18;
const PACKET_FANOUT_DATA: c_int = 22;
const CBPF: c_int = 6;
const UNIQUE_ID: c_int = 0x2000;
const IGNORE_OUTGOING: c_int = 0x4000;
