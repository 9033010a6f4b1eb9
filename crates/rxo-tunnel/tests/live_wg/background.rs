//! Programs in the background, and what they leave.

use std::fs;

use rustix::process::{Pid, WaitOptions, waitpid};
use rxo_testbed::{Namespace, until};

use crate::node::PROGRAM;

/// Deletes an interface that a failed test has left, which ends its program.
pub(crate) struct Deleted<'n>(pub(crate) &'n Namespace, pub(crate) &'n str);

impl Drop for Deleted<'_> {
    fn drop(&mut self) {
        // It is gone already unless the test fails.
        _ = self.0.interface(self.1).delete();
    }
}

/// Returns the process in the background that serves `interface`.
pub(crate) fn process_of(interface: &str) -> Pid {
    let is_it = |id: &str| {
        let line = fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
        let mut words = line.split(|byte| *byte == 0);
        words.next() == Some(PROGRAM.as_bytes()) && words.any(|word| word == interface.as_bytes())
    };
    let ids =
        fs::read_dir("/proc").unwrap().filter_map(|it| it.unwrap().file_name().into_string().ok());
    let found: Vec<i32> = ids.filter(|id| is_it(id)).map(|id| id.parse().unwrap()).collect();
    assert_eq!(found.len(), 1, "processes of {interface}");
    Pid::from_raw(found[0]).unwrap()
}

/// Waits until `process` has ended.
pub(crate) fn await_end(process: Pid) {
    until(|| Ok(waitpid(Some(process), WaitOptions::NOHANG).unwrap().is_some())).unwrap().unwrap();
}

/// Returns the path of the socket of `interface`.
pub(crate) fn socket_of(interface: &str) -> String {
    format!("/run/wireguard/{interface}.sock")
}
