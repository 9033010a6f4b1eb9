//! Agrees with a back end on features, and hands it memory and rings.

use std::fmt::Display;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use rxo_virtqueue::{Layout, QueueConfig};

use super::layout::{Places, START};
use crate::vhost_user::features::{
    CSUM, EVENT_IDX, GUEST_CSUM, GUEST_ECN, GUEST_TSO4, GUEST_TSO6, HOST_ECN, HOST_TSO4, HOST_TSO6,
    MRG_RXBUF, PROTOCOL_FEATURES, PROTOCOL_MTU, PROTOCOL_REPLY_ACK, PROTOCOL_STATUS, RING_PACKED,
    VERSION_1,
};
use crate::vhost_user::{
    Channel, Region, Reply, Request, RingAddresses, RingDescriptor, RingNumber, SharedRegion,
};
use crate::wait::wait_readable;

/// The features that the driver uses if the back end offers them.
pub(super) const WANTED: u64 = CSUM
    | GUEST_CSUM
    | GUEST_TSO4
    | GUEST_TSO6
    | GUEST_ECN
    | HOST_TSO4
    | HOST_TSO6
    | HOST_ECN
    | MRG_RXBUF
    | EVENT_IDX
    | PROTOCOL_FEATURES
    | VERSION_1
    | RING_PACKED;

/// What is shared with the back end, beside the features.
#[derive(Clone, Copy)]
pub(super) struct Shared<'f> {
    /// The file of the memory.
    pub(super) memory: BorrowedFd<'f>,
    /// The driver's notifications, for each ring.
    pub(super) kicks: [BorrowedFd<'f>; 2],
    /// The device's notifications, for each ring.
    pub(super) calls: [BorrowedFd<'f>; 2],
}

/// A connection on which requests wait for their replies.
#[derive(Debug)]
pub(super) struct Handshake {
    channel: Channel,
    protocol: u64,
    until: Instant,
}

/// How long a back end may take to answer all requests. It is on this machine, but may be starting.
const PATIENCE: Duration = Duration::from_secs(5);

/// Bits of the virtio status (virtio 1.2, section 2.1).
const STATUS_FEATURES_OK: u64 = 1 | 2 | 8;
const STATUS_DRIVER_OK: u64 = STATUS_FEATURES_OK | 4;

impl Handshake {
    /// Connects, and agrees on features. Returns them.
    ///
    /// # Errors
    /// If nobody listens, or the back end answers wrongly, too late, or offers too little.
    pub(super) fn begin(path: &Path, wanted: u64) -> io::Result<(Self, u64)> {
        let channel = Channel::new(UnixStream::connect(path)?)?;
        let mut this = Self { channel, protocol: 0, until: Instant::now() + PATIENCE };
        this.tell(&Request::SetOwner)?;
        let offered = this.ask(&Request::GetFeatures)?.value();
        let features = offered & wanted;
        if features & VERSION_1 == 0 {
            return Err(invalid("the back end is older than virtio 1.0"));
        }
        if features & PROTOCOL_FEATURES != 0 {
            let known = PROTOCOL_REPLY_ACK | PROTOCOL_STATUS | PROTOCOL_MTU;
            let protocol = this.ask(&Request::GetProtocolFeatures)?.value() & known;
            this.tell(&Request::SetProtocolFeatures(protocol))?;
            this.protocol = protocol;
        }
        this.tell(&Request::SetFeatures(features))?;
        if this.protocol & PROTOCOL_STATUS != 0 {
            this.tell(&Request::SetStatus(STATUS_FEATURES_OK))?;
        }
        Ok((this, features))
    }

    /// Hands over memory and rings, and starts them. Returns the channel, on which nothing more comes
    /// until the back end ends.
    ///
    /// # Errors
    /// As [`Handshake::begin`].
    pub(super) fn finish(
        mut self,
        places: &Places,
        shared: Shared<'_>,
        (features, mtu): (u64, u32),
    ) -> io::Result<Channel> {
        let region = Region {
            guest_address: START,
            bytes: places.bytes,
            user_address: START,
            file_offset: 0,
        };
        self.tell(&Request::SetMemTable(vec![SharedRegion { region, file: shared.memory }]))?;
        if self.protocol & PROTOCOL_MTU != 0 {
            self.tell(&Request::SetMtu(mtu.into()))?;
        }
        for (n, config) in places.rings.iter().enumerate() {
            self.tell_ring(n, config, shared)?;
        }
        if features & PROTOCOL_FEATURES != 0 {
            for ring in 0..2 {
                self.tell(&Request::SetRingEnable(RingNumber { ring, number: 1 }))?;
            }
        }
        if self.protocol & PROTOCOL_STATUS != 0 {
            self.tell(&Request::SetStatus(STATUS_DRIVER_OK))?;
        }
        Ok(self.channel)
    }

    fn tell_ring(&mut self, n: usize, config: &QueueConfig, shared: Shared<'_>) -> io::Result<()> {
        let ring = n as u32;
        let number = |number| RingNumber { ring, number };
        let base = match config.layout {
            Layout::Split => 0,
            Layout::Packed => PACKED_START,
        };
        self.tell(&Request::SetRingSize(number(config.size.into())))?;
        self.tell(&Request::SetRingBase(number(base)))?;
        self.tell(&Request::SetRingAddresses(RingAddresses {
            ring,
            flags: 0,
            descriptors: config.descriptors,
            device: config.device,
            driver: config.driver,
            log: 0,
        }))?;
        self.tell(&Request::SetRingCall(RingDescriptor { ring, file: Some(shared.calls[n]) }))?;
        self.tell(&Request::SetRingKick(RingDescriptor { ring, file: Some(shared.kicks[n]) }))
    }

    /// Sends a request without a reply. With `REPLY_ACK` waits until the back end has accepted it.
    fn tell(&mut self, request: &Request<BorrowedFd<'_>>) -> io::Result<()> {
        let needs_reply = self.protocol & PROTOCOL_REPLY_ACK != 0;
        self.channel.request(request, needs_reply)?;
        if needs_reply && self.reply(request.number())?.value() != 0 {
            return Err(invalid(format!("the back end refused request {}", request.number())));
        }
        Ok(())
    }

    /// Sends a request and waits for its reply.
    fn ask(&mut self, request: &Request<BorrowedFd<'_>>) -> io::Result<Reply> {
        self.channel.request(request, false)?;
        self.reply(request.number())
    }

    fn reply(&mut self, request: u32) -> io::Result<Reply> {
        loop {
            if let Some(message) = self.channel.receive()? {
                return Reply::read(request, message.header, &message.payload).map_err(invalid);
            }
            let left = self.until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(io::ErrorKind::TimedOut.into());
            }
            wait_readable(&[self.channel.as_fd()], Some(left))?;
        }
    }
}

/// Both positions at 0 in the first lap (virtio 1.2, section 2.8.1).
const PACKED_START: u32 = 0x8000_8000;

fn invalid(why: impl Display) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why.to_string())
}
