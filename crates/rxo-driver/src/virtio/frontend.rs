//! Front end: the device's connection to a back end. If the back end ends, the front end connects again.

use std::fmt::Display;
use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rxo_device::DeviceError;
use rxo_frame::{Instant, Load};
use rxo_vnet::VIRTIO_HEADER_BYTES;

use super::driver::Driver;
use super::handshake::{DriverSettings, Handshake, Rings};
use crate::clock;
use crate::fault;
use crate::vhost_user::Channel;
use crate::vhost_user::foreign::Discards;
use crate::virtio_net::{
    Accepts, Attended, Buffers, Events, Notices, Notifier, PacketRing, PendingEvents, RingRead,
    Side, Token, Watched, header_bytes,
};
use crate::wait::wait_readable;

/// The interval between attempts to connect to a back end that has ended.
const BETWEEN_ATTEMPTS: Duration = Duration::from_millis(100);

/// The state that the source and the sink share.
#[derive(Debug)]
pub(super) struct Frontend {
    path: PathBuf,
    settings: DriverSettings,
    events: Arc<Events>,
    link: Option<Link>,
    /// A connection whose negotiation is not complete, and the registration for its events; `None` if there is
    /// none.
    opening: Option<(Handshake, Watched)>,
    next_attempt: Instant,
    notices: Notices,
    /// Descriptors of back ends that were refused and are being closed.
    discards: Discards,
    /// The number of times that previous back ends have broken a rule of the rings.
    invalid: u64,
}

/// A connection to a back end whose negotiation is complete, with its rings.
#[derive(Debug)]
pub(super) struct Link {
    channel: Channel,
    driver: Driver,
    features: u64,
    kicks: Vec<Notifier>,
    _watched: Vec<Watched>,
}

impl Side for Frontend {
    type Link = Link;

    fn events(&self) -> Arc<Events> {
        Arc::clone(&self.events)
    }

    fn attend(&mut self) -> Attended {
        let PendingEvents { on_channel, is_notified, .. } = self.events.take();
        if on_channel && self.link.is_some() {
            self.listen();
        }
        if self.link.as_ref().is_some_and(|link| link.driver.is_broken()) {
            self.close("the back end broke a ring");
        }
        let has_changed = self.link.is_none() && self.connect_when_due();
        Attended { has_changed, is_notified }
    }

    fn link(&mut self) -> Option<&mut Link> {
        self.link.as_mut()
    }

    fn next_check(&self) -> Option<Instant> {
        let opening = self.opening.as_ref().map(|(handshake, _)| handshake.until());
        self.link.is_none().then(|| opening.unwrap_or(self.next_attempt))
    }

    fn invalid(&self) -> u64 {
        self.invalid + self.link.as_ref().map_or(0, |link| link.driver.invalid())
    }

    fn notices(&mut self) -> &mut Notices {
        &mut self.notices
    }
}

impl Frontend {
    /// Connects to the back end for the first time, and waits until the negotiation is complete.
    pub(super) fn open(
        label: &str,
        path: &Path,
        settings: DriverSettings,
    ) -> Result<Self, DeviceError> {
        let events = Arc::new(Events::new().map_err(|error| fault::opening(label, error))?);
        let discards = Discards::default();
        let link =
            Link::open(path, settings, &discards, &events).map_err(|error| cannot(label, error))?;
        Ok(Self {
            path: path.to_owned(),
            settings,
            events,
            link: Some(link),
            opening: None,
            next_attempt: Instant::ZERO,
            notices: Notices::default(),
            discards,
            invalid: 0,
        })
    }

