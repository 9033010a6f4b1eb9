//! The host's TAP: as it was before the run changed it, and as it is now.

use std::os::fd::{AsFd, OwnedFd};
use std::thread;
use std::time::{Duration, Instant};

use rxo_device::DeviceError;

use super::checks::big_packets;
use super::link;
use crate::Interface;
use crate::finding::Finding;
use crate::handover::{Holdings, Link, Settings};
use crate::tap::set_carrier;

/// A TAP, with its state when it was opened.
#[derive(Debug)]
pub(super) struct HostTap {
    before: Link,
    settings: Settings,
    /// The holdings of a persistent TAP before the run.
    holdings: Holdings,
    /// Whether it existed before the run.
    is_persistent: bool,
    /// Keep the TAP and its lock: without them it would be gone with the worker, and what it had by then with it.
    kept: Vec<OwnedFd>,
}

/// A TAP during the run.
#[derive(Debug)]
pub(super) struct TapNow {
    pub(super) link: Link,
    pub(super) holdings: Holdings,
    pub(super) settings: Settings,
}

/// How long the kernel may take to remove a TAP whose process has ended.
const PATIENCE: Duration = Duration::from_secs(2);

impl HostTap {
    /// Reads the state of the TAP with this index, which the user named `device`.
    ///
    /// # Errors
    /// If it was deleted.
    pub(super) fn read(
        (index, kept): (u32, Vec<OwnedFd>),
        device: &str,
        is_persistent: bool,
    ) -> Result<Self, DeviceError> {
        let before = link(index, device)?;
        let settings = Settings::read(&before.name);
        let holdings = Holdings::read(&before)?;
        Ok(Self { before, settings, holdings, is_persistent, kept })
    }

    /// A notice for the user about the interface, which the plan names `device`.
    pub(super) fn notice(&self, device: &str) -> Option<Finding> {
        big_packets(device, &self.before)
    }

    /// The interface before the run.
    pub(super) const fn before(&self) -> &Link {
        &self.before
    }

    /// The interface now.
    ///
    /// # Errors
    /// If it was deleted.
    pub(super) fn link(&self) -> Result<Link, DeviceError> {
        link(self.before.index, &self.before.name)
    }

    /// What the TAP has now, without what it had before the run. `moved` is what it was given.
    ///
    /// # Errors
    /// If it was deleted, or the system refuses to list it.
    pub(super) fn now(&self, moved: &Holdings) -> Result<TapNow, DeviceError> {
        let link = self.link()?;
        let holdings = Holdings::read(&link)?.without(&self.holdings, moved);
        let settings = Settings::read(&link.name);
        Ok(TapNow { link, holdings, settings })
    }

    /// Shows the carrier and the speed of `nic`.
    pub(super) fn show(&self, nic: &str, has_carrier: bool) {
        if let Some(tap) = self.kept.first() {
            // Older kernels cannot; then the TAP always has carrier.
            _ = set_carrier(tap.as_fd(), has_carrier);
        }
        if let Ok(link) = self.link()
            && let (Ok(tap), Ok(nic)) = (Interface::find(&link.name), Interface::find(nic))
        {
            tap.show_speed_of(&nic);
        }
    }

    /// Removes from a persistent TAP what was moved to it; makes sure that our own TAP is deleted.
    pub(super) fn restore(&self, moved: Option<&Holdings>) -> Result<(), DeviceError> {
        if !self.is_persistent {
            return self.remove();
        }
        let (Some(holdings), Some(link)) = (moved, Link::read(self.before.index)?) else {
            return Ok(());
        };
        holdings.take_from(&link);
        // Its own too, because a rename has changed the labels of some.
        self.holdings.take_from(&link);
        link.set_mac(&self.before.mac)?;
        _ = link.set_labels(&self.before);
        link.set_up(self.before.is_up)?;
        self.settings.copy_to(&link.name);
        // Off and on again in between: the kernel generates no address for an interface that is down.
        let silenced = self.settings.silence_ipv6(&link.name);
        self.settings.resume_addresses(&link.name);
        let allowed = silenced.and_then(|()| self.settings.allow_ipv6(&link.name));
        allowed.and(self.holdings.give_back(&link))
    }

    /// The kernel removes it after its process has ended, but io_uring closes its descriptors later. While we keep it
    /// ourselves, there is nothing to wait for.
    fn remove(&self) -> Result<(), DeviceError> {
        let begin = Instant::now();
        while let Some(link) = Link::read(self.before.index)? {
            if !self.kept.is_empty() || begin.elapsed() > PATIENCE {
                return link.remove();
            }
            // The query and the removal take the same lock of the kernel, so pause between two looks.
            thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }
}
