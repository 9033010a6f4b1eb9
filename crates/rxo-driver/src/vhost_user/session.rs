//! Session: the state that a front end has set in a back end: features, memory, rings.
//!
//! A request that is valid by itself is accepted at any time, because the order of requests differs between front
//! ends: QEMU enables rings before it sets the features. A ring is usable once all its settings have arrived, in
//! any order.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use super::features::{
    DEVICE_OFFERS, DEVICE_OFFERS_PROTOCOL, LOG_ALL, MQ, PROTOCOL_FEATURES, PROTOCOL_INFLIGHT_SHMFD,
    PROTOCOL_LOG_SHMFD, PROTOCOL_MEM_SLOTS, PROTOCOL_MTU, PROTOCOL_RARP, PROTOCOL_REPLY_ACK,
    PROTOCOL_RESET_DEVICE, PROTOCOL_STATUS, RING_PACKED,
};
use super::{
    InflightArea, InflightShape, LogArea, MOST_TABLE_REGIONS, Message, Reply, Request,
    RingAddresses, RingDescriptor, RingNumber, SharedRegion, Wrong,
};

/// The settings of one connection of a front end.
#[derive(Debug)]
pub struct Session {
    offers: u64,
    offers_protocol: u64,
    features: u64,
    protocol: u64,
    status: u64,
    mtu: Option<u16>,
    regions: Vec<SharedRegion<OwnedFd>>,
    rings: Vec<Ring>,
    log: Option<LogArea<OwnedFd>>,
    log_call: Option<OwnedFd>,
    inflight: Option<InflightArea<OwnedFd>>,
}

/// The settings of one ring, as the front end has sent them.
#[derive(Debug, Default)]
pub struct Ring {
    /// The number of descriptors in the ring; 0 until the front end has set it.
    pub size: u16,
    /// The addresses of the ring's parts; `None` until the front end has set them.
    pub addresses: Option<RingAddresses>,
    /// The ring's position: the next available entry and, for a packed ring, the wrap counters and the next
    /// used entry.
    pub base: u32,
    is_enabled: bool,
    is_started: bool,
    kick: Option<OwnedFd>,
    call: Option<OwnedFd>,
}

/// The state that a request has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// The request has changed no state on which queues depend.
    None,
    /// The request has changed this ring: its queue must be created again.
    Ring(usize),
    /// The request has changed all rings: all queues must be created again.
    Rings,
    /// The request has changed the memory: it must be mapped again, and all queues created again.
    Memory,
    /// The request has set another log of dirty pages, which must be mapped.
    Log,
    /// The request has set another descriptor for notifications of writes to the log.
    LogCall,
    /// The request has set another record of chains in flight: it must be mapped, and all queues created again.
    Inflight,
    /// The request asks for a file for a record of chains in flight with this shape.
    InflightFile(InflightShape),
    /// The request asks to announce the guest with this Ethernet address.
    Announcement([u8; 6]),
}

/// The outcome of a request that was accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done {
    /// The change that the request makes, to be carried out before the reply is sent.
    pub change: Change,
    /// The reply to the request; `None` if the request needs no reply.
    pub reply: Option<Reply>,
}

impl Session {
    /// Creates a session for a device with `rings` rings, two for each pair of queues. The device offers
    /// [`DEVICE_OFFERS`].
    #[must_use]
    pub fn new(rings: usize) -> Self {
        Self::offering(DEVICE_OFFERS, rings)
    }

    /// Creates a session for a device that offers these features, with `rings` rings.
    #[must_use]
    pub fn offering(offers: u64, rings: usize) -> Self {
        Self {
            offers,
            offers_protocol: DEVICE_OFFERS_PROTOCOL,
            features: 0,
            protocol: 0,
            status: 0,
            mtu: None,
            regions: Vec::new(),
            rings: (0..rings).map(|_| Ring::default()).collect(),
            log: None,
            log_call: None,
            inflight: None,
        }
    }

    /// Stops offering the record of chains in flight. Call it before the first message.
    pub(crate) const fn offer_no_inflight(&mut self) {
        self.offers_protocol &= !PROTOCOL_INFLIGHT_SHMFD;
    }

    /// Applies the request in `message`. If queues are in use, first call [`Session::set_base`] for each of
    /// them.
    ///
    /// # Errors
    /// If the message is invalid. The caller must then close the connection, because the settings may be
    /// incomplete.
    pub fn take(&mut self, message: Message) -> Result<Done, Wrong> {
        let wants_reply = message.header.needs_reply;
        let request = Request::read(message)?;
        let number = request.number();
        let is_own = request.has_reply();
        let own = self.reply(&request)?;
        let change = self.apply(request)?;
        let is_acknowledged = wants_reply && !is_own && self.protocol & PROTOCOL_REPLY_ACK != 0;
        let reply = own.or_else(|| is_acknowledged.then(|| Reply::number(number, 0)));
        Ok(Done { change, reply })
    }

