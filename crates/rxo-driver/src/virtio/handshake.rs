//! Handshake: negotiates features with a back end, and shares memory and rings with it, without blocking.
//!
//! Requests are sent in order; after a request with a reply, the next is sent once the reply has arrived. So a
//! worker can do other work while a back end starts, and a back end that never replies does not delay the worker.

use std::collections::VecDeque;
use std::fmt::Display;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

use rxo_frame::Instant;
use rxo_virtqueue::{Layout, QueueConfig};

use super::driver::Driver;
use super::layout::{Places, START};
use crate::clock;
use crate::vhost_user::features::{
    ACK_TEMPLATES, DEVICE_OFFERS, INDIRECT_DESC, LOG_ALL, MQ, PROTOCOL_FEATURES, PROTOCOL_MQ,
    PROTOCOL_MTU, PROTOCOL_REPLY_ACK, PROTOCOL_STATUS, RSC_EXT, VERSION_1,
};
use crate::vhost_user::foreign::Discards;
use crate::vhost_user::{
    Channel, Region, Reply, Request, RingAddresses, RingDescriptor, RingNumber, SharedRegion,
    connect,
};
use crate::virtio_net::{Notifier, mapping};

/// The virtio features that the driver uses if the back end offers them. `RSC_EXT` (segment counts) is not used:
/// the driver can compute the number of segments from the segment size, and with `RSC_EXT` the device would have
/// to complete the checksum of each aggregate.
pub(super) const WANTED: u64 =
    DEVICE_OFFERS & !(MQ | RSC_EXT | LOG_ALL | INDIRECT_DESC) | ACK_TEMPLATES;

/// The settings that a driver requests from a back end.
#[derive(Clone, Copy, Debug)]
pub(super) struct DriverSettings {
    /// The virtio features to use if the back end offers them.
    pub(super) features: u64,
    /// The number of queue pairs to use, if the back end has as many. More than one pair requires [`MQ`]
    /// among the features.
    pub(super) pairs: u16,
    /// The MTU of the device, in bytes.
    pub(super) mtu: u32,
}

/// The rings of a driver, with their memory and notifications, which are shared with the back end.
#[derive(Debug)]
pub(super) struct Rings {
    pub(super) driver: Driver,
    pub(super) features: u64,
    /// The driver's notifications, one for each ring.
    pub(super) kicks: Vec<Notifier>,
    /// The device's notifications, one for each ring.
    pub(super) calls: Vec<Notifier>,
    memory: OwnedFd,
    places: Places,
}

/// A connection to a back end whose negotiation is not complete.
#[derive(Debug)]
pub(super) struct Handshake {
    channel: Channel,
    settings: DriverSettings,
    features: u64,
    protocol: u64,
    /// The requests that remain to be sent, in order.
    requests: VecDeque<Request>,
    /// The number of the request whose reply is awaited; `None` if no reply is awaited.
    awaited: Option<u32>,
    rings: Option<Rings>,
    until: Instant,
}

/// Maximum time in which a back end must reply to all requests. A back end runs on this machine, but may
/// still be starting.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(5);

/// The bits of the virtio status that are set once the features are negotiated (virtio 1.2, section 2.1).
const STATUS_FEATURES_OK: u64 = 1 | 2 | 8;
const STATUS_DRIVER_OK: u64 = STATUS_FEATURES_OK | 4;

impl Handshake {
    /// Connects to the back end at `path`, and starts the negotiation.
    ///
    /// # Errors
    /// If no process listens there, or its queue of connections is full.
    pub(super) fn begin(
        path: &Path,
        settings: DriverSettings,
        discards: &Discards,
    ) -> io::Result<Self> {
        Ok(Self {
            channel: Channel::discarding_to(connect(path)?, discards.clone())?,
            settings,
            features: 0,
            protocol: 0,
            requests: [Request::SetOwner, Request::GetFeatures].into(),
            awaited: None,
            rings: None,
            until: clock::now() + HANDSHAKE_TIMEOUT,
        })
    }

    /// Returns the instant after which the negotiation has failed.
    pub(super) const fn until(&self) -> Instant {
        self.until
    }

    /// Continues the negotiation as far as received replies allow. Returns `true` once the negotiation is
    /// complete.
    ///
    /// # Errors
    /// If a reply is invalid or late, or the back end offers too little.
    pub(super) fn advance(&mut self) -> io::Result<bool> {
        loop {
            if let Some(request) = self.awaited {
                let Some(message) = self.channel.receive()? else {
                    let is_late = clock::now() >= self.until;
                    return if is_late { Err(io::ErrorKind::TimedOut.into()) } else { Ok(false) };
                };
                let reply = Reply::read(request, message.header, &message.payload);
                self.awaited = None;
                self.take_reply(request, reply.map_err(invalid)?.value())?;
            }
            let Some(request) = self.requests.pop_front() else { return Ok(true) };
            self.send(&request)?;
        }
    }

    /// Returns the channel and the rings; `None` before the negotiation is complete. From now on, the channel
    /// reports only that the back end has ended.
    pub(super) fn finish(self) -> Option<(Channel, Rings)> {
        self.rings.map(|rings| (self.channel, rings))
    }

