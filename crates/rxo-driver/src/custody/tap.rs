//! Host TAP: its state before the run changed it, and its state now.

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

/// The host's TAP, with its state when it was opened.
#[derive(Debug)]
pub(super) struct HostTap {
    before: Link,
    settings: Settings,
    /// The addresses, routes and permanent neighbours that a persistent TAP had before the run.
    holdings: Holdings,
    /// `true` if the TAP existed before the run.
    is_persistent: bool,
    /// Descriptors that keep the TAP and its lock in existence. Without them, the kernel would remove the TAP,
    /// and the addresses on it, when the worker ends.
    kept: Vec<OwnedFd>,
}

/// The state of a TAP during the run.
#[derive(Debug)]
pub(super) struct TapNow {
    pub(super) link: Link,
    pub(super) holdings: Holdings,
    pub(super) settings: Settings,
}

/// Maximum time to wait until the kernel has removed a TAP whose process has ended.
const REMOVAL_TIMEOUT: Duration = Duration::from_secs(2);

impl HostTap {
    /// Reads the state of the TAP with this index, which the user named `device`. `kept` contains the descriptors
    /// that keep the TAP in existence.
    ///
    /// # Errors
    /// If the TAP was deleted.
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

    /// Returns a warning about the TAP, which the user named `device`; `None` if there is none.
    pub(super) fn notice(&self, device: &str) -> Option<Finding> {
        big_packets(device, &self.before)
    }

    /// Returns the state of the TAP before the run.
    pub(super) const fn before(&self) -> &Link {
        &self.before
    }

    /// Reads the current state of the TAP.
    ///
    /// # Errors
    /// If the TAP was deleted.
    pub(super) fn link(&self) -> Result<Link, DeviceError> {
        link(self.before.index, &self.before.name)
    }

    /// Reads the current state of the TAP, except for the holdings that it had before the run. `moved` are
    /// the holdings that it got from the nic.
    ///
    /// # Errors
    /// If the TAP was deleted, or the system refuses to list its addresses and routes.
    pub(super) fn now(&self, moved: &Holdings) -> Result<TapNow, DeviceError> {
        let link = self.link()?;
        let holdings = Holdings::read(&link)?.without(&self.holdings, moved);
        let settings = Settings::read(&link.name);
        Ok(TapNow { link, holdings, settings })
    }

    /// Sets the TAP's carrier to `has_carrier`, and its reported link speed to that of `nic`.
    pub(super) fn show(&self, nic: &str, has_carrier: bool) {
        if let Some(tap) = self.kept.first() {
            // Older kernels cannot set the carrier; the TAP then always has it.
            _ = set_carrier(tap.as_fd(), has_carrier);
        }
        if let Ok(link) = self.link()
            && let (Ok(tap), Ok(nic)) = (Interface::find(&link.name), Interface::find(nic))
        {
            tap.show_speed_of(&nic);
        }
    }

    /// Removes from a persistent TAP what was moved to it and restores its own state; deletes a TAP that the
    /// run created.
    pub(super) fn restore(&self, moved: Option<&Holdings>) -> Result<(), DeviceError> {
        if !self.is_persistent {
            return self.remove();
        }
        let (Some(holdings), Some(link)) = (moved, Link::read(self.before.index)?) else {
            return Ok(());
        };
        holdings.take_from(&link);
        // The TAP's own addresses are removed and added again, because a rename has changed the labels of
        // some addresses.
        self.holdings.take_from(&link);
        link.set_mac(&self.before.mac)?;
        _ = link.set_labels(&self.before);
        link.set_up(self.before.is_up)?;
        self.settings.copy_to(&link.name);
        // IPv6 is switched off and on again: the kernel generates no link-local address for an interface that
        // was down.
        let silenced = self.settings.disable_ipv6(&link.name);
        self.settings.resume_addresses(&link.name);
        let allowed = silenced.and_then(|()| self.settings.allow_ipv6(&link.name));
        allowed.and(self.holdings.add_all_to(&link))
    }

    /// Removes the TAP. If this process holds descriptors of the TAP, it deletes the TAP at once. Otherwise it
    /// first waits for the kernel, which removes a TAP once the last descriptor is closed: io_uring may close the
    /// last descriptor some time after the process has ended.
    fn remove(&self) -> Result<(), DeviceError> {
        let begin = Instant::now();
        while let Some(link) = Link::read(self.before.index)? {
            if !self.kept.is_empty() || begin.elapsed() > REMOVAL_TIMEOUT {
                return link.remove();
            }
            // The query and the removal take the same kernel lock (RTNL), so this thread pauses between two
            // queries.
            thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }
}