    /// Returns the requests that put a new session into the state of this one. If queues are in use, first
    /// call [`Session::set_base`] for each of them.
    pub(crate) fn requests(&self) -> Vec<Request<BorrowedFd<'_>>> {
        let mut requests = vec![Request::SetProtocolFeatures(self.protocol)];
        requests.extend((self.features != 0).then_some(Request::SetFeatures(self.features)));
        requests.extend((self.status != 0).then_some(Request::SetStatus(self.status)));
        requests.extend(self.mtu.map(|mtu| Request::SetMtu(mtu.into())));
        let (table, more) = self.regions.split_at(self.regions.len().min(MOST_TABLE_REGIONS));
        requests.push(Request::SetMemTable(table.iter().map(SharedRegion::borrowed).collect()));
        requests.extend(more.iter().map(|shared| Request::AddMemRegion(shared.borrowed())));
        requests.extend(self.log.as_ref().map(|log| Request::SetLogBase(log.borrowed())));
        requests.extend(self.log_call().map(Request::SetLogFd));
        requests.extend(self.inflight.as_ref().map(|it| Request::SetInflight(it.borrowed())));
        requests.extend((0_u32..).zip(&self.rings).flat_map(|(n, ring)| ring.requests(n)));
        requests
    }

    /// Stores the current position of a ring's queue.
    pub fn set_base(&mut self, ring: usize, base: u32) {
        if let Some(ring) = self.rings.get_mut(ring) {
            ring.base = base;
        }
    }

    /// Returns the virtio features in use; 0 before they are set.
    #[must_use]
    pub const fn features(&self) -> u64 {
        self.features
    }

    /// Returns the MTU of the device in bytes; `None` if the front end has not sent it.
    #[must_use]
    pub const fn mtu(&self) -> Option<u16> {
        self.mtu
    }

    /// Returns the log of dirty pages if the device must write to it; otherwise `None`.
    #[must_use]
    pub const fn log(&self) -> Option<&LogArea<OwnedFd>> {
        if self.features & LOG_ALL == 0 { None } else { self.log.as_ref() }
    }

    /// Returns the log that the front end has set last, in use or not; `None` if it has set none.
    pub(crate) const fn log_area(&self) -> Option<&LogArea<OwnedFd>> {
        self.log.as_ref()
    }

    /// Returns the descriptor for notifications of writes to the log; `None` if the front end wants none.
    #[must_use]
    pub fn log_call(&self) -> Option<BorrowedFd<'_>> {
        self.log_call.as_ref().map(AsFd::as_fd)
    }

    /// Returns the record of chains in flight; `None` if they are not recorded.
    #[must_use]
    pub const fn inflight(&self) -> Option<&InflightArea<OwnedFd>> {
        self.inflight.as_ref()
    }

    /// Returns the memory regions with their files.
    #[must_use]
    pub fn regions(&self) -> &[SharedRegion<OwnedFd>] {
        &self.regions
    }

    /// Returns all rings of the device.
    #[must_use]
    pub fn rings(&self) -> &[Ring] {
        &self.rings
    }

    /// Returns the ring with this index if it is complete, started and enabled; otherwise `None`.
    #[must_use]
    pub fn usable(&self, ring: usize) -> Option<&Ring> {
        let is_enabled = |ring: &&Ring| ring.is_enabled || self.features & PROTOCOL_FEATURES == 0;
        let is_complete = |ring: &&Ring| {
            ring.is_started && ring.size > 0 && ring.addresses.is_some() && self.features != 0
        };
        self.rings.get(ring).filter(is_enabled).filter(is_complete)
    }

    fn reply(&self, request: &Request) -> Result<Option<Reply>, Wrong> {
        let value = match *request {
            Request::GetFeatures => self.offers,
            Request::GetProtocolFeatures => self.offers_protocol,
            Request::GetQueueNumber => self.rings.len() as u64 / 2,
            Request::GetMaxMemSlots => MOST_REGIONS as u64,
            Request::GetStatus => self.status,
            Request::SetLogBase(_) => 0,
            Request::GetRingBase(ring) => {
                let number = self.ring(ring)?.base;
                return Ok(Some(Reply::ring(request.number(), RingNumber { ring, number })));
            }
            _ => return Ok(None),
        };
        Ok(Some(Reply::number(request.number(), value)))
    }

    fn apply(&mut self, request: Request) -> Result<Change, Wrong> {
        self.check_agreed(&request)?;
        match request {
            Request::SetFeatures(features) => {
                self.features = offered(features, self.offers)?;
                return Ok(Change::Rings);
            }
            Request::SetProtocolFeatures(features) => {
                self.protocol = offered(features, self.offers_protocol)?;
            }
            Request::SetMtu(mtu) => self.mtu = u16::try_from(mtu).ok(),
            Request::SetStatus(status) => {
                self.status = status;
                if status == 0 {
                    self.inflight = None;
                    self.rings.iter_mut().for_each(Ring::stop);
                    return Ok(Change::Rings);
                }
            }
            Request::ResetOwner => {
                self.forget_rings();
                return Ok(Change::Rings);
            }
            // The connection stays open, so the protocol features and the memory stay.
            Request::ResetDevice => {
                (self.features, self.status) = (0, 0);
                self.forget_rings();
                return Ok(Change::Rings);
            }
            Request::SendRarp(address) => return Ok(Change::Announcement(address)),
            Request::SetLogBase(log) => {
                self.log = Some(log);
                return Ok(Change::Log);
            }
            Request::SetLogFd(file) => {
                self.log_call = Some(file);
                return Ok(Change::LogCall);
            }
            Request::GetInflight(shape) => {
                self.check_shape(shape)?;
                return Ok(Change::InflightFile(shape));
            }
            Request::SetInflight(area) => {
                self.check_shape(area.shape)?;
                self.inflight = Some(area);
                return Ok(Change::Inflight);
            }
            Request::SetMemTable(_) | Request::AddMemRegion(_) | Request::RemoveMemRegion(_) => {
                return self.apply_to_memory(request);
            }
            request => return self.apply_to_ring(request),
        }
        Ok(Change::None)
    }

    /// Adds, removes or replaces memory regions. QEMU before 8.2 repeats each such request for every pair of
    /// queues; a repeated request changes nothing.
    fn apply_to_memory(&mut self, request: Request) -> Result<Change, Wrong> {
        let is_for_pairs = self.features & MQ != 0;
        match request {
            Request::SetMemTable(table) => {
                self.regions.clear();
                table.into_iter().try_for_each(|shared| self.add(shared))?;
            }
            Request::AddMemRegion(shared) => {
                if is_for_pairs && self.regions.iter().any(|it| it.region == shared.region) {
                    return Ok(Change::None);
                }
                self.add(shared)?;
            }
            Request::RemoveMemRegion(region) => {
                match self.regions.iter().position(|shared| shared.region.is_at(&region)) {
                    Some(at) => _ = self.regions.remove(at),
                    None if is_for_pairs => return Ok(Change::None),
                    None => return Err(Wrong::NoSuchRegion(region)),
                }
            }
            _ => return Ok(Change::None),
        }
        Ok(Change::Memory)
    }

    fn apply_to_ring(&mut self, request: Request) -> Result<Change, Wrong> {
        let changed = match request {
            Request::SetRingSize(RingNumber { ring, number }) => {
                self.ring_mut(ring)?.size = ring_size(number)?;
                ring
            }
            Request::SetRingAddresses(addresses) => {
                self.ring_mut(addresses.ring)?.addresses = Some(addresses);
                addresses.ring
            }
            Request::SetRingBase(RingNumber { ring, number }) => {
                // The limit depends on the layout; before the features are set, only creating the queue
                // checks it.
                let is_split = self.features != 0 && self.features & RING_PACKED == 0;
                if is_split && number > u32::from(u16::MAX) {
                    return Err(Wrong::RingBase(number));
                }
                self.ring_mut(ring)?.base = number;
                ring
            }
            Request::GetRingBase(ring) => {
                self.ring_mut(ring)?.stop();
                ring
            }
            Request::SetRingKick(RingDescriptor { ring, file }) => {
                let found = self.ring_mut(ring)?;
                (found.kick, found.is_started) = (file, true);
                ring
            }
            Request::SetRingCall(RingDescriptor { ring, file }) => {
                self.ring_mut(ring)?.call = file;
                ring
            }
            // A broken ring ends the connection, so this event is not needed.
            Request::SetRingError(RingDescriptor { ring, .. }) => {
                self.ring_mut(ring)?;
                return Ok(Change::None);
            }
            Request::SetRingEnable(RingNumber { ring, number }) => {
                self.ring_mut(ring)?.is_enabled = number != 0;
                ring
            }
            _ => return Ok(Change::None),
        };
        Ok(Change::Ring(changed as usize))
    }

    fn check_shape(&self, shape: InflightShape) -> Result<(), Wrong> {
        let is_possible = usize::from(shape.rings) <= self.rings.len();
        if is_possible { Ok(()) } else { Err(Wrong::InflightRings(shape.rings)) }
    }

    /// Resets all rings and their record of chains in flight, because the next driver starts with new ones.
    fn forget_rings(&mut self) {
        self.inflight = None;
        self.rings.iter_mut().for_each(|ring| *ring = Ring::default());
    }

    fn add(&mut self, shared: SharedRegion<OwnedFd>) -> Result<(), Wrong> {
        let overlaps = |other: &SharedRegion<_>| shared.region.overlaps(&other.region);
        if self.regions.iter().any(overlaps) {
            return Err(Wrong::Overlap(shared.region));
        }
        if self.regions.len() == MOST_REGIONS {
            return Err(Wrong::TooManyRegions(MOST_REGIONS));
        }
        self.regions.push(shared);
        Ok(())
    }

    /// Checks that the protocol feature that the request requires was negotiated.
    fn check_agreed(&self, request: &Request) -> Result<(), Wrong> {
        let needed = match request {
            Request::SendRarp(_) => PROTOCOL_RARP,
            Request::SetMtu(_) => PROTOCOL_MTU,
            // Without a file, the log would be at an address of the front end.
            Request::SetLogBase(_) => PROTOCOL_LOG_SHMFD,
            Request::GetInflight(_) | Request::SetInflight(_) => PROTOCOL_INFLIGHT_SHMFD,
            Request::ResetDevice => PROTOCOL_RESET_DEVICE,
            Request::GetMaxMemSlots | Request::AddMemRegion(_) | Request::RemoveMemRegion(_) => {
                PROTOCOL_MEM_SLOTS
            }
            Request::SetStatus(_) | Request::GetStatus => PROTOCOL_STATUS,
            _ => 0,
        };
        if self.protocol & needed == needed {
            Ok(())
        } else {
            Err(Wrong::NotAgreed(request.number()))
        }
    }

    fn ring(&self, ring: u32) -> Result<&Ring, Wrong> {
        self.rings.get(ring as usize).ok_or(Wrong::NoRing(ring))
    }

    fn ring_mut(&mut self, ring: u32) -> Result<&mut Ring, Wrong> {
        self.rings.get_mut(ring as usize).ok_or(Wrong::NoRing(ring))
    }
}

