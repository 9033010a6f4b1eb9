//! The paper's categories for a guest behind a driver domain (section 2.4).

use crate::callgrind::{Origin, crate_and_file};

/// The purpose of instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// Forwarding of packets, in the domain and in the guest: loops, queues, interrupts.
    NonProto,
    /// The domain's side of the guest's ring.
    Netback,
    /// The guest's driver for its ring.
    Netfront,
    /// TCP and IP processing of received packets.
    TcpRx,
    /// TCP and IP processing of sent packets.
    TcpTx,
    /// Allocation of packet memory in the guest.
    Buffer,
    /// The card's ring in the domain, and the insertion of ACKs.
    Driver,
    /// Receive Aggregation.
    Aggr,
    /// Copies into the guest and inside it.
    PerByte,
    /// Everything else: system calls, the scheduler, the program.
    Misc,
}

/// Instructions for each of [`Part::ALL`].
pub(super) type Parts = [f64; Part::ALL.len()];

impl Part {
    pub(super) const ALL: [Self; 10] = [
        Self::NonProto,
        Self::Netback,
        Self::Netfront,
        Self::TcpRx,
        Self::TcpTx,
        Self::Buffer,
        Self::Driver,
        Self::Aggr,
        Self::PerByte,
        Self::Misc,
    ];

    /// Parts that the paper's per-packet factor covers.
    pub(super) const PER_PACKET: [Self; 6] =
        [Self::NonProto, Self::Netback, Self::Netfront, Self::TcpRx, Self::TcpTx, Self::Buffer];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::NonProto => "non-proto",
            Self::Netback => "netback",
            Self::Netfront => "netfront",
            Self::TcpRx => "tcp rx",
            Self::TcpTx => "tcp tx",
            Self::Buffer => "buffer",
            Self::Driver => "driver",
            Self::Aggr => "aggr",
            Self::PerByte => "per-byte",
            Self::Misc => "misc",
        }
    }

    /// Returns the part of the domain's instructions from `origin`.
    pub(super) fn of_domain(origin: Origin<'_>) -> Self {
        match origin.copies() {
            true => Self::PerByte,
            false => origin.of_files(Self::of_file).unwrap_or(Self::Misc),
        }
    }

    /// Returns the part of a source file; `None` for shared code, which counts for the function that inlines
    /// it.
    fn of_file(path: &str) -> Option<Self> {
        let (name, file) = crate_and_file(path)?;
        Some(match name {
            "rxo" => Self::NonProto,
            // Inserting ACKs counts for the driver, as expanding templates does in the paper.
            "rxo-ack" => Self::Driver,
            // Only the engine parses the headers of each packet.
            "rxo-coalesce" | "rxo-wire" => Self::Aggr,
            "rxo-driver" if file.starts_with("src/virtio/") => Self::Driver,
            "rxo-virtqueue" if file.starts_with("src/driver") => Self::Driver,
            // Both rings share the receiving code, but nearly all frames come from the card.
            "rxo-driver" if file.starts_with("src/virtio_net/source") => Self::Driver,
            // Both rings share the sending code too; ACKs to the card are booked with the guest's packets.
            "rxo-driver" | "rxo-virtqueue" | "rxo-vnet" | "rxo-device" => Self::Netback,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_two_rings_of_the_domain_are_told_apart() {
        let rows = [
            ("crates/rxo/src/worker/to_host.rs", Some(Part::NonProto)),
            ("crates/rxo-driver/src/vhost/backend.rs", Some(Part::Netback)),
            ("crates/rxo-driver/src/vhost_user/region.rs", Some(Part::Netback)),
            ("/x/crates/rxo-virtqueue/src/device/split.rs", Some(Part::Netback)),
            ("crates/rxo-driver/src/virtio/driver.rs", Some(Part::Driver)),
            ("crates/rxo-virtqueue/src/driver/split.rs", Some(Part::Driver)),
            ("crates/rxo-coalesce/src/engine/mod.rs", Some(Part::Aggr)),
            ("crates/rxo-wire/src/parse.rs", Some(Part::Aggr)),
            ("crates/rxo-ack/src/split/table.rs", Some(Part::Driver)),
            ("crates/rxo-driver/src/virtio_net/source.rs", Some(Part::Driver)),
            ("crates/rxo-driver/src/virtio_net/port.rs", Some(Part::Netback)),
            ("crates/rxo-frame/src/pool.rs", None),
            ("/rustc/1/library/core/src/slice/mod.rs", None),
        ];
        for (path, part) in rows {
            assert_eq!(Part::of_file(path), part, "{path}");
        }
    }
}
