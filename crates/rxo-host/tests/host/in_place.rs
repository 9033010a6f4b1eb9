//! Reading in place: an application reads the buffers that the device has written.

use std::io::{ErrorKind, IoSlice, Write};
use std::net::Shutdown;

use rxo_device::MemoryOptions;
use rxo_host::TcpStream;

use crate::world::{World, drain, fill, options, pattern};

fn all(pieces: &[IoSlice<'_>]) -> usize {
    pieces.iter().map(|piece| piece.len()).sum()
}

/// Consumes at most `most` bytes and returns them; `None` if there is no data yet.
fn some(stream: &TcpStream, most: usize) -> Option<Vec<u8>> {
    let mut seen = Vec::new();
    let outcome = stream.read_in_place(|pieces| {
        assert!((1..=64).contains(&pieces.len()), "{} pieces", pieces.len());
        assert!(pieces.iter().all(|piece| !piece.is_empty()));
        seen = pieces.iter().flat_map(|piece| piece.iter().copied()).take(most).collect();
        seen.len()
    });
    match outcome {
        Ok(consumed) => {
            assert_eq!(consumed, seen.len());
            Some(seen)
        }
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::WouldBlock);
            None
        }
    }
}

/// After an application has consumed any part of a slice, the next call continues after this part, even if
/// ordinary reads come in between.
#[test]
fn what_is_consumed_in_parts_is_whole() {
    let mut world = World::with(MemoryOptions { gso_bytes: 0, ..options() }, |_| {});
    let listener = world.listen(1);
    let (stream, accepted) = world.connected(&listener);
    let data = pattern(1_000_000);
    let (mut sent, mut got) = (0, Vec::new());
    for step in 0..100_000 {
        sent += fill(&stream, &data[sent..]);
        world.settle();
        let most = [1, 1_400, 40_000, usize::MAX][step % 4];
        got.extend(some(&accepted, most).unwrap_or_default());
        if step % 7 == 0 {
            got.extend(drain(&accepted).unwrap().0);
        }
        if got.len() == data.len() {
            break;
        }
    }
    assert!(got == data, "{} of {}", got.len(), data.len());
}

#[test]
fn consuming_opens_the_window() {
    let mut world = World::new();
    let listener = world.listen(1);
    let (stream, accepted) = world.connected(&listener);
    let data = pattern(3_000_000);
    let (mut sent, mut got) = (0, 0);
    while got < data.len() {
        sent += fill(&stream, &data[sent..]);
        world.settle();
        let read = accepted.read_in_place(all).unwrap();
        assert!(read > 0, "{got} bytes, then nothing");
        got += read;
    }
}

#[test]
fn only_what_was_shown_is_consumed() {
    let mut world = World::new();
    let listener = world.listen(1);
    let (mut stream, accepted) = world.connected(&listener);
    stream.write_all(b"in place").unwrap();
    world.settle();
    assert_eq!(accepted.read_in_place(|_| 0).unwrap(), 0, "looking consumes nothing");
    assert_eq!(accepted.read_in_place(|_| usize::MAX).unwrap(), 8);
    let error = accepted.read_in_place(|_| panic!("there is nothing")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::WouldBlock);
}

#[test]
fn nothing_is_shown_at_the_end() {
    let mut world = World::new();
    let listener = world.listen(1);
    let (mut stream, accepted) = world.connected(&listener);
    stream.write_all(b"the end").unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    world.settle();
    assert_eq!(some(&accepted, usize::MAX).unwrap(), b"the end");
    assert_eq!(accepted.read_in_place(|_| panic!("there is nothing")).unwrap(), 0);
    accepted.shutdown(Shutdown::Read).unwrap();
    assert_eq!(accepted.read_in_place(|_| panic!("there is nothing")).unwrap(), 0);
}