impl Ring {
    /// Returns the descriptor for the driver's notifications; `None` if the ring must be polled.
    #[must_use]
    pub fn kick(&self) -> Option<BorrowedFd<'_>> {
        self.kick.as_ref().map(AsFd::as_fd)
    }

    /// Returns the descriptor for the device's notifications; `None` if the driver polls.
    #[must_use]
    pub fn call(&self) -> Option<BorrowedFd<'_>> {
        self.call.as_ref().map(AsFd::as_fd)
    }

    /// Returns the requests that put ring `ring` of a new session into the state of this one.
    fn requests(&self, ring: u32) -> Vec<Request<BorrowedFd<'_>>> {
        let of = |number| RingNumber { ring, number };
        let with = |file| RingDescriptor { ring, file };
        let mut requests = Vec::new();
        requests.extend((self.size > 0).then(|| Request::SetRingSize(of(self.size.into()))));
        requests.push(Request::SetRingBase(of(self.base)));
        requests.extend(self.addresses.map(Request::SetRingAddresses));
        requests.extend(self.call().map(|call| Request::SetRingCall(with(Some(call)))));
        requests.push(Request::SetRingEnable(of(self.is_enabled.into())));
        requests.extend(self.is_started.then(|| Request::SetRingKick(with(self.kick()))));
        requests
    }

    /// Stops the ring. Keeps its base and its enabled state.
    fn stop(&mut self) {
        *self = Self { base: self.base, is_enabled: self.is_enabled, ..Self::default() };
    }
}

fn offered(features: u64, offers: u64) -> Result<u64, Wrong> {
    let unknown = features & !offers;
    if unknown == 0 { Ok(features) } else { Err(Wrong::Features(unknown)) }
}

fn ring_size(entries: u32) -> Result<u16, Wrong> {
    let size = u16::try_from(entries).ok().filter(|size| (1..=MOST_ENTRIES).contains(size));
    size.ok_or(Wrong::RingSize(entries))
}

/// Maximum number of entries of a ring, by the virtio specification.
const MOST_ENTRIES: u16 = 32_768;

/// Maximum number of memory regions of a session.
pub(crate) const MOST_REGIONS: usize = 32;

#[cfg(test)]
mod tests;
