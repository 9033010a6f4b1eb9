//! Options: the features and the memory that a device offers to its guest.

use std::time::Duration;

use super::places::PayloadPlaces;
use crate::vhost_user::features::{
    ACK_TEMPLATES, CSUM, DEVICE_OFFERS, GUEST_CSUM, GUEST_ECN, GUEST_TSO4, GUEST_TSO6, GUEST_USO4,
    GUEST_USO6, HOST_ECN, HOST_TSO4, HOST_TSO6, HOST_USO, RSC_EXT,
};
use crate::virtio_net::mapping::Holes;
use crate::virtio_net::{CopyPath, FrameLayout};

/// Options of `vhost:PATH`. The default offers every feature that the device has, and notifies the guest at
/// once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GuestOptions {
    /// `true` if the guest may leave checksums to the device, and accepts packets that the device declares
    /// valid. Required for GSO frames.
    pub checksums: bool,
    /// `true` if the guest may send GSO frames.
    pub segmentation: bool,
    /// `true` if the guest receives GSO frames, provided that it accepts them, and may send UDP GSO frames. A
    /// network card offers neither of these features.
    pub aggregates: bool,
    /// `true` if the guest may send ACK templates, which the owner of the source expands. Requires
    /// `checksums`.
    pub ack_templates: bool,
    /// Maximum time from a packet for the guest to the notification about the packet, like `rx-usecs` of a
    /// network card. A guest without free buffers is notified at once. Zero means no delay.
    pub moderation: Duration,
    /// The method by which packets are copied into the guest's memory.
    pub path: CopyPath,
    /// The division of packets into pieces before they are copied into the guest's memory.
    pub layout: FrameLayout,
    /// Limits of the memory that the guest may share.
    pub memory: GuestMemory,
    /// The histogram that counts where payload lies in the guest's memory; `None` to count nothing. For
    /// experiments only, because the histogram requires that each packet is parsed.
    pub places: Option<&'static PayloadPlaces>,
}

/// Limits of the memory that a guest may share. The default accepts any memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GuestMemory {
    /// Maximum size of all regions together, in bytes; `None` for no limit.
    pub most_bytes: Option<u64>,
    /// `true` if the files of the memory may have holes. When a packet is copied into a hole, the system
    /// charges the new page to the process of the device. If `false`, a file with holes is refused, and a
    /// page that goes missing later ends the connection. Huge pages are not checked.
    pub may_be_sparse: bool,
}

impl GuestMemory {
    /// Returns the treatment of holes in the files of the memory.
    pub(super) const fn holes(self) -> Holes {
        if self.may_be_sparse { Holes::Filled } else { Holes::Refused }
    }
}

impl Default for GuestMemory {
    fn default() -> Self {
        Self { most_bytes: None, may_be_sparse: true }
    }
}

impl Default for GuestOptions {
    fn default() -> Self {
        let (moderation, path, layout) =
            (Duration::ZERO, CopyPath::default(), FrameLayout::default());
        Self {
            checksums: true,
            segmentation: true,
            aggregates: true,
            ack_templates: false,
            moderation,
            path,
            layout,
            memory: GuestMemory::default(),
            places: None,
        }
    }
}

impl GuestOptions {
    /// Returns the virtio features that the device offers with these options.
    pub(super) const fn features(&self) -> u64 {
        let mut features = DEVICE_OFFERS;
        if self.ack_templates {
            features |= ACK_TEMPLATES;
        }
        if !self.checksums {
            features &= !(CSUM | GUEST_CSUM | TO_GUEST | FROM_GUEST | ACK_TEMPLATES);
        }
        if !self.segmentation {
            features &= !FROM_GUEST;
        }
        if !self.aggregates {
            features &= !(TO_GUEST | HOST_USO);
        }
        features
    }
}

/// The features for GSO frames that the guest receives. `RSC_EXT`, the number of segments, is both in this
/// constant and in [`FROM_GUEST`], because it requires features of both directions (virtio 1.2, section 5.1.3.1).
const TO_GUEST: u64 = GUEST_TSO4 | GUEST_TSO6 | GUEST_ECN | GUEST_USO4 | GUEST_USO6 | RSC_EXT;
/// The features for GSO frames that the guest sends.
const FROM_GUEST: u64 = HOST_TSO4 | HOST_TSO6 | HOST_ECN | HOST_USO | RSC_EXT;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_option_takes_its_features_away() {
        let all = GuestOptions::default();
        let card = GuestOptions { aggregates: false, ..all };
        let rows = [
            (all, 0),
            (card, TO_GUEST | HOST_USO),
            (GuestOptions { segmentation: false, ..all }, FROM_GUEST),
            (GuestOptions { segmentation: false, ..card }, TO_GUEST | FROM_GUEST),
            // Without checksums nothing else is possible (virtio 1.2, section 5.1.3.1).
            (GuestOptions { checksums: false, ..all }, CSUM | GUEST_CSUM | TO_GUEST | FROM_GUEST),
        ];
        for (options, without) in rows {
            assert_eq!(options.features(), DEVICE_OFFERS & !without, "{options:?}");
            let expanding = GuestOptions { ack_templates: options.checksums, ..options };
            let more = if options.checksums { ACK_TEMPLATES } else { 0 };
            assert_eq!(expanding.features(), options.features() | more, "{options:?}");
        }
    }
}
