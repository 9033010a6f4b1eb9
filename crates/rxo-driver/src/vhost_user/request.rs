//! Request: a message from the front end, as a value.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use super::fields::Fields;
use super::{
    Header, InflightArea, InflightShape, LogArea, MOST_TABLE_REGIONS, Message, Region,
    SharedRegion, Wrong,
};

/// A request with its payload. `F` is the descriptor type: owned when a request is received, borrowed when it
/// is sent.
#[derive(Clone, Debug)]
pub enum Request<F = OwnedFd> {
    /// Asks for the features that the device offers.
    GetFeatures,
    /// Sets the virtio features to use.
    SetFeatures(u64),
    /// Makes this connection the owner of the device.
    SetOwner,
    /// Ends the ownership of the device. Deprecated; front ends still send it before they disconnect.
    ResetOwner,
    /// Sets all memory regions, in place of the previous ones.
    SetMemTable(Vec<SharedRegion<F>>),
    /// Sets the log of dirty pages.
    SetLogBase(LogArea<F>),
    /// Sets the descriptor by which the device may notify the front end of writes to the log.
    SetLogFd(F),
    /// Sets the number of entries of a ring.
    SetRingSize(RingNumber),
    /// Sets the addresses of the parts of a ring.
    SetRingAddresses(RingAddresses),
    /// Sets the entry at which a ring starts.
    SetRingBase(RingNumber),
    /// Stops the ring with this index, and asks for the entry at which it can resume.
    GetRingBase(u32),
    /// Sets the eventfd of the driver's notifications, and starts the ring.
    SetRingKick(RingDescriptor<F>),
    /// Sets the eventfd of the device's notifications.
    SetRingCall(RingDescriptor<F>),
    /// Sets the eventfd by which the device may report a broken ring.
    SetRingError(RingDescriptor<F>),
    /// Asks for the protocol features that the back end offers.
    GetProtocolFeatures,
    /// Sets the protocol features to use.
    SetProtocolFeatures(u64),
    /// Asks for the largest possible number of queue pairs.
    GetQueueNumber,
    /// Enables (1) or disables (0) a ring.
    SetRingEnable(RingNumber),
    /// Asks to announce the guest with this Ethernet address after a migration.
    SendRarp([u8; 6]),
    /// Sets the MTU of the device, in bytes.
    SetMtu(u64),
    /// Asks for a file in which chains in flight can be recorded.
    GetInflight(InflightShape),
    /// Sets the file in which chains in flight are recorded.
    SetInflight(InflightArea<F>),
    /// Resets the rings, the features in use and the virtio status. Memory and protocol features stay.
    ResetDevice,
    /// Asks for the largest possible number of memory regions.
    GetMaxMemSlots,
    /// Adds a memory region to the session.
    AddMemRegion(SharedRegion<F>),
    /// Removes a memory region from the session.
    RemoveMemRegion(Region),
    /// Sets the virtio status of the device; 0 resets it.
    SetStatus(u64),
    /// Asks for the virtio status that was set last.
    GetStatus,
}

/// A ring index and a number for that ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RingNumber {
    /// The index of the ring. Ring 0 is the first pair's receive ring, 1 its transmit ring, and so on.
    pub ring: u32,
    /// The number: the ring's size, its base, or 1 for enabled and 0 for disabled.
    pub number: u32,
}

/// The addresses of the parts of a ring, in the address space of the front end's process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RingAddresses {
    /// The index of the ring.
    pub ring: u32,
    /// The flags of the request. Bit 0 requests that accesses are logged.
    pub flags: u32,
    /// The address of the descriptor table; for a packed ring, of the whole ring.
    pub descriptors: u64,
    /// The address of the part that the device writes: the used ring, or the device event area of a packed
    /// ring.
    pub device: u64,
    /// The address of the part that the driver writes: the available ring, or the driver event area of a
    /// packed ring.
    pub driver: u64,
    /// The address at which accesses to the ring are logged.
    pub log: u64,
}

/// A ring index and a descriptor for that ring.
#[derive(Clone, Debug)]
pub struct RingDescriptor<F> {
    /// The index of the ring, up to 255.
    pub ring: u32,
    /// An eventfd; `None` if the ring must be polled.
    pub file: Option<F>,
}

const NO_DESCRIPTOR: u64 = 1 << 8;
const RING_MASK: u64 = 0xff;

