//! Streams of any length in which each byte follows from its offset.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::thread;

use rxo::host::Handle;
use rxo_testbed::Namespace;

/// The operations that rxo's streams and the system's streams have in common.
pub(crate) trait Stream: Send + Sync {
    fn read(&self, to: &mut [u8]) -> usize;
    fn write_all(&self, from: &[u8]);
    fn end(&self);
}

impl Stream for TcpStream {
    fn read(&self, to: &mut [u8]) -> usize {
        Read::read(&mut &*self, to).unwrap()
    }

    fn write_all(&self, from: &[u8]) {
        Write::write_all(&mut &*self, from).unwrap();
    }

    fn end(&self) {
        self.shutdown(Shutdown::Write).unwrap();
    }
}

impl Stream for rxo::host::TcpStream {
    fn read(&self, to: &mut [u8]) -> usize {
        Read::read(&mut &*self, to).unwrap()
    }

    fn write_all(&self, from: &[u8]) {
        Write::write_all(&mut &*self, from).unwrap();
    }

    fn end(&self) {
        self.shutdown(Shutdown::Write).unwrap();
    }
}

/// Fills the block that begins at offset `at`. Its bytes differ from those of all other blocks, and for each
/// `key`.
fn fill(block: &mut [u8], key: u64, at: u64) {
    for (index, word) in block.chunks_mut(8).enumerate() {
        let place = (at + index as u64 * 8) ^ key << 48;
        let mixed = place.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mixed = (mixed ^ mixed >> 29).to_le_bytes();
        word.copy_from_slice(&mixed[..word.len()]);
    }
}

/// Returns the first bytes of the stream with `key`.
pub(crate) fn first_of(key: u64) -> [u8; 8] {
    let mut first = [0; 8];
    fill(&mut first, key, 0);
    first
}

const BLOCK: usize = 1 << 16;

pub(crate) fn send(stream: &dyn Stream, key: u64, bytes: u64) {
    let mut block = vec![0; BLOCK];
    let mut at = 0;
    while at < bytes {
        let length = (bytes - at).min(BLOCK as u64) as usize;
        fill(&mut block[..length], key, at);
        stream.write_all(&block[..length]);
        at += length as u64;
    }
    stream.end();
}

/// Reads to the end of the stream, and asserts that every byte is right.
pub(crate) fn check(stream: &dyn Stream, key: u64, bytes: u64) {
    let (mut block, mut right) = (vec![0; BLOCK], vec![0; BLOCK]);
    let mut at = 0;
    loop {
        let mut length = 0;
        while length < BLOCK {
            match stream.read(&mut block[length..]) {
                0 => break,
                read => length += read,
            }
        }
        fill(&mut right[..length], key, at);
        assert!(block[..length] == right[..length], "a wrong byte after {at}");
        at += length as u64;
        if length < BLOCK {
            break;
        }
    }
    assert_eq!(at, bytes, "the stream's end");
}

/// Sends one stream in each direction between `one` and `other`, at the same time.
pub(crate) fn exchange(one: &dyn Stream, other: &dyn Stream, key: u64, bytes: u64) {
    thread::scope(|scope| {
        scope.spawn(|| send(one, key, bytes));
        scope.spawn(|| send(other, key + 1, bytes));
        scope.spawn(|| check(one, key + 1, bytes));
        check(other, key, bytes);
    });
}

/// Connects the host to Linux.
pub(crate) fn by_host(
    peer: &Namespace,
    host: &Handle,
    address: SocketAddr,
) -> (rxo::host::TcpStream, TcpStream) {
    let listener = peer.run(|| TcpListener::bind(address).unwrap()).unwrap();
    let stream = host.connect(listener.local_addr().unwrap()).unwrap();
    (stream, listener.accept().unwrap().0)
}

/// Connects Linux to the host.
pub(crate) fn by_peer(
    peer: &Namespace,
    host: &Handle,
    address: SocketAddr,
) -> (rxo::host::TcpStream, TcpStream) {
    let listener = host.listen(address, 16).unwrap();
    let stream = peer.run(|| TcpStream::connect(address).unwrap()).unwrap();
    (listener.accept().unwrap().0, stream)
}
