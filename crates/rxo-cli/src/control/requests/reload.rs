//! The request `reload`: reads the configuration file again.

use rxo_control::Entry;

use super::{Process, takes_only};

pub(super) const ENTRY: Entry<Process> = Entry {
    name: "reload",
    usage: "reload",
    help: "reads the file of --config again and follows it: wholly, or not at all",
    applies: |process| process.reload.is_some(),
    answer: |process, request| {
        takes_only(request, false, &[])?;
        process.reload.as_ref().ok_or("there is no file; start rxo run with --config")?()
    },
};
