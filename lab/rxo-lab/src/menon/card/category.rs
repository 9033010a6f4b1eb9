//! Assigns instructions to the paper's categories, by the source file that they were compiled from.

use serde::Serialize;

use crate::callgrind::{Origin, crate_and_file};

/// The purpose of a receiver's instructions (section 2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(super) enum Category {
    /// TCP processing of received and sent segments: the paper's rx and tx.
    Protocol,
    /// Headers and templates of sent packets.
    Transmit,
    /// Per-packet work that is neither protocol nor device: connection lookup, locks, buffers, timers.
    NonProto,
    /// The card's rings.
    Driver,
    /// Expansion of ACK templates by the host; part of the driver, as in the paper.
    Expansion,
    /// Receive Aggregation.
    Aggr,
    /// Copies out of the ring and to the application.
    PerByte,
    /// Everything else.
    Misc,
}

impl Category {
    pub(super) const ALL: [Self; 8] = [
        Self::Protocol,
        Self::Transmit,
        Self::NonProto,
        Self::Driver,
        Self::Expansion,
        Self::Aggr,
        Self::PerByte,
        Self::Misc,
    ];

    /// Categories whose cost aggregation divides among its packets: the paper's rx, tx, buffer and non-proto.
    pub(super) const PER_PACKET: [Self; 3] = [Self::Protocol, Self::Transmit, Self::NonProto];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Protocol => "protocol",
            Self::Transmit => "transmit",
            Self::NonProto => "non-proto",
            Self::Driver => "driver",
            Self::Expansion => "driver, expansion",
            Self::Aggr => "aggr",
            Self::PerByte => "per-byte",
            Self::Misc => "misc",
        }
    }

    /// Returns the category of instructions from `origin`.
    pub(super) fn of(origin: Origin<'_>) -> Self {
        if origin.copies() {
            return Self::PerByte;
        }
        if EXPANDING.iter().any(|name| origin.function.contains(name)) {
            return Self::Expansion;
        }
        origin.of_files(Self::of_file).unwrap_or(Self::Misc)
    }

    /// Returns the category of a source file. `None` for shared code (headers, checksums, the standard
    /// library), which counts for the function that inlines it.
    fn of_file(path: &str) -> Option<Self> {
        let (name, file) = crate_and_file(path)?;
        Some(match name {
            "rxo-tcp" => Self::Protocol,
            "rxo-ack" => Self::Transmit,
            "rxo-host" if file.starts_with("src/transmit") => Self::Transmit,
            "rxo-host" => Self::NonProto,
            "rxo-driver" | "rxo-virtqueue" | "rxo-vnet" | "rxo-device" => Self::Driver,
            "rxo-coalesce" => Self::Aggr,
            _ => return None,
        })
    }
}

/// Functions that write the ACKs of a template, whatever file their code is from. Packing a template for a
/// card does not count.
const EXPANDING: [&str; 2] = ["write_like", "AckWriter"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_the_category_of_its_crate() {
        let rows = [
            ("crates/rxo-tcp/src/arrives/mod.rs", Some(Category::Protocol)),
            ("/home/x/crates/rxo-host/src/transmit/acks.rs", Some(Category::Transmit)),
            ("crates/rxo-host/src/demux/mod.rs", Some(Category::NonProto)),
            ("crates/rxo-virtqueue/src/driver/mod.rs", Some(Category::Driver)),
            ("crates/rxo-coalesce/src/engine/mod.rs", Some(Category::Aggr)),
            ("crates/rxo-wire/src/parse.rs", None),
            ("/rustc/1/library/core/src/slice/mod.rs", None),
            ("???", None),
        ];
        for (path, category) in rows {
            assert_eq!(Category::of_file(path), category, "{path}");
        }
    }

    #[test]
    fn expansion_is_told_from_other_transmission_by_the_function() {
        let of = |function| {
            let home = "crates/rxo-host/src/transmit/acks.rs";
            let inlined = "crates/rxo-ack/src/pattern.rs";
            Category::of(Origin { function, inlined, home })
        };
        assert_eq!(of("rxo_host::transmit::acks::Outbox::write_like"), Category::Expansion);
        assert_eq!(of("rxo_ack::writer::AckWriter::new"), Category::Expansion);
        assert_eq!(of("rxo_ack::template::AckTemplate::new"), Category::Transmit);
        assert_eq!(of("memcpy"), Category::PerByte);
    }
}
