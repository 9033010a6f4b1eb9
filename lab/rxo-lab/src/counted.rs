//! Counts what a process of this program costs under callgrind, by category of its code.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Result;
use rxo_peers::Folder;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::callgrind::{self, Origin, copies, crate_and_file, of_files};
use crate::process::Process;
use crate::step;

/// The categories of sources, and last the category of everything else. Functions come before files, and
/// otherwise the first row that fits counts. A file that no row has is shared code, which counts for the
/// function that inlines it.
pub(crate) struct Categories(pub(crate) &'static [(&'static str, Source)], pub(crate) &'static str);

/// A source of instructions in a table of categories.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Source {
    /// Functions that copy memory.
    Copies,
    /// Functions whose names contain one of these words.
    Functions(&'static str),
    /// Files whose paths contain one of these words.
    Path(&'static str),
    /// Files of one of these crates of rxo whose paths in the crate begin with one of the other words.
    Files(&'static str, &'static str),
}

/// The name that several tables give to copies and to the allocator.
pub(crate) const MEMORY: &str = "memory";

impl Categories {
    /// Reads a profile. Returns the sum of the costs of each category.
    pub(crate) fn read(&self, profile: &Path) -> Result<Costs> {
        let found = callgrind::read(profile, |origin| self.of(origin))?;
        let names = self.0.iter().map(|(name, _)| *name).chain([self.1]);
        Ok(names.map(|name| (name, 0.0)).chain(found).collect())
    }

    /// Returns the category of instructions from `origin`.
    pub(crate) fn of(&self, origin: Origin<'_>) -> &'static str {
        let first = |fits: &dyn Fn(&Source) -> bool| {
            self.0.iter().find(|(_, source)| fits(source)).map(|(category, _)| *category)
        };
        let of_function = first(&|source| match source {
            Source::Copies => copies(origin),
            Source::Functions(names) => names.split(' ').any(|name| origin.function.contains(name)),
            Source::Path(_) | Source::Files(..) => false,
        });
        let of_file = |path: &str| {
            let file = crate_and_file(path);
            first(&|source| match source {
                Source::Path(parts) => parts.split(' ').any(|part| path.contains(part)),
                Source::Files(of, begins) => file.is_some_and(|(name, file)| {
                    of.split(' ').any(|of| name == of)
                        && begins.split(' ').any(|begin| file.starts_with(begin))
                }),
                Source::Copies | Source::Functions(_) => false,
            })
        };
        of_function.or_else(|| of_files(origin, of_file)).unwrap_or(self.1)
    }
}

/// The cost of each category, by its name. Costs of one name are added up.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Costs(BTreeMap<&'static str, f64>);

impl Costs {
    /// Returns the cost of a category; 0 if there is none of this name.
    pub(crate) fn of(&self, name: &str) -> f64 {
        self.0.get(name).copied().unwrap_or_default()
    }

    pub(crate) fn total(&self) -> f64 {
        self.0.values().sum()
    }

    /// Returns `cost` of the name and the cost of each category.
    pub(crate) fn each(&self, cost: impl Fn(&str, f64) -> f64) -> Self {
        self.0.iter().map(|(name, all)| (*name, cost(name, *all))).collect()
    }
}

impl FromIterator<(&'static str, f64)> for Costs {
    fn from_iter<I: IntoIterator<Item = (&'static str, f64)>>(costs: I) -> Self {
        let mut sums = BTreeMap::new();
        costs.into_iter().for_each(|(name, cost)| *sums.entry(name).or_default() += cost);
        Self(sums)
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
    categories: &Categories,
) -> Result<Counted<T>> {
    let folder = Folder::new("counted")?;
    let profile = folder.file("callgrind.out");
    let mut command = callgrind::command(function, &profile, options)?;
    command.args(step::arguments(step, parameters)?);
    let said = Process::spawn("the process under valgrind", &mut command)?.finish()?;
    let (costs, misses) = (categories.read(&profile)?, callgrind::last_misses(&profile)?);
    Ok(Counted { said, costs, misses })
}

#[cfg(test)]
mod tests {
    use super::*;

    const CATEGORIES: Categories = Categories(
        &[
            (MEMORY, Source::Copies),
            (MEMORY, Source::Functions("malloc")),
            ("locks", Source::Path("std/src/sync/")),
            ("locks", Source::Files("rxo-host", "src/cell")),
            ("host", Source::Files("rxo-host", "")),
            ("tcp", Source::Files("rxo-tcp", "")),
            ("host", Source::Files("rxo-lab", "src/smo/card.rs")),
        ],
        "other",
    );

    #[test]
    fn code_has_the_category_of_its_file_unless_it_is_memory() {
        let of = |function, inlined, home| CATEGORIES.of(Origin { function, inlined, home });
        let core = "/rustc/1/library/core/src/mem.rs";
        for (function, inlined, home, category) in [
            ("take", core, "/x/crates/rxo-tcp/src/arrives/mod.rs", "tcp"),
            ("take", "crates/rxo-host/src/cell/mod.rs", "crates/rxo-tcp/src/lib.rs", "locks"),
            ("take", core, "crates/rxo-host/src/worker/mod.rs", "host"),
            ("take", "/rustc/1/library/std/src/sync/mpsc.rs", "???", "locks"),
            ("take", "crates/rxo-wire/src/seq.rs", "lab/rxo-lab/src/smo/card.rs", "host"),
            ("take", core, "lab/rxo-lab/src/smo/cost.rs", "other"),
            ("_int_malloc", "???", "crates/rxo-tcp/src/lib.rs", MEMORY),
            ("__memcpy_avx_unaligned_erms", "???", "???", MEMORY),
        ] {
            assert_eq!(of(function, inlined, home), category, "{function} {inlined} {home}");
        }
    }

    #[test]
    fn costs_are_found_by_name() {
        let costs: Costs = [("tcp", 1.5), (MEMORY, 3.0), ("tcp", 0.5)].into_iter().collect();
        assert_eq!((costs.of(MEMORY), costs.of("typo"), costs.total()), (3.0, 0.0, 5.0));
        assert_eq!(serde_json::to_value(costs).unwrap()["tcp"], 2.0);
    }
}
