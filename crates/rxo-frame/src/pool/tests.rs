use core::sync::atomic::Ordering;
use std::collections::BTreeSet;
use std::sync::mpsc;
use std::thread;
use std::vec::Vec;

use super::*;

#[test]
fn every_buffer_is_taken_once_and_comes_back_on_drop() {
    let pool = Pool::new(3, 100);
    let taken: Vec<_> = core::iter::from_fn(|| pool.take()).collect();
    assert_eq!((taken.len(), pool.available(), pool.is_exhausted()), (3, 0, true));
    let starts: BTreeSet<_> = taken.iter().map(|buffer| buffer.as_ptr() as usize).collect();
    assert_eq!(starts.len(), 3, "each has memory of its own");
    assert!(starts.iter().all(|start| start % LINE_BYTES == 0), "on a line of its own");
    drop(taken);
    assert_eq!((pool.available(), pool.is_exhausted()), (3, false));
}

#[test]
fn the_buffer_given_back_last_is_taken_first() {
    let pool = Pool::new(8, 64);
    let _first = pool.take();
    let second = pool.take().unwrap();
    let start = second.as_ptr();
    drop(second);
    assert_eq!(pool.take().unwrap().as_ptr(), start);
}

#[test]
fn writing_one_buffer_leaves_the_others_alone() {
    let pool = Pool::new(4, 70);
    let mut buffers: Vec<_> = core::iter::from_fn(|| pool.take()).collect();
    for (mark, buffer) in buffers.iter_mut().enumerate() {
        buffer.fill(mark as u8 + 1);
    }
    for (mark, buffer) in buffers.iter().enumerate() {
        assert_eq!(buffer.len(), 70);
        assert!(buffer.iter().all(|byte| *byte == mark as u8 + 1));
    }
}

#[test]
fn length_goes_down_and_up_within_the_capacity() {
    let pool = Pool::new(1, 10);
    let mut buffer = pool.take().unwrap();
    buffer.copy_from_slice(b"0123456789");
    buffer.truncate(4);
    buffer.truncate(7);
    assert_eq!(&*buffer, b"0123");
    buffer.set_len(6);
    assert_eq!(buffer.as_ref(), b"012345");
    drop(buffer);
    assert_eq!(pool.take().unwrap().len(), 10, "a taken buffer has its full length again");
}

#[test]
#[should_panic(expected = "a buffer of 10 bytes: 11")]
fn length_beyond_the_capacity_is_refused() {
    Pool::new(1, 10).take().unwrap().set_len(11);
}

#[test]
fn a_buffer_outlives_its_pool() {
    let pool = Pool::new(1, 5);
    let mut buffer = pool.take().unwrap();
    drop(pool);
    buffer.copy_from_slice(b"still");
    assert_eq!(&*buffer, b"still");
}

#[test]
fn pools_of_nothing_are_no_special_case() {
    assert!(Pool::new(0, 100).take().is_none());
    let empty = Pool::new(2, 0);
    let (first, second) = (empty.take().unwrap(), empty.take().unwrap());
    assert!(first.is_empty() && second.is_empty() && empty.take().is_none());
}

/// Threads take buffers, mark every byte, pass some to another thread that drops them, and check that the
/// mark is intact. A buffer with two owners would show another's mark.
#[test]
fn threads_never_own_the_same_buffer() {
    const THREADS: u64 = 4;
    const ROUNDS: u64 = if cfg!(miri) { 50 } else { 20_000 };
    let pool = Pool::new(5, 48);
    let (sender, receiver) = mpsc::channel::<(PoolBuf, u64)>();
    let whole = |buffer: &PoolBuf, mark: u64| {
        buffer.as_chunks::<8>().0.iter().all(|word| *word == mark.to_ne_bytes())
    };
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let (pool, sender) = (pool.clone(), sender.clone());
            scope.spawn(move || {
                for round in 0..ROUNDS {
                    let Some(mut buffer) = pool.take() else {
                        thread::yield_now();
                        continue;
                    };
                    let mark = thread << 48 | round;
                    buffer.as_chunks_mut::<8>().0.fill(mark.to_ne_bytes());
                    assert!(whole(&buffer, mark));
                    if round % 3 == 0 {
                        sender.send((buffer, mark)).unwrap();
                    }
                }
            });
        }
        drop(sender);
        let mut receiver = receiver.into_iter().peekable();
        while receiver.peek().is_some() {
            let some = receiver.by_ref().take(2).map(|(buffer, mark)| {
                assert!(whole(&buffer, mark));
                buffer
            });
            PoolBuf::drop_all(some);
        }
    });
    assert_eq!(pool.available(), 5, "all came back");
    assert_eq!(core::iter::from_fn(|| pool.take()).collect::<Vec<_>>().len(), 5);
}