/// The numbers of requests, under the names of the specification.
mod number {
    pub(super) const GET_FEATURES: u32 = 1;
    pub(super) const SET_FEATURES: u32 = 2;
    pub(super) const SET_OWNER: u32 = 3;
    pub(super) const RESET_OWNER: u32 = 4;
    pub(super) const SET_MEM_TABLE: u32 = 5;
    pub(super) const SET_LOG_BASE: u32 = 6;
    pub(super) const SET_LOG_FD: u32 = 7;
    pub(super) const SET_VRING_NUM: u32 = 8;
    pub(super) const SET_VRING_ADDR: u32 = 9;
    pub(super) const SET_VRING_BASE: u32 = 10;
    pub(super) const GET_VRING_BASE: u32 = 11;
    pub(super) const SET_VRING_KICK: u32 = 12;
    pub(super) const SET_VRING_CALL: u32 = 13;
    pub(super) const SET_VRING_ERR: u32 = 14;
    pub(super) const GET_PROTOCOL_FEATURES: u32 = 15;
    pub(super) const SET_PROTOCOL_FEATURES: u32 = 16;
    pub(super) const GET_QUEUE_NUM: u32 = 17;
    pub(super) const SET_VRING_ENABLE: u32 = 18;
    pub(super) const SEND_RARP: u32 = 19;
    pub(super) const NET_SET_MTU: u32 = 20;
    pub(super) const GET_INFLIGHT_FD: u32 = 31;
    pub(super) const SET_INFLIGHT_FD: u32 = 32;
    pub(super) const RESET_DEVICE: u32 = 34;
    pub(super) const GET_MAX_MEM_SLOTS: u32 = 36;
    pub(super) const ADD_MEM_REG: u32 = 37;
    pub(super) const REM_MEM_REG: u32 = 38;
    pub(super) const SET_STATUS: u32 = 39;
    pub(super) const GET_STATUS: u32 = 40;
}

impl Request {
    /// Parses a request and takes ownership of its descriptors. The message must have exactly the bytes and
    /// descriptors of its request; descriptors of a refused message are closed.
    ///
    /// # Errors
    /// If the request is unknown, or the message has other bytes or descriptors.
    pub fn read(message: Message) -> Result<Self, Wrong> {
        let Message { header, payload, descriptors } = message;
        if header.is_reply {
            return Err(Wrong::Direction);
        }
        let mut fields = Fields::new(&payload);
        let mut files = descriptors.into_iter();
        let request = Self::read_payload(header.request, &mut fields, &mut files)?;
        fields.end()?;
        // Some front ends send the file of the region that they remove.
        let may_have_more = matches!(request, Self::RemoveMemRegion(_));
        if files.len() > usize::from(may_have_more) {
            return Err(Wrong::Descriptors);
        }
        Ok(request)
    }

    fn read_payload(
        request: u32,
        fields: &mut Fields<'_>,
        files: &mut impl Iterator<Item = OwnedFd>,
    ) -> Result<Self, Wrong> {
        Ok(match request {
            number::GET_FEATURES => Self::GetFeatures,
            number::SET_FEATURES => Self::SetFeatures(fields.u64()?),
            number::SET_OWNER => Self::SetOwner,
            number::RESET_OWNER => Self::ResetOwner,
            number::SET_MEM_TABLE => Self::SetMemTable(read_table(fields, files)?),
            number::SET_LOG_BASE => Self::SetLogBase(LogArea::read(fields, || next(files))?),
            number::SET_LOG_FD => Self::SetLogFd(next(files)?),
            number::SET_VRING_NUM => Self::SetRingSize(RingNumber::read(fields)?),
            number::SET_VRING_ADDR => Self::SetRingAddresses(RingAddresses::read(fields)?),
            number::SET_VRING_BASE => Self::SetRingBase(RingNumber::read(fields)?),
            number::GET_VRING_BASE => Self::GetRingBase(RingNumber::read(fields)?.ring),
            number::SET_VRING_KICK => Self::SetRingKick(RingDescriptor::read(fields, files)?),
            number::SET_VRING_CALL => Self::SetRingCall(RingDescriptor::read(fields, files)?),
            number::SET_VRING_ERR => Self::SetRingError(RingDescriptor::read(fields, files)?),
            number::GET_PROTOCOL_FEATURES => Self::GetProtocolFeatures,
            number::SET_PROTOCOL_FEATURES => Self::SetProtocolFeatures(fields.u64()?),
            number::GET_QUEUE_NUM => Self::GetQueueNumber,
            number::SET_VRING_ENABLE => Self::SetRingEnable(RingNumber::read(fields)?),
            number::SEND_RARP => {
                let [address @ .., _, _] = fields.u64()?.to_ne_bytes();
                Self::SendRarp(address)
            }
            number::NET_SET_MTU => Self::SetMtu(fields.u64()?),
            number::GET_INFLIGHT_FD => Self::GetInflight(InflightShape::read_alone(fields)?),
            number::SET_INFLIGHT_FD => {
                Self::SetInflight(InflightArea::read(fields, || next(files))?)
            }
            number::RESET_DEVICE => Self::ResetDevice,
            number::GET_MAX_MEM_SLOTS => Self::GetMaxMemSlots,
            number::ADD_MEM_REG => {
                let _padding = fields.u64()?;
                let region = Region::read(fields)?;
                Self::AddMemRegion(SharedRegion { region, file: next(files)? })
            }
            number::REM_MEM_REG => {
                let _padding = fields.u64()?;
                Self::RemoveMemRegion(Region::read(fields)?)
            }
            number::SET_STATUS => Self::SetStatus(fields.u64()?),
            number::GET_STATUS => Self::GetStatus,
            unknown => return Err(Wrong::Request(unknown)),
        })
    }
}

