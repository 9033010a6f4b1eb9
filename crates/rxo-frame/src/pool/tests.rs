use std::collections::BTreeSet;
use std::sync::mpsc;
use std::thread;
use std::vec::Vec;

use super::*;

#[test]
fn every_buffer_is_taken_once_and_comes_back_on_drop() {
    let pool = Pool::new(3, 100);
    let taken: Vec<_> = core::iter::from_fn(|| pool.take()).collect();
    assert_eq!((taken.len(), pool.available()), (3, 0));
    let starts: BTreeSet<_> = taken.iter().map(|buffer| buffer.as_ptr() as usize).collect();
    assert_eq!(starts.len(), 3, "each has memory of its own");
    assert!(starts.iter().all(|start| start % LINE_BYTES == 0), "on a line of its own");
    drop(taken);
    assert_eq!(pool.available(), 3);
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

/// Threads take buffers, mark every byte, pass some to another thread that drops them, and check
/// that the mark is whole. If a buffer had two owners, it would show another's mark.
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
        for (buffer, mark) in receiver {
            assert!(whole(&buffer, mark));
        }
    });
    assert_eq!(pool.available(), 5, "all came back");
    assert_eq!(core::iter::from_fn(|| pool.take()).collect::<Vec<_>>().len(), 5);
}

/// The largest allocation of a 32-bit platform.
const MOST_BYTES_32: u64 = i32::MAX as u64;

#[test]
fn lines_beyond_the_largest_allocation_are_refused_on_32_bits() {
    assert_eq!(lines(4, 100, MOST_BYTES_32), Some((3, 12)));
    // 65 buffers of 2^26 lines: in 32 bits the product wraps to 2^26.
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