    /// Checks whether the back end has ended. A back end sends no messages after the handshake, so a message
    /// is an error too.
    fn listen(&mut self) {
        let Some(link) = &mut self.link else { return };
        match link.channel.receive() {
            Ok(None) => {}
            Ok(Some(_)) => self.close("the back end sent a message that nobody asked for"),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                self.close("the back end has gone");
            }
            Err(error) => self.close(error),
        }
    }

    fn close(&mut self, why: impl Display) {
        self.invalid = self.invalid();
        self.link = None;
        self.next_attempt = clock::now();
        self.notices.add(format!("{why}; waiting for it to come back"));
    }

    /// Continues to connect to a back end, without blocking. Returns `true` if it is connected now.
    fn connect_when_due(&mut self) -> bool {
        let now = clock::now();
        if self.opening.is_none() && now >= self.next_attempt {
            self.next_attempt = now + BETWEEN_ATTEMPTS;
            if !self.discards.are_too_many() {
                // The user was notified when the connection ended; a failure here means that no back end
                // listens yet.
                self.opening = self.begin().ok();
            }
        }
        match self.opening.as_mut().map(|(handshake, _)| handshake.advance()) {
            None | Some(Ok(false)) => {}
            Some(Err(_)) => {
                self.opening = None;
                self.next_attempt = now + BETWEEN_ATTEMPTS;
            }
            Some(Ok(true)) => {
                let agreed = self.opening.take().and_then(|(handshake, _)| handshake.finish());
                self.link = agreed.and_then(|agreed| Link::new(agreed, &self.events).ok());
            }
        }
        if self.link.is_some() {
            self.notices.add("the back end is back");
        }
        self.link.is_some()
    }

    fn begin(&self) -> io::Result<(Handshake, Watched)> {
        let handshake = Handshake::begin(&self.path, self.settings, &self.discards)?;
        let watched = self.events.watch(handshake.as_fd(), Token::Channel)?;
        Ok((handshake, watched))
    }
}

impl Link {
    /// Connects to the back end, and waits until the negotiation is complete.
    fn open(
        path: &Path,
        settings: DriverSettings,
        discards: &Discards,
        events: &Arc<Events>,
    ) -> io::Result<Self> {
        let mut handshake = Handshake::begin(path, settings, discards)?;
        while !handshake.advance()? {
            let left = handshake.until().since(clock::now());
            wait_readable(&[handshake.as_fd()], Some(left))?;
        }
        let agreed = handshake.finish().ok_or(io::ErrorKind::UnexpectedEof)?;
        Self::new(agreed, events)
    }

    fn new((channel, rings): (Channel, Rings), events: &Arc<Events>) -> io::Result<Self> {
        let Rings { driver, features, kicks, calls, .. } = rings;
        let watch = |call: &Notifier| events.watch(call.as_fd(), Token::Notification);
        let mut watched = calls.iter().map(watch).collect::<io::Result<Vec<_>>>()?;
        watched.push(events.watch(channel.as_fd(), Token::Channel)?);
        // The first buffers were posted before the back end watched for notifications.
        kicks.iter().step_by(2).for_each(Notifier::notify);
        Ok(Self { channel, driver, features, kicks, _watched: watched })
    }
}

impl crate::virtio_net::Link for Link {
    fn accepts(&self) -> Accepts {
        Accepts::device(self.features)
    }

    fn gives(&self) -> Accepts {
        Accepts::driver(self.features)
    }

    fn header_bytes(&self) -> usize {
        header_bytes(self.features)
    }

    fn take(&mut self, buffers: &mut Buffers) -> RingRead {
        self.driver.take(buffers)
    }

    fn finish_taking(&mut self) {
        let Self { driver, kicks, .. } = self;
        driver.finish_taking(|pair| kicks[2 * pair].notify());
    }

    fn ask_for_notifications(&mut self) -> bool {
        self.driver.ask_for_notifications()
    }

    fn finish_putting(&mut self) -> u64 {
        let wants = self.driver.finish_putting();
        if wants {
            self.kicks[1].notify();
        }
        wants.into()
    }

    fn load(&mut self) -> Option<Load> {
        Some(Load { unread: self.driver.unread() })
    }
}

impl PacketRing for Link {
    fn put<'p>(
        &mut self,
        header: [u8; VIRTIO_HEADER_BYTES],
        bytes: usize,
        pieces: impl Iterator<Item = &'p [u8]>,
    ) -> io::Result<()> {
        self.driver.put(header, bytes, pieces)
    }
}

/// Returns the error for a first connection that failed, with the reason and the remedy.
fn cannot(label: &str, error: io::Error) -> DeviceError {
    let remedy = match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => {
            "nobody listens there; start the other side first"
        }
        io::ErrorKind::PermissionDenied => {
            "this user may not connect; change who may, or run as root"
        }
        io::ErrorKind::TimedOut | io::ErrorKind::UnexpectedEof => {
            "the other side does not answer as a vhost-user back end; it may have a front end already"
        }
        _ => "the other side is no back end of vhost-user that rxo can use",
    };
    fault::system(format!("cannot open {label}; {remedy}"), error)
}
