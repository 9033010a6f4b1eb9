//! Counts what a process of this program costs under callgrind, by component of its code.

use anyhow::Result;
use serde::de::DeserializeOwned;
use serde::{Serialize, Serializer};

use crate::callgrind::{self, Origin, crate_and_file};
use crate::folder::Folder;
use crate::process::Process;
use crate::step;

/// The components of a program, as rules that assign instructions to them. The first rule that fits decides.
/// Copies of memory are [`MEMORY`], code without a rule is the last component.
pub(crate) struct Components {
    /// The names of all components, at most eight.
    pub(crate) names: &'static [&'static str],
    /// Parts of names of functions that are [`MEMORY`], too.
    pub(crate) memory: &'static [&'static str],
    /// Parts of paths, and the component of their code.
    pub(crate) paths: &'static [(&'static str, &'static str)],
    /// A crate of rxo, the first part of paths in it, and the component of their code. Code of a crate without a
    /// rule is shared: it counts for the function that inlines it.
    pub(crate) crates: &'static [(&'static str, &'static str, &'static str)],
}

/// The component of copies, and of the allocator.
pub(crate) const MEMORY: &str = "memory";

impl Components {
    /// Returns the component of instructions from `origin`.
    pub(crate) fn of(&self, origin: Origin<'_>) -> &'static str {
        if origin.copies() || self.memory.iter().any(|name| origin.function.contains(name)) {
            return MEMORY;
        }
        let last = self.names.last().copied().unwrap_or_default();
        origin.of_files(|path| self.of_file(path)).unwrap_or(last)
    }

    fn of_file(&self, path: &str) -> Option<&'static str> {
        let by_path = self.paths.iter().find(|(part, _)| path.contains(part));
        by_path.map(|(_, component)| *component).or_else(|| {
            let (name, file) = crate_and_file(path)?;
            let fits =
                |(of, start, _): &&(&str, &str, &str)| *of == name && file.starts_with(start);
            self.crates.iter().find(fits).map(|(.., component)| *component)
        })
    }
}

/// The cost of each component, by its name.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Costs(pub(crate) Vec<(&'static str, f64)>);

impl Costs {
    /// Returns the cost of a component; 0 if there is none of this name.
    pub(crate) fn of(&self, name: &str) -> f64 {
        self.0.iter().find(|(component, _)| *component == name).map_or(0.0, |(_, cost)| *cost)
    }

    pub(crate) fn total(&self) -> f64 {
        self.0.iter().map(|(_, cost)| cost).sum()
    }
}

impl Serialize for Costs {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().copied())
    }
}

/// A process under callgrind: what it said, and what it cost.
pub(crate) struct Counted<T> {
    pub(crate) said: T,
    /// Instructions, or estimated cycles if caches were simulated.
    pub(crate) costs: Costs,
    /// Misses of the last simulated cache; 0 if none was simulated.
    pub(crate) misses: f64,
}

/// Runs a step of this program, and counts inside functions whose names contain `function`. `options` are
/// callgrind's.
///
/// # Errors
/// If valgrind is missing, or the process under it fails.
pub(crate) fn counted<T: DeserializeOwned>(
    (step, parameters): (&str, &impl Serialize),
    (function, options): (&str, &[&str]),
    components: &Components,
) -> Result<Counted<T>> {
    let folder = Folder::new("counted")?;
    let profile = folder.file("callgrind.out");
    let mut command = callgrind::command(function, &profile, options)?;
    command.args(step::arguments(step, parameters)?);
    let said = Process::spawn("the process under valgrind", &mut command)?.finish()?;
    let index = |origin: Origin<'_>| {
        let component = components.of(origin);
        components.names.iter().position(|name| *name == component).unwrap_or_default()
    };
    let costs: [f64; MOST] = callgrind::read(&profile, index)?;
    let costs = Costs(components.names.iter().copied().zip(costs).collect());
    Ok(Counted { said, costs, misses: callgrind::last_misses(&profile)? })
}

/// Most components.
const MOST: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    const COMPONENTS: Components = Components {
        names: &["tcp", MEMORY, "locks", "host", "other"],
        memory: &["malloc"],
        paths: &[("std/src/sync/", "locks")],
        crates: &[
            ("rxo-host", "src/cell", "locks"),
            ("rxo-host", "", "host"),
            ("rxo-tcp", "", "tcp"),
            ("rxo-lab", "src/smo/card.rs", "host"),
        ],
    };

    #[test]
    fn code_has_the_component_of_its_file_unless_it_is_memory() {
        let of = |function, inlined, home| COMPONENTS.of(Origin { function, inlined, home });
        let core = "/rustc/1/library/core/src/mem.rs";
        for (function, inlined, home, component) in [
            ("take", core, "/x/crates/rxo-tcp/src/arrives/mod.rs", "tcp"),
            ("take", "crates/rxo-host/src/cell/mod.rs", "crates/rxo-tcp/src/lib.rs", "locks"),
            ("take", core, "crates/rxo-host/src/worker/mod.rs", "host"),
            ("take", "/rustc/1/library/std/src/sync/mpsc.rs", "???", "locks"),
            ("take", "crates/rxo-wire/src/seq.rs", "lab/rxo-lab/src/smo/card.rs", "host"),
            ("take", core, "lab/rxo-lab/src/smo/cost.rs", "other"),
            ("_int_malloc", "???", "crates/rxo-tcp/src/lib.rs", MEMORY),
            ("__memcpy_avx_unaligned_erms", "???", "???", MEMORY),
        ] {
            assert_eq!(of(function, inlined, home), component, "{function} {inlined} {home}");
        }
    }

    #[test]
    fn costs_are_found_by_name() {
        let costs = Costs(vec![("tcp", 2.0), (MEMORY, 3.0)]);
        assert_eq!((costs.of(MEMORY), costs.of("typo"), costs.total()), (3.0, 0.0, 5.0));
        assert_eq!(serde_json::to_value(costs).unwrap()["tcp"], 2.0);
    }
}
