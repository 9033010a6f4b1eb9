//! Checks of this process's privileges: its capabilities, and the folders that it can write to.

use std::fs;
use std::io;
use std::path::Path;

use crate::custody::records_folder;
use crate::{Finding, lock};

/// The capabilities that every run needs, with the kernel's numbers.
const NEEDED: [(&str, u32); 2] = [("CAP_NET_ADMIN", 12), ("CAP_NET_RAW", 13)];

pub(super) fn capabilities() -> Finding {
    let status = fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
    of_status(&status)
}

/// Returns the finding for the line `CapEff:` of `status`. Missing capabilities make the check "not run",
/// because a run as root may have them.
fn of_status(status: &str) -> Finding {
    let set = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let set = set.and_then(|set| u64::from_str_radix(set.trim(), 16).ok()).unwrap_or(0);
    let (has, lacks): (Vec<_>, Vec<_>) =
        NEEDED.into_iter().partition(|(_, number)| set >> number & 1 == 1);
    let names =
        |all: &[(&str, u32)]| all.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
    if lacks.is_empty() {
        return Finding::fine(CAPABILITIES, names(&has));
    }
    let remedy =
        "run as root, or `setcap cap_net_raw,cap_net_admin+ep rxo`; in a container, give it both";
    Finding { remedy: remedy.to_owned(), ..Finding::not_run(CAPABILITIES, &names(&lacks)) }
}

pub(super) fn locks() -> Finding {
    match lock::folder() {
        Ok((path, writable)) => folder("locks", (&path, writable), LOCKS_WITHOUT),
        Err(error) => folder("locks", (Path::new("$XDG_RUNTIME_DIR"), Err(error)), LOCKS_WITHOUT),
    }
}

pub(super) fn records() -> Finding {
    let (path, writable) = records_folder();
    folder("records", (&path, writable), RECORDS_WITHOUT)
}

fn folder(name: &'static str, (path, writable): (&Path, io::Result<()>), without: &str) -> Finding {
    let path = path.display();
    match writable {
        Ok(()) => Finding::fine(name, format!("{path} can be written")),
        Err(error) => {
            let remedy = format!("run as root, with a /run that can be written; {without}");
            Finding::limited(name, format!("{path}: {error}"), remedy)
        }
    }
}

const CAPABILITIES: &str = "capabilities";
const LOCKS_WITHOUT: &str = "otherwise any process of this network can keep rxo from starting";
const RECORDS_WITHOUT: &str =
    "otherwise nothing is restored when all processes of a run are killed at once";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::State;

    #[test]
    fn what_is_missing_is_named() {
        let of = |set: &str| of_status(&format!("Name:\trxo\nCapEff:\t{set}\n"));
        assert_eq!(of("000001ffffffffff").state, State::Fine);
        assert_eq!(of("0000000000003000").found, "CAP_NET_ADMIN, CAP_NET_RAW");
        assert_eq!(of("0000000000001000").found, "needs CAP_NET_RAW");
        assert_eq!(of("0").found, "needs CAP_NET_ADMIN, CAP_NET_RAW");
        assert_eq!((of("0").state, of_status("").state), (State::NotRun, State::NotRun));
    }

    #[test]
    fn a_folder_that_is_there_and_one_that_could_be_made_can_be_written() {
        let here = std::env::temp_dir();
        for path in [here.clone(), here.join("rxo-not-made")] {
            let found = folder("locks", (&path, crate::sys::may_make(&path)), "");
            assert_eq!(found.state, State::Fine, "{found}");
        }
        let nowhere = here.join("rxo-not-made/rxo");
        let found = folder("locks", (&nowhere, crate::sys::may_make(&nowhere)), "");
        assert_eq!(found.state, State::Limited, "{found}");
    }
}
