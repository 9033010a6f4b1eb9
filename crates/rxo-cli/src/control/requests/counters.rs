//! The request `counters`: shows all counters.

use rxo_control::Entry;

use super::{Process, takes_only};

pub(super) const ENTRY: Entry<Process> = Entry {
    name: "counters",
    usage: "counters",
    help: "shows everything that is counted, since the start",
    applies: |_| true,
    answer: |process, request| {
        takes_only(request, false, &[])?;
        (process.counters)()
    },
};
