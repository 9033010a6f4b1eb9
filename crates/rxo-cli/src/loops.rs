//! Loops of an application: one for each worker of its host, with a thread and connections of its own.
//!
//! This module is separate because `sink`, `source` and `serve` differ only in the work of a loop. Contract:
//! the first loop is on the calling thread; with one worker it is the only loop. When a loop fails or panics,
//! the other loops end in order.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use rxo_driver::{bind_to_cpu, wait};

/// Ends all other loops by setting the flag `stop`, if the loop that holds this value ends by an error or a
/// panic.
struct EndsAll<'a> {
    stop: &'a AtomicBool,
    is_well: bool,
}

impl Drop for EndsAll<'_> {
    fn drop(&mut self) {
        if !self.is_well {
            self.stop.store(true, Ordering::Relaxed);
        }
    }
}

/// Runs a loop of the application for each of `parts`, one part for each worker of the host. Binds each loop to
/// its processor in `cpus`, if `cpus` is not empty. `work` is the loop. Its argument is a function that the
/// loop must call at least ten times a second. For the first loop this function is `tick`, which is also called
/// while only other loops run. Returns the results in the order of the workers.
///
/// # Errors
/// The first failure of a loop; `stop` is set then, which ends the other loops.
pub(crate) fn run<P: Send, T: Send>(
    parts: Vec<P>,
    (cpus, stop): (&[u16], &AtomicBool),
    work: impl Fn(P, &mut dyn FnMut()) -> Result<T> + Sync,
    tick: &mut dyn FnMut(),
) -> Result<Vec<T>> {
    let one = |part: P, cpu: Option<&u16>, tick: &mut dyn FnMut()| {
        let mut guard = EndsAll { stop, is_well: false };
        bind(cpu)?;
        let worked = work(part, tick);
        guard.is_well = worked.is_ok();
        worked
    };
    thread::scope(|scope| {
        let mut parts = parts.into_iter().enumerate().map(|(n, part)| (n, part, cpus.get(n)));
        let first = parts.next();
        let others: Vec<_> = parts
            .map(|(n, part, cpu)| {
                let thread = thread::Builder::new().name(format!("rxo-loop-{}", n + 1));
                thread.spawn_scoped(scope, move || one(part, cpu, &mut || {}))
            })
            .collect();
        if others.iter().any(Result::is_err) {
            stop.store(true, Ordering::Relaxed);
        }
        let first = first.map(|(_, part, cpu)| one(part, cpu, tick));
        while others.iter().flatten().any(|thread| !thread.is_finished()) {
            tick();
            wait::pause(BETWEEN_TICKS);
        }
        let others = others.into_iter().map(|thread| {
            let thread = thread.context("cannot start a thread for each worker")?;
            thread.join().unwrap_or_else(|_| Err(anyhow!("a thread of the command has panicked")))
        });
        first.into_iter().chain(others).collect()
    })
}

fn bind(cpu: Option<&u16>) -> Result<()> {
    cpu.map_or(Ok(()), |&cpu| {
        bind_to_cpu(cpu).with_context(|| {
            format!(
                "cannot bind a worker to processor {cpu}; `nproc` counts those that may be used"
            )
        })
    })
}

const BETWEEN_TICKS: Duration = Duration::from_millis(10);

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use anyhow::bail;

    use super::*;

    fn until(stop: &AtomicBool, tick: &mut dyn FnMut()) {
        while !stop.load(Ordering::Relaxed) {
            tick();
            thread::yield_now();
        }
    }

    #[test]
    fn the_first_loop_is_here_and_all_have_a_result() {
        let (stop, here) = (AtomicBool::new(false), thread::current().id());
        let work = |n: usize, _: &mut dyn FnMut()| Ok((n, thread::current().id() == here));
        let results = run(vec![7, 8, 9], (&[], &stop), work, &mut || {}).unwrap();
        assert_eq!(results, [(7, true), (8, false), (9, false)]);
        assert!(!stop.load(Ordering::Relaxed));
    }

    #[test]
    fn a_loop_that_fails_or_panics_ends_the_others() {
        for panics in [false, true] {
            for failing in [0, 1] {
                let (stop, ended) = (AtomicBool::new(false), AtomicUsize::new(0));
                let work = |n: usize, tick: &mut dyn FnMut()| {
                    // The first loop's panic goes to the caller, whose thread that is.
                    if n == failing && !(panics && n > 0) {
                        bail!("loop {n} fails");
                    }
                    assert!(n != failing, "as the test wants");
                    until(&stop, tick);
                    ended.fetch_add(1, Ordering::Relaxed);
                    Ok(())
                };
                let said = run(vec![0, 1, 2], (&[], &stop), work, &mut || {}).unwrap_err();
                let message = match panics && failing > 0 {
                    true => "a thread of the command has panicked".to_owned(),
                    false => format!("loop {failing} fails"),
                };
                assert_eq!((said.to_string(), ended.into_inner()), (message, 2));
            }
        }
    }

    #[test]
    fn ticks_go_on_while_any_loop_works() {
        let (stop, mut ticks) = (AtomicBool::new(false), 0);
        let work = |n: usize, _: &mut dyn FnMut()| {
            if n > 0 {
                until(&stop, &mut || {});
            }
            Ok(())
        };
        let tick = &mut || {
            ticks += 1;
            stop.store(ticks == 3, Ordering::Relaxed);
        };
        run(vec![0, 1], (&[], &stop), work, tick).unwrap();
        assert!(ticks >= 3);
    }
}