    /// Sends a request. With `REPLY_ACK` the back end reports whether it has accepted the request.
    fn send(&mut self, request: &Request) -> io::Result<()> {
        let is_question = request.has_reply();
        let needs_reply = !is_question && self.protocol & PROTOCOL_REPLY_ACK != 0;
        self.channel.request(request, needs_reply)?;
        self.awaited = (is_question || needs_reply).then(|| request.number());
        if let Request::SetProtocolFeatures(protocol) = request {
            self.protocol = *protocol;
        }
        Ok(())
    }

    fn take_reply(&mut self, request: u32, value: u64) -> io::Result<()> {
        if request == Request::<OwnedFd>::GetFeatures.number() {
            self.features = value & self.settings.features;
            if self.features & VERSION_1 == 0 {
                return Err(invalid("the back end is older than virtio 1.0"));
            }
            if self.features & PROTOCOL_FEATURES == 0 {
                return self.agree(1);
            }
            self.requests.push_back(Request::GetProtocolFeatures);
        } else if request == Request::<OwnedFd>::GetProtocolFeatures.number() {
            let known = PROTOCOL_REPLY_ACK | PROTOCOL_STATUS | PROTOCOL_MTU | PROTOCOL_MQ;
            self.requests.push_back(Request::SetProtocolFeatures(value & known));
            if self.features & MQ == 0 || value & PROTOCOL_MQ == 0 {
                return self.agree(1);
            }
            self.requests.push_back(Request::GetQueueNumber);
        } else if request == Request::<OwnedFd>::GetQueueNumber.number() {
            let most = u16::try_from(value).unwrap_or(u16::MAX).max(1);
            return self.agree(self.settings.pairs.min(most));
        } else if value != 0 {
            return Err(invalid(format!("the back end refused request {request}")));
        }
        Ok(())
    }

    /// Creates the rings and queues the requests that share them. Called once the features and the number of
    /// queue pairs are known.
    fn agree(&mut self, pairs: u16) -> io::Result<()> {
        let rings = Rings::new(self.features, pairs)?;
        let offered = self.requests.iter().find_map(|request| match request {
            Request::SetProtocolFeatures(protocol) => Some(*protocol),
            _ => None,
        });
        let protocol = offered.unwrap_or(self.protocol);
        let has_status = protocol & PROTOCOL_STATUS != 0;
        self.requests.push_back(Request::SetFeatures(self.features));
        self.requests.extend(has_status.then_some(Request::SetStatus(STATUS_FEATURES_OK)));
        self.requests.push_back(Request::SetMemTable(vec![rings.region()?]));
        let mtu = Request::SetMtu(self.settings.mtu.into());
        self.requests.extend((protocol & PROTOCOL_MTU != 0).then_some(mtu));
        for n in 0..rings.places.rings.len() {
            self.requests.extend(rings.requests(n)?);
        }
        if self.features & PROTOCOL_FEATURES != 0 {
            let enable = |ring| Request::SetRingEnable(RingNumber { ring, number: 1 });
            self.requests.extend((0..2 * u32::from(pairs)).map(enable));
        }
        self.requests.extend(has_status.then_some(Request::SetStatus(STATUS_DRIVER_OK)));
        self.rings = Some(rings);
        Ok(())
    }
}

impl AsFd for Handshake {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.channel.as_fd()
    }
}

impl Rings {
    fn new(features: u64, pairs: u16) -> io::Result<Self> {
        let places = Places::new(features, pairs);
        let memory = mapping::memory_file(places.bytes)?;
        let driver = Driver::new(memory.as_fd(), places.clone())?;
        let notifiers = || (0..places.rings.len()).map(|_| Notifier::new()).collect();
        let (kicks, calls): (io::Result<_>, io::Result<_>) = (notifiers(), notifiers());
        Ok(Self { driver, features, kicks: kicks?, calls: calls?, memory, places })
    }

    /// Returns the whole shared memory as one region.
    fn region(&self) -> io::Result<SharedRegion<OwnedFd>> {
        let bytes = self.places.bytes;
        let region = Region { guest_address: START, bytes, user_address: START, file_offset: 0 };
        Ok(SharedRegion { region, file: self.memory.try_clone()? })
    }

    /// Returns the requests that start the ring with the index `n`.
    fn requests(&self, n: usize) -> io::Result<[Request; 5]> {
        let QueueConfig { layout, size, descriptors, driver, device, .. } = self.places.rings[n];
        let ring = n as u32;
        let number = |number| RingNumber { ring, number };
        let event = |notifier: &Notifier| {
            let file = notifier.as_fd().try_clone_to_owned()?;
            io::Result::Ok(RingDescriptor { ring, file: Some(file) })
        };
        let base = match layout {
            Layout::Split => 0,
            Layout::Packed => PACKED_START,
        };
        Ok([
            Request::SetRingSize(number(size.into())),
            Request::SetRingBase(number(base)),
            Request::SetRingAddresses(RingAddresses {
                ring,
                flags: 0,
                descriptors,
                device,
                driver,
                log: 0,
            }),
            Request::SetRingCall(event(&self.calls[n])?),
            Request::SetRingKick(event(&self.kicks[n])?),
        ])
    }
}

/// The base of a packed ring at its start: both positions at 0 in the first lap (virtio 1.2, section 2.8.1).
const PACKED_START: u32 = 0x8000_8000;

fn invalid(why: impl Display) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why.to_string())
}