impl<F> Request<F> {
    /// Returns the number of the request in messages.
    #[must_use]
    pub const fn number(&self) -> u32 {
        match self {
            Self::GetFeatures => number::GET_FEATURES,
            Self::SetFeatures(_) => number::SET_FEATURES,
            Self::SetOwner => number::SET_OWNER,
            Self::ResetOwner => number::RESET_OWNER,
            Self::SetMemTable(_) => number::SET_MEM_TABLE,
            Self::SetLogBase(_) => number::SET_LOG_BASE,
            Self::SetLogFd(_) => number::SET_LOG_FD,
            Self::SetRingSize(_) => number::SET_VRING_NUM,
            Self::SetRingAddresses(_) => number::SET_VRING_ADDR,
            Self::SetRingBase(_) => number::SET_VRING_BASE,
            Self::GetRingBase(_) => number::GET_VRING_BASE,
            Self::SetRingKick(_) => number::SET_VRING_KICK,
            Self::SetRingCall(_) => number::SET_VRING_CALL,
            Self::SetRingError(_) => number::SET_VRING_ERR,
            Self::GetProtocolFeatures => number::GET_PROTOCOL_FEATURES,
            Self::SetProtocolFeatures(_) => number::SET_PROTOCOL_FEATURES,
            Self::GetQueueNumber => number::GET_QUEUE_NUM,
            Self::SetRingEnable(_) => number::SET_VRING_ENABLE,
            Self::SendRarp(_) => number::SEND_RARP,
            Self::SetMtu(_) => number::NET_SET_MTU,
            Self::GetInflight(_) => number::GET_INFLIGHT_FD,
            Self::SetInflight(_) => number::SET_INFLIGHT_FD,
            Self::ResetDevice => number::RESET_DEVICE,
            Self::GetMaxMemSlots => number::GET_MAX_MEM_SLOTS,
            Self::AddMemRegion(_) => number::ADD_MEM_REG,
            Self::RemoveMemRegion(_) => number::REM_MEM_REG,
            Self::SetStatus(_) => number::SET_STATUS,
            Self::GetStatus => number::GET_STATUS,
        }
    }

    /// Returns `true` if the request has a reply of its own.
    #[must_use]
    pub const fn has_reply(&self) -> bool {
        matches!(
            self,
            Self::GetFeatures
                | Self::GetProtocolFeatures
                | Self::GetQueueNumber
                | Self::SetLogBase(_)
                | Self::GetRingBase(_)
                | Self::GetInflight(_)
                | Self::GetMaxMemSlots
                | Self::GetStatus
        )
    }
}

impl<F: AsFd> Request<F> {
    /// Returns the request as the bytes of a message, with `needs_reply` in its header. The descriptors of
    /// [`Request::files`] must be sent together with these bytes.
    #[must_use]
    pub fn to_bytes(&self, needs_reply: bool) -> Vec<u8> {
        let mut payload = Vec::new();
        self.write_payload(&mut payload);
        let header = Header {
            request: self.number(),
            is_reply: false,
            needs_reply,
            payload_bytes: payload.len(),
        };
        [&header.to_bytes()[..], &payload].concat()
    }

