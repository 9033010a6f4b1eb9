//! Runs the rows of a test at the same time, because each row mostly waits.

use std::panic::resume_unwind;
use std::thread;

/// Runs `test` for each of `rows` on its own thread. Panics if any of them panics.
pub(crate) fn at_once<T: Send>(rows: impl IntoIterator<Item = T>, test: impl Fn(T) + Sync) {
    let test = &test;
    thread::scope(|scope| {
        let threads: Vec<_> = rows.into_iter().map(|row| scope.spawn(move || test(row))).collect();
        for thread in threads {
            thread.join().unwrap_or_else(|panic| resume_unwind(panic));
        }
    });
}