#[test]
fn buffers_dropped_together_come_back_to_their_pools() {
    let pools = [Pool::new(5, 8), Pool::new(4, 8)];
    let take = |number: usize| pools[number].take().unwrap();
    PoolBuf::drop_all([0, 0, 1, 0, 1, 1].map(take).into_iter());
    assert_eq!(pools.each_ref().map(Pool::available), [5, 4]);
    for pool in &pools {
        let all: Vec<_> = core::iter::from_fn(|| pool.take()).collect();
        let starts: BTreeSet<_> = all.iter().map(|buffer| buffer.as_ptr() as usize).collect();
        assert_eq!(starts.len(), all.len(), "each once");
    }
    PoolBuf::drop_all(core::iter::empty());
}

#[test]
fn a_default_buffer_is_empty_and_of_no_pool() {
    let mut nowhere = PoolBuf::default();
    nowhere.truncate(5);
    nowhere.set_len(0);
    assert_eq!((nowhere.len(), nowhere.capacity()), (0, 0));
    assert_eq!(nowhere.as_mut(), []);
}

#[test]
fn buffers_of_no_pool_are_dropped_together_with_others() {
    let pool = Pool::new(3, 64);
    let buffers: Vec<_> = core::iter::from_fn(|| pool.take()).collect();
    let with_gaps = buffers.into_iter().flat_map(|buffer| [PoolBuf::default(), buffer]);
    PoolBuf::drop_all(with_gaps.chain([PoolBuf::default()]));
    assert_eq!(pool.available(), 3);
    PoolBuf::drop_all([PoolBuf::default(), PoolBuf::default()].into_iter());
}

#[test]
fn of_buffers_dropped_together_the_last_is_taken_first() {
    let pool = Pool::new(8, 64);
    let some: Vec<_> = (0..3).map_while(|_| pool.take()).collect();
    let starts: Vec<_> = some.iter().map(|buffer| buffer.as_ptr()).collect();
    PoolBuf::drop_all(some.into_iter());
    let again: Vec<_> = (0..3).map_while(|_| pool.take()).collect();
    let again: Vec<_> = again.iter().map(|buffer| buffer.as_ptr()).collect();
    assert!(again.iter().rev().eq(&starts));
}

#[test]
fn buffers_dropped_together_free_the_memory_of_a_pool_that_is_gone() {
    for kept in 0..3 {
        let pool = Pool::new(3, 8);
        let mut buffers: Vec<_> = core::iter::from_fn(|| pool.take()).collect();
        drop(pool);
        let rest = buffers.split_off(kept);
        PoolBuf::drop_all(rest.into_iter());
        buffers.iter_mut().for_each(|buffer| buffer.fill(1));
        PoolBuf::drop_all(buffers.into_iter());
    }
}

/// Buffers that the iterator yielded before the panic return to the pool.
#[test]
fn buffers_dropped_together_come_back_despite_a_panic() {
    let pool = Pool::new(3, 8);
    let next = || pool.take().or_else(|| panic!("no buffer is left"));
    let ended = std::panic::catch_unwind(core::panic::AssertUnwindSafe(|| {
        PoolBuf::drop_all(core::iter::from_fn(next));
    }));
    assert!(ended.is_err());
    assert_eq!(pool.available(), 3);
}

/// Returns which event frees the memory if `taken` buffers are missing when the last handle is dropped:
/// `None` for the handle, `Some(n)` for the nth buffer that returns.
fn freed_by(buffers: u32, taken: usize) -> Vec<Option<usize>> {
    let (top, below) = (stack::full_top(buffers), stack::full_below(buffers).collect::<Vec<_>>());
    let stack = IndexStack { top: &top, below: &below };
    let out: Vec<_> = (0..taken).map(|_| stack.pop().unwrap()).collect();
    let handle = stack.close().then_some(None);
    let returned = out.iter().enumerate().filter(|(_, index)| stack.push(Chain::of(**index)));
    handle.into_iter().chain(returned.map(|(nth, _)| Some(nth))).collect()
}