    /// Returns the descriptors to send with the message, in order.
    #[must_use]
    pub fn files(&self) -> Vec<BorrowedFd<'_>> {
        match self {
            Self::SetMemTable(table) => table.iter().map(|shared| shared.file.as_fd()).collect(),
            Self::AddMemRegion(shared) => vec![shared.file.as_fd()],
            Self::SetLogBase(log) => vec![log.file.as_fd()],
            Self::SetLogFd(file) => vec![file.as_fd()],
            Self::SetInflight(area) => vec![area.file.as_fd()],
            Self::SetRingKick(of) | Self::SetRingCall(of) | Self::SetRingError(of) => {
                of.file.iter().map(AsFd::as_fd).collect()
            }
            _ => Vec::new(),
        }
    }

    fn write_payload(&self, payload: &mut Vec<u8>) {
        match self {
            Self::GetFeatures
            | Self::SetOwner
            | Self::ResetOwner
            | Self::GetProtocolFeatures
            | Self::GetQueueNumber
            | Self::SetLogFd(_)
            | Self::ResetDevice
            | Self::GetMaxMemSlots
            | Self::GetStatus => {}
            Self::SetFeatures(number)
            | Self::SetProtocolFeatures(number)
            | Self::SetMtu(number)
            | Self::SetStatus(number) => payload.extend(number.to_ne_bytes()),
            Self::SetMemTable(table) => {
                payload.extend((table.len() as u32).to_ne_bytes());
                payload.extend([0; 4]);
                table.iter().for_each(|shared| shared.region.write(payload));
            }
            Self::SetLogBase(log) => log.write(payload),
            Self::GetInflight(shape) => shape.write((0, 0), payload),
            Self::SetInflight(area) => area.write(payload),
            Self::SetRingSize(of) | Self::SetRingBase(of) | Self::SetRingEnable(of) => {
                of.write(payload);
            }
            Self::SetRingAddresses(addresses) => addresses.write(payload),
            Self::GetRingBase(ring) => RingNumber { ring: *ring, number: 0 }.write(payload),
            Self::SetRingKick(of) | Self::SetRingCall(of) | Self::SetRingError(of) => {
                of.write(payload);
            }
            Self::SendRarp(address) => payload.extend([&address[..], &[0; 2]].concat()),
            Self::AddMemRegion(SharedRegion { region, .. }) | Self::RemoveMemRegion(region) => {
                payload.extend([0; 8]);
                region.write(payload);
            }
        }
    }
}

impl RingNumber {
    pub(super) fn read(fields: &mut Fields<'_>) -> Result<Self, Wrong> {
        Ok(Self { ring: fields.u32()?, number: fields.u32()? })
    }

    fn write(self, payload: &mut Vec<u8>) {
        payload.extend(self.ring.to_ne_bytes());
        payload.extend(self.number.to_ne_bytes());
    }
}

impl RingAddresses {
    fn read(fields: &mut Fields<'_>) -> Result<Self, Wrong> {
        let (ring, flags) = (fields.u32()?, fields.u32()?);
        let (descriptors, device) = (fields.u64()?, fields.u64()?);
        Ok(Self { ring, flags, descriptors, device, driver: fields.u64()?, log: fields.u64()? })
    }

    fn write(self, payload: &mut Vec<u8>) {
        payload.extend(self.ring.to_ne_bytes());
        payload.extend(self.flags.to_ne_bytes());
        for address in [self.descriptors, self.device, self.driver, self.log] {
            payload.extend(address.to_ne_bytes());
        }
    }
}

impl<F> RingDescriptor<F> {
    fn read(fields: &mut Fields<'_>, files: &mut impl Iterator<Item = F>) -> Result<Self, Wrong> {
        let word = fields.u64()?;
        let file = if word & NO_DESCRIPTOR == 0 { Some(next(files)?) } else { None };
        Ok(Self { ring: (word & RING_MASK) as u32, file })
    }

    fn write(&self, payload: &mut Vec<u8>) {
        let none = if self.file.is_none() { NO_DESCRIPTOR } else { 0 };
        payload.extend((u64::from(self.ring) & RING_MASK | none).to_ne_bytes());
    }
}

fn read_table<F>(
    fields: &mut Fields<'_>,
    files: &mut impl Iterator<Item = F>,
) -> Result<Vec<SharedRegion<F>>, Wrong> {
    let count = fields.u32()? as usize;
    let _padding = fields.u32()?;
    if count > MOST_TABLE_REGIONS {
        return Err(Wrong::TooManyRegions(MOST_TABLE_REGIONS));
    }
    (0..count)
        .map(|_| Ok(SharedRegion { region: Region::read(fields)?, file: next(files)? }))
        .collect()
}

fn next<F>(files: &mut impl Iterator<Item = F>) -> Result<F, Wrong> {
    files.next().ok_or(Wrong::Descriptors)
}

#[cfg(test)]
mod tests;
