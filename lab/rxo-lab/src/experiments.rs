//! The experiments of `rxo-lab all`.

use anyhow::Result;
use rxo_console::fault::usage;

use crate::flags::{AcksFlags, GallatinFlags, Part, RscFlags, RunFlags};
use crate::study::Study;
use crate::{cast, gallatin, juggler, menon, paro, policies, rsc, smo, xen};

/// An experiment that can be made from the shared flags.
struct Entry {
    id: &'static str,
    parts: &'static [Part],
    make: fn(&RunFlags) -> Result<Study>,
}

/// All experiments: those that are counted first, because they take no longer on a busy machine.
const ENTRIES: [Entry; 12] = [
    Entry { id: "policies", parts: policies::PARTS, make: policies::study },
    Entry { id: "juggler", parts: juggler::PARTS, make: juggler::study },
    Entry { id: "cast", parts: cast::PARTS, make: cast::study },
    Entry { id: "xen", parts: xen::PARTS, make: xen::study },
    Entry { id: "smo", parts: smo::PARTS, make: smo::study },
    Entry { id: "paro", parts: paro::PARTS, make: paro::study },
    Entry {
        id: "gallatin",
        parts: gallatin::PARTS,
        make: |run| gallatin::study(&GallatinFlags::with(run)),
    },
    Entry { id: "rsc", parts: rsc::PARTS, make: |run| rsc::study(&RscFlags::with(run)) },
    Entry { id: "cast-live", parts: cast::live::PARTS, make: cast::live::study },
    Entry { id: "menon", parts: menon::receive::PARTS, make: menon::receive::study },
    Entry { id: "menon-card", parts: menon::card::PARTS, make: menon::card::study },
    Entry {
        id: "menon-acks",
        parts: menon::acks::PARTS,
        make: |run| menon::acks::study(&AcksFlags::with(run)),
    },
];

/// Makes the experiments that the flags choose: with `--only` the named ones, or parts of them (`xen.cost`);
/// with `--counted` those that have a counted part.
///
/// # Errors
/// If `--only` names no experiment, or a number is invalid.
pub(crate) fn all(flags: &RunFlags) -> Result<Vec<Study>> {
    let names = ENTRIES.map(|entry| entry.id);
    let experiment =
        |text: &str| text.split_once('.').map_or(text.to_owned(), |it| it.0.to_owned());
    if let Some(unknown) = flags.only.iter().find(|only| !names.contains(&&*experiment(only))) {
        return Err(usage(format!("--only {unknown}: choose {}", names.join(", "))));
    }
    let is_chosen = |entry: &&Entry| {
        let is_named =
            flags.only.is_empty() || flags.only.iter().any(|it| experiment(it) == entry.id);
        is_named && (!flags.counted || entry.parts.iter().any(|part| part.is_counted))
    };
    let make = |entry: &Entry| {
        let parts =
            flags.only.iter().filter_map(|only| only.strip_prefix(entry.id)?.strip_prefix('.'));
        (entry.make)(&flags.with_only(parts.map(str::to_owned).collect()))
    };
    ENTRIES.iter().filter(is_chosen).map(make).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claim::book;
    use crate::flags::typed;

    fn ids(line: &str) -> Vec<&'static str> {
        let flags: RunFlags = typed(line).unwrap();
        all(&flags).unwrap().iter().map(|study| study.id).collect()
    }

    #[test]
    fn every_experiment_has_a_book_of_claims() {
        let ids = ids("");
        assert_eq!(ids, ENTRIES.map(|entry| entry.id));
        assert!(ids.iter().all(|id| book(id).is_some()));
    }

    #[test]
    fn experiments_and_parts_of_them_are_chosen() {
        assert_eq!(
            ids("--counted"),
            ["policies", "juggler", "cast", "xen", "smo", "paro", "gallatin"]
        );
        assert_eq!(ids("--only menon,xen.rate"), ["xen", "menon"]);
        let flags: RunFlags = typed("--only xen.rate --quick").unwrap();
        assert_eq!(all(&flags).unwrap()[0].steps(), 96);
        for (line, message) in [
            ("--only xem", "--only xem: choose policies, juggler, cast, xen,"),
            ("--only xen.speed", "--only speed: choose throughput,"),
        ] {
            let flags: RunFlags = typed(line).unwrap();
            let error = all(&flags).err().unwrap().to_string();
            assert!(error.starts_with(message), "{error}");
        }
    }

    /// What is counted needs no privilege, so that a build server can repeat it.
    #[test]
    fn what_is_counted_needs_no_networks() {
        let flags: RunFlags = typed("--counted").unwrap();
        let all = all(&flags).unwrap();
        assert!(all.iter().all(|study| !study.needs_networks));
    }
}
