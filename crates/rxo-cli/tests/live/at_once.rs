//! Rows of a test that run at the same time, because each of them waits most of its time.

use std::panic::resume_unwind;
use std::thread;

/// Runs `test` for each of `rows` on a thread of its own. Panics if one of them does.
pub(crate) fn at_once<T: Send>(rows: impl IntoIterator<Item = T>, test: impl Fn(T) + Sync) {
    let test = &test;
    thread::scope(|scope| {
        let threads: Vec<_> = rows.into_iter().map(|row| scope.spawn(move || test(row))).collect();
        for thread in threads {
            thread.join().unwrap_or_else(|panic| resume_unwind(panic));
        }
    });
}
