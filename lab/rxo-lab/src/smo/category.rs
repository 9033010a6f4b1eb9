//! Assigns instructions to the paper's components (figures 6 and 8), by the source file that they were
//! compiled from.

use serde::Serialize;

use crate::callgrind::{Origin, crate_and_file};

/// The purpose of an acknowledgement's instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(super) enum Category {
    /// From the card's ring to the connection: ring, checks, engine or fast path, demultiplexing.
    Rx,
    /// Allocation, release and copying of memory.
    Memory,
    /// Locks and atomic operations, and the backlog that locks protect.
    Sync,
    /// The receiver's connection: the paper's TCP control block.
    Block,
    /// The state of the group.
    Aggregate,
    /// The host's work on a connection after its acknowledgement: timers, and a check for data to send.
    Upkeep,
    /// Everything else.
    Other,
}

impl Category {
    pub(super) const ALL: [Self; 7] = [
        Self::Rx,
        Self::Memory,
        Self::Sync,
        Self::Block,
        Self::Aggregate,
        Self::Upkeep,
        Self::Other,
    ];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Rx => "RX",
            Self::Memory => "memory",
            Self::Sync => "sync",
            Self::Block => "block",
            Self::Aggregate => "aggregate",
            Self::Upkeep => "upkeep",
            Self::Other => "other",
        }
    }

    /// Returns the category of instructions from `origin`.
    pub(super) fn of(origin: Origin<'_>) -> Self {
        if origin.copies() || ALLOCATES.iter().any(|name| origin.function.contains(name)) {
            return Self::Memory;
        }
        origin.of_files(Self::of_file).unwrap_or(Self::Other)
    }

    /// Returns the category of a source file; `None` for shared code, which counts for the function that
    /// inlines it.
    fn of_file(path: &str) -> Option<Self> {
        if SYNC.iter().any(|part| path.contains(part)) {
            return Some(Self::Sync);
        }
        let (name, file) = crate_and_file(path)?;
        let is_in = |parts: &[&str]| parts.iter().any(|part| file.starts_with(part));
        Some(match name {
            "rxo-tcp" if is_in(&["src/multicast"]) => Self::Aggregate,
            "rxo-host" if is_in(&["src/worker/cast.rs"]) => Self::Aggregate,
            "rxo-tcp" => Self::Block,
            "rxo-host" if is_in(&["src/cell"]) => Self::Sync,
            "rxo-host" if is_in(&UPKEEP) => Self::Upkeep,
            "rxo-host" if is_in(&["src/buffer.rs"]) => Self::Memory,
            "rxo-frame" if is_in(&["src/pool", "src/chain"]) => Self::Memory,
            "rxo-host" | "rxo-device" | "rxo-coalesce" => Self::Rx,
            "rxo-lab" if is_in(&["src/smo/card.rs"]) => Self::Rx,
            _ => return None,
        })
    }
}

/// Functions of the allocator.
const ALLOCATES: [&str; 6] =
    ["malloc", "calloc", "realloc", "free", "__rust_alloc", "__rust_dealloc"];
const SYNC: [&str; 3] = ["core/src/sync/atomic", "std/src/sync/", "std/src/sys/sync/"];
const UPKEEP: [&str; 7] = [
    "src/transmit",
    "src/worker/give_back.rs",
    "src/worker/reclaim.rs",
    "src/worker/rests.rs",
    "src/worker/serve.rs",
    "src/worker/shares.rs",
    "src/worker/timers.rs",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_the_category_of_what_it_does() {
        let rows = [
            ("crates/rxo-tcp/src/recovery/on_ack.rs", Some(Category::Block)),
            ("/x/crates/rxo-tcp/src/multicast/tree.rs", Some(Category::Aggregate)),
            ("crates/rxo-host/src/worker/cast.rs", Some(Category::Aggregate)),
            ("crates/rxo-host/src/worker/fast.rs", Some(Category::Rx)),
            ("crates/rxo-host/src/worker/serve.rs", Some(Category::Upkeep)),
            ("crates/rxo-host/src/cell/mod.rs", Some(Category::Sync)),
            ("lab/rxo-lab/src/smo/card.rs", Some(Category::Rx)),
            ("lab/rxo-lab/src/smo/cost.rs", None),
            ("/rustc/1/library/std/src/sync/mpsc.rs", Some(Category::Sync)),
            ("/rustc/1/library/core/src/slice/mod.rs", None),
            ("crates/rxo-wire/src/seq.rs", None),
        ];
        for (path, category) in rows {
            assert_eq!(Category::of_file(path), category, "{path}");
        }
        let of = |function| Category::of(Origin { function, inlined: "???", home: "???" });
        assert_eq!([of("_int_malloc"), of("main")], [Category::Memory, Category::Other]);
    }
}
