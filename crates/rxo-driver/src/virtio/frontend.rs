//! The device: a connection to a back end, made again when the back end ends.

use std::fmt::Display;
use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use rxo_device::DeviceError;
use rxo_frame::{Instant, Pool};

use super::driver::{Driver, Given};
use super::handshake::{Handshake, Shared};
use super::layout::Places;
use crate::clock;
use crate::fault;
use crate::vhost_user::Channel;
use crate::virtio_net::{Accepts, Events, Notices, Notifier, Token, Watched, mapping};

/// How often a back end that has gone is looked for.
const BETWEEN_ATTEMPTS: Duration = Duration::from_millis(100);

/// What both ends share.
#[derive(Debug)]
pub(super) struct Frontend {
    path: PathBuf,
    mtu: u32,
    wanted: u64,
    events: Rc<Events>,
    link: Option<Link>,
    next_attempt: Instant,
    pub(super) notices: Notices,
    /// Broken rules of back ends before.
    invalid: u64,
}

/// A back end.
#[derive(Debug)]
pub(super) struct Link {
    channel: Channel,
    pub(super) driver: Driver,
    features: u64,
    kicks: [Notifier; 2],
    _watched: [Watched; 3],
}

impl Frontend {
    /// Connects for the first time, wanting all features or fewer.
    pub(super) fn open(
        label: &str,
        path: &Path,
        mtu: u32,
        wanted: u64,
    ) -> Result<Self, DeviceError> {
        let events = Rc::new(Events::new().map_err(|error| fault::opening(label, error))?);
        let link = Link::open(path, mtu, &events, wanted).map_err(|error| cannot(label, error))?;
        Ok(Self {
            path: path.to_owned(),
            mtu,
            wanted,
            events,
            link: Some(link),
            next_attempt: Instant::ZERO,
            notices: Notices::default(),
            invalid: 0,
        })
    }

    /// What to wait for.
    pub(super) fn events(&self) -> Rc<Events> {
        Rc::clone(&self.events)
    }

    /// The back end, if there is one.
    pub(super) fn link(&mut self) -> Option<&mut Link> {
        self.link.as_mut()
    }

    /// When a back end is looked for; `None` if there is one.
    pub(super) fn next_attempt(&self) -> Option<Instant> {
        self.link.is_none().then_some(self.next_attempt)
    }

    /// How often back ends broke a rule.
    pub(super) fn invalid(&self) -> u64 {
        self.invalid + self.link.as_ref().map_or(0, |link| link.driver.invalid())
    }

    /// Looks at the socket, forgets notifications, and looks for a back end if there is none and it is
    /// time. Returns whether the rings are new.
    pub(super) fn attend(&mut self) -> bool {
        let (_, has_message) = self.events.take();
        if has_message {
            self.listen();
        }
        if self.link.as_ref().is_some_and(|link| link.driver.is_broken()) {
            self.close("the back end broke a ring");
        }
        self.link.is_none() && self.connect_when_due()
    }

    /// A back end says nothing after the handshake, so only its end can be heard.
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

    fn connect_when_due(&mut self) -> bool {
        let now = clock::now();
        if now < self.next_attempt {
            return false;
        }
        self.next_attempt = now + BETWEEN_ATTEMPTS;
        // Why it fails was said when the connection ended: there is nobody yet.
        self.link = Link::open(&self.path, self.mtu, &self.events, self.wanted).ok();
        if self.link.is_some() {
            self.notices.add("the back end is back");
        }
        self.link.is_some()
    }
}

impl Link {
    fn open(path: &Path, mtu: u32, events: &Rc<Events>, wanted: u64) -> io::Result<Self> {
        let (handshake, features) = Handshake::begin(path, wanted)?;
        let places = Places::new(features);
        let memory = mapping::memory_file(places.bytes)?;
        let driver = Driver::new(memory.as_fd(), places)?;
        let (kicks, calls) = (notifiers()?, notifiers()?);
        let [receive_call, send_call] = &calls;
        let watch = |call: &Notifier| events.watch(call.as_fd(), Token::Notification);
        let (receive_watched, send_watched) = (watch(receive_call)?, watch(send_call)?);
        let shared = Shared {
            memory: memory.as_fd(),
            kicks: [kicks[0].as_fd(), kicks[1].as_fd()],
            calls: [receive_call.as_fd(), send_call.as_fd()],
        };
        let channel = handshake.finish(&places, shared, (features, mtu))?;
        let watched = events.watch(channel.as_fd(), Token::Channel)?;
        // Buffers were posted before anybody listened for notifications.
        kicks[0].notify();
        Ok(Self {
            channel,
            driver,
            features,
            kicks,
            _watched: [watched, receive_watched, send_watched],
        })
    }

    /// What the device accepts.
    pub(super) fn accepts(&self) -> Accepts {
        Accepts::device(self.features)
    }

    /// What may be in frames of the device.
    pub(super) fn gives(&self) -> Accepts {
        Accepts::driver(self.features)
    }

    /// The next frame.
    pub(super) fn take(&mut self, pool: &Pool) -> Given {
        self.driver.take(pool)
    }

    /// Shows the back end the buffers that are free again.
    pub(super) fn finish_taking(&mut self) {
        if self.driver.finish_taking() {
            self.kicks[0].notify();
        }
    }

    /// Shows the back end the packets that were put. Returns whether it was notified.
    pub(super) fn finish_putting(&mut self) -> bool {
        let wants = self.driver.finish_putting();
        if wants {
            self.kicks[1].notify();
        }
        wants
    }
}

fn notifiers() -> io::Result<[Notifier; 2]> {
    Ok([Notifier::new()?, Notifier::new()?])
}

/// Why the first connection cannot be made, with the remedy.
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
