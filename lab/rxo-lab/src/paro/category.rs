//! Assigns instructions to the paper's components, by the source file that they were compiled from.

use serde::Serialize;

use crate::callgrind::{Origin, crate_and_file};

/// The purpose of a server's instructions, before receiving and sending are separated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// The ring and its descriptors.
    Driver,
    /// Link, engine, connections and TCP.
    Network,
    /// Copies, the allocator, and the pools of frames.
    Memory,
    /// The HTTP server, its sockets, and everything else.
    Application,
    /// The measurement itself, whose instructions are left out.
    Measuring,
}

impl Part {
    pub(super) const COUNT: usize = 5;

    /// Returns the part of instructions from `origin`.
    pub(super) fn of(origin: Origin<'_>) -> Self {
        let is_memory = |name: &&str| origin.function.contains(*name);
        match origin.copies() || MEMORY.iter().any(is_memory) {
            true => Self::Memory,
            false => origin.of_files(Self::of_file).unwrap_or(Self::Application),
        }
    }

    /// Returns the part of a source file; `None` for code that several parts share.
    fn of_file(path: &str) -> Option<Self> {
        let (name, file) = crate_and_file(path)?;
        Some(match name {
            "rxo-frame" if file.starts_with("src/pool") => Self::Memory,
            "rxo-driver" | "rxo-virtqueue" | "rxo-vnet" | "rxo-device" => Self::Driver,
            "rxo-lab" if file.ends_with("paro/app.rs") => Self::Application,
            "rxo-serve" => Self::Application,
            "rxo-host" if file.starts_with("src/socket") => Self::Application,
            "rxo-host" | "rxo-tcp" | "rxo-coalesce" | "rxo-ack" => Self::Network,
            "rxo-lab" => Self::Measuring,
            _ => return None,
        })
    }
}

/// Functions of the allocator, and functions that fill memory.
const MEMORY: [&str; 7] =
    ["malloc", "calloc", "realloc", "free", "memset", "_int_", "unlink_chunk"];

/// A component of the paper's figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Component {
    /// Receiving frames from the ring.
    DriverRx,
    /// Processing of received frames up to TCP, without memory operations.
    NetworkRx,
    /// Copies, the allocator and pools, of both directions.
    Memory,
    /// Processing of sent data, from TCP to the device's frame.
    NetworkTx,
    /// Putting frames into the ring.
    DriverTx,
    /// The HTTP server and its sockets.
    Application,
}

impl Component {
    pub(super) const ALL: [Self; 6] = [
        Self::DriverRx,
        Self::NetworkRx,
        Self::Memory,
        Self::NetworkTx,
        Self::DriverTx,
        Self::Application,
    ];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::DriverRx => "driver RX",
            Self::NetworkRx => "network RX",
            Self::Memory => "memory",
            Self::NetworkTx => "network TX",
            Self::DriverTx => "driver TX",
            Self::Application => "application",
        }
    }
}

/// A cost for each of [`Component::ALL`].
pub(super) type Costs = [f64; Component::ALL.len()];

/// Computes the components from the cost of everything and the cost of receiving alone.
pub(super) fn components(all: [f64; Part::COUNT], receiving: [f64; Part::COUNT]) -> Costs {
    let rx = |part: Part| receiving[part as usize];
    let tx = |part: Part| all[part as usize] - rx(part);
    Component::ALL.map(|component| match component {
        Component::DriverRx => rx(Part::Driver),
        // Standard library code that receiving calls counts for receiving.
        Component::NetworkRx => rx(Part::Network) + rx(Part::Application),
        Component::Memory => all[Part::Memory as usize],
        Component::NetworkTx => tx(Part::Network),
        Component::DriverTx => tx(Part::Driver),
        Component::Application => tx(Part::Application),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(function: &str, home: &str) -> Part {
        Part::of(Origin { function, inlined: "/rustc/1/library/core/src/mem.rs", home })
    }

    #[test]
    fn a_function_has_the_part_of_its_file_unless_it_is_memory() {
        let rows = [
            ("rxo_tcp::take", "crates/rxo-tcp/src/arrives/mod.rs", Part::Network),
            ("take", "/x/crates/rxo-frame/src/pool/mod.rs", Part::Memory),
            ("rxo_host::write", "crates/rxo-host/src/socket/stream.rs", Part::Application),
            ("rxo_host::turn", "crates/rxo-host/src/worker/mod.rs", Part::Network),
            ("take", "crates/rxo-virtqueue/src/driver/mod.rs", Part::Driver),
            ("answer", "lab/rxo-lab/src/paro/app.rs", Part::Application),
            ("step", "lab/rxo-lab/src/paro/server.rs", Part::Measuring),
            ("_int_free", "./malloc/malloc.c", Part::Memory),
            ("__memcpy_avx_unaligned_erms", "???", Part::Memory),
            ("std::hash", "/rustc/1/library/std/src/hash.rs", Part::Application),
        ];
        for (function, home, expected) in rows {
            assert_eq!(part(function, home), expected, "{function} in {home}");
        }
    }

    #[test]
    fn what_does_not_receive_sends() {
        let costs = components([10.0, 100.0, 30.0, 50.0, 7.0], [4.0, 60.0, 10.0, 1.0, 7.0]);
        assert_eq!(costs, [4.0, 61.0, 30.0, 40.0, 6.0, 49.0]);
    }
}