#[test]
fn the_last_to_end_frees_the_memory() {
    assert_eq!(freed_by(0, 0), [None]);
    assert_eq!(freed_by(3, 0), [None]);
    assert_eq!(freed_by(3, 1), [Some(0)]);
    assert_eq!(freed_by(3, 2), [Some(1)]);
    assert_eq!(freed_by(3, 3), [Some(2)]);
}

/// The handle is dropped while threads return all buffers. In any order, one of them frees the memory, and
/// all earlier writes of the others are visible to it.
#[test]
fn one_of_all_threads_frees_the_memory() {
    const THREADS: u32 = 3;
    const EACH: u32 = 4;
    const ROUNDS: usize = if cfg!(miri) { 20 } else { 3_000 };
    for _ in 0..ROUNDS {
        let top = stack::full_top(THREADS * EACH);
        let below: Vec<_> = stack::full_below(THREADS * EACH).collect();
        let stack = IndexStack { top: &top, below: &below };
        let (written, freed) = (AtomicU32::new(0), AtomicU32::new(0));
        let end = |is_last: bool| {
            if is_last {
                assert_eq!(written.load(Ordering::Relaxed), THREADS * EACH);
                freed.fetch_add(1, Ordering::Relaxed);
            }
        };
        let return_some = |indices: Vec<u32>| {
            for index in indices {
                written.fetch_add(1, Ordering::Relaxed);
                end(stack.push(Chain::of(index)));
            }
        };
        let return_together = |indices: Vec<u32>| {
            written.fetch_add(EACH, Ordering::Relaxed);
            let mut chain = Chain::of(indices[0]);
            indices[1..].iter().for_each(|index| stack.add(&mut chain, *index));
            end(stack.push(chain));
        };
        thread::scope(|scope| {
            for thread in 0..THREADS {
                let indices: Vec<_> = (0..EACH).map(|_| stack.pop().unwrap()).collect();
                match thread {
                    0 => scope.spawn(move || return_together(indices)),
                    _ => scope.spawn(move || return_some(indices)),
                };
            }
            end(stack.close());
        });
        assert_eq!(freed.load(Ordering::Relaxed), 1);
    }
}

/// One thread drops handles while others drop buffers. Under Miri this detects memory that is freed early,
/// twice or never.
#[test]
fn threads_return_buffers_while_the_pool_ends() {
    const ROUNDS: u8 = if cfg!(miri) { 20 } else { 200 };
    for round in 0..ROUNDS {
        let pool = Pool::new(6, 8);
        let buffers: Vec<_> = (0..6).map_while(|_| pool.take()).collect();
        let mut buffers = buffers.into_iter();
        thread::scope(|scope| {
            for _ in 0..3 {
                let some: Vec<_> = buffers.by_ref().take(2).collect();
                scope.spawn(move || {
                    let written = some.into_iter().map(|mut buffer| {
                        buffer.fill(round);
                        assert_eq!(*buffer, [round; 8]);
                        buffer
                    });
                    match round % 2 {
                        0 => PoolBuf::drop_all(written),
                        _ => written.for_each(drop),
                    }
                });
            }
            let other = pool.clone();
            scope.spawn(move || drop((other.take(), other)));
            drop(pool);
        });
    }
}

/// The largest allocation of a 32-bit platform.
const MOST_BYTES_32: u64 = i32::MAX as u64;

#[test]
fn lines_beyond_the_largest_allocation_are_refused_on_32_bits() {
    assert_eq!(lines(4, 100, MOST_BYTES_32), Some((3, 12)));
    // For 65 buffers of 2^26 lines, the product wraps around to 2^26 in 32 bits.
    let wrapping = lines(65, u32::MAX - 64, MOST_BYTES_32);
    assert_eq!(wrapping, None);
    assert_eq!(lines(1 << 25, 63, MOST_BYTES_32), None, "2 GiB");
    assert_eq!(lines((1 << 25) - 1, 63, MOST_BYTES_32), Some((1, (1 << 25) - 1)));
}

#[test]
#[should_panic(expected = "no allocation can be so large")]
fn a_pool_that_no_address_space_holds_is_refused() {
    let _ = Pool::new((u32::MAX - 1) as usize, (u32::MAX - 1) as usize);
}
