//! The host's TAP, as it was before the run changed it.

use std::thread;
use std::time::{Duration, Instant};

use rxo_device::DeviceError;

use super::held::big_packets;
use super::link;
use crate::handover::{Holdings, Link, Settings};

/// The state of a TAP when it was opened.
#[derive(Debug)]
pub(super) struct TapBefore {
    link: Link,
    settings: Settings,
    /// The holdings of a persistent TAP before the run.
    holdings: Holdings,
    /// Whether it existed before the run.
    is_persistent: bool,
}

/// How long the kernel may take to remove a TAP whose process has ended.
const PATIENCE: Duration = Duration::from_secs(2);

impl TapBefore {
    /// Reads the state of the TAP with this index, which the user named `device`.
    ///
    /// # Errors
    /// If it was deleted.
    pub(super) fn read(index: u32, device: &str, is_persistent: bool) -> Result<Self, DeviceError> {
        let link = link(index, device)?;
        let settings = Settings::read(&link.name);
        let holdings = Holdings::read(&link)?;
        Ok(Self { link, settings, holdings, is_persistent })
    }

    /// A notice for the user about the interface, which the plan names `device`.
    pub(super) fn notice(&self, device: &str) -> Option<String> {
        big_packets(device, &self.link)
    }

    pub(super) const fn link(&self) -> &Link {
        &self.link
    }

    /// Removes from a persistent TAP what was moved to it; makes sure that our own TAP is deleted.
    pub(super) fn restore(&self, moved: Option<&Holdings>) -> Result<(), DeviceError> {
        if !self.is_persistent {
            return self.remove();
        }
        let (Some(holdings), Some(link)) = (moved, Link::read(self.link.index)?) else {
            return Ok(());
        };
        holdings.take_from(&link);
        link.set_mac(&self.link.mac)?;
        link.set_up(self.link.is_up)?;
        self.settings.copy_to(&link.name);
        // Off and on again in between: the kernel generates no address for an interface that is down.
        let silenced = self.settings.silence_ipv6(&link.name);
        self.settings.resume_addresses(&link.name);
        let allowed = silenced.and_then(|()| self.settings.allow_ipv6(&link.name));
        allowed.and(self.holdings.give_back(&link))
    }

    /// The kernel removes it after its process has ended, but io_uring closes its descriptors later.
    fn remove(&self) -> Result<(), DeviceError> {
        let begin = Instant::now();
        while let Some(link) = Link::read(self.link.index)? {
            if begin.elapsed() > PATIENCE {
                return link.remove();
            }
            // The query and the removal take the same lock of the kernel, so pause between two looks.
            thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }
}
