//! Requests for blocks of a cast's file: a receiver asks the sender again for each block whose content from
//! the group differs from its hash.
//!
//! This module is separate from the cast: a receiver asks over an ordinary connection to the port after the
//! cast's, whose sequence numbers no other receiver knows. A request is the number of a block, 8 bytes big
//! endian; the answer is the block. The number [`MANIFEST`] asks for the manifest.

use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use rxo_host::{Handle, TcpListener, TcpStream};

use super::manifest::Manifest;
use super::outgoing::Source;
use super::stream::StreamError;

/// Returns the address at which a sender answers requests for blocks: the cast's address `cast` with the next
/// port.
pub(super) fn address(cast: SocketAddr) -> SocketAddr {
    SocketAddr::new(cast.ip(), cast.port().wrapping_add(1))
}

/// Answers requests for blocks of `source` until the host ends. Each connection has a thread of its own, at most
/// [`MOST_AT_ONCE`]; further connections are closed.
///
/// # Errors
/// If the port is in use, or a thread cannot be started.
pub(super) fn answer(handle: &Handle, cast: SocketAddr, source: Arc<Source>) -> io::Result<()> {
    let listener = handle.listen(address(cast), MOST_AT_ONCE)?;
    thread::Builder::new().name("blocks".into()).spawn(move || accept(&listener, &source))?;
    Ok(())
}

fn accept(listener: &TcpListener, source: &Arc<Source>) {
    let open = Arc::new(AtomicUsize::new(0));
    while let Ok((stream, _)) = listener.accept() {
        if open.fetch_add(1, Ordering::Relaxed) >= MOST_AT_ONCE {
            open.fetch_sub(1, Ordering::Relaxed);
            continue;
        }
        let (open, source) = (Arc::clone(&open), Arc::clone(source));
        let serve = move || {
            // The receiver has gone, or asks for a block that does not exist. It gets no answer.
            let _ = serve(stream, &source);
            open.fetch_sub(1, Ordering::Relaxed);
        };
        if thread::Builder::new().name("block".into()).spawn(serve).is_err() {
            return;
        }
    }
}

fn serve(mut stream: TcpStream, source: &Source) -> io::Result<()> {
    stream.set_read_timeout(Some(PEER_TIMEOUT))?;
    stream.set_write_timeout(Some(PEER_TIMEOUT))?;
    let mut request = [0; 8];
    loop {
        stream.read_exact(&mut request)?;
        stream.write_all(&source.answer(u64::from_be_bytes(request))?)?;
    }
}

/// A receiver's connection to the sender for requests of blocks, opened at the first request.
#[derive(Debug)]
pub(super) struct Asker {
    handle: Handle,
    sender: SocketAddr,
    stream: Option<TcpStream>,
}

impl Asker {
    /// Creates an asker for the cast of the sender at `cast`.
    pub(super) fn new(handle: Handle, cast: SocketAddr) -> Self {
        Self { handle, sender: address(cast), stream: None }
    }

    /// Requests the manifest from the sender.
    ///
    /// # Errors
    /// If the sender does not answer, or the answer is no manifest.
    pub(super) fn manifest(&mut self) -> Result<Manifest, StreamError> {
        let stream = self.ask(MANIFEST).map_err(StreamError::Broken)?;
        Manifest::read(&mut io::BufReader::new(stream))
    }

    /// Requests block `index` from the sender, and reads it into `block`, which has the length of the block.
    ///
    /// # Errors
    /// If the sender does not answer.
    pub(super) fn block(&mut self, index: u64, block: &mut [u8]) -> io::Result<()> {
        self.ask(index)?.read_exact(block)
    }

    fn ask(&mut self, number: u64) -> io::Result<&mut TcpStream> {
        let stream = match self.stream.take() {
            Some(stream) => stream,
            None => {
                let stream = self.handle.connect_timeout(self.sender, PEER_TIMEOUT)?;
                stream.set_read_timeout(Some(PEER_TIMEOUT))?;
                stream
            }
        };
        let stream = self.stream.insert(stream);
        stream.write_all(&number.to_be_bytes())?;
        Ok(stream)
    }
}

/// The number that asks for the manifest.
pub(super) const MANIFEST: u64 = u64::MAX;
const MOST_AT_ONCE: usize = 64;
/// The time after which a peer that sends nothing counts as gone.
const PEER_TIMEOUT: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use rxo_device::{MemoryLink, MemoryOptions};
    use rxo_frame::{Frame, Instant, LinkKind};
    use rxo_host::{Host, HostConfig};

    use super::super::outgoing::{Original, Outgoing};
    use super::super::stream;
    use super::*;

    /// Runs two hosts with a link between them until `is_over` is set. Passes their handles to `act`.
    fn on_two_hosts(act: impl FnOnce(Handle, Handle)) {
        let options = MemoryOptions { link: LinkKind::RawIp, ..MemoryOptions::default() };
        let links = [(); 4].map(|()| MemoryLink::new(options));
        let [to_one, from_one, to_other, from_other] = &links;
        let config = |ip: &str| HostConfig::new(vec![ip.parse().unwrap()], [1, 2]);
        let mut one = Host::new(to_one.source(), from_one.sink(), config("10.0.0.1/24")).unwrap();
        let mut other =
            Host::new(to_other.source(), from_other.sink(), config("10.0.0.2/24")).unwrap();
        let handles = (one.handle(), other.handle());
        let is_over = Arc::new(AtomicBool::new(false));
        let ended = Arc::clone(&is_over);
        let [to_one, from_one, to_other, from_other] = links.clone();
        let running = thread::spawn(move || {
            let begun = std::time::Instant::now();
            while !ended.load(Ordering::Relaxed) {
                let now = Instant::from_micros(1 + begun.elapsed().as_micros() as u64);
                for (host, from, to) in
                    [(&mut one, &from_one, &to_other), (&mut other, &from_other, &to_one)]
                {
                    host.turn(now).unwrap();
                    for sent in from.take_all() {
                        let frame = Frame::new(sent.bytes, now);
                        to.push(&Frame { checksum: sent.offload.checksum, ..frame });
                    }
                }
                thread::yield_now();
            }
        });
        act(handles.0, handles.1);
        is_over.store(true, Ordering::Relaxed);
        running.join().unwrap();
    }

    /// The stream of the group has damaged blocks and ends early; the receiver gets the file nevertheless.
    #[test]
    fn damaged_blocks_are_had_from_the_sender() {
        let path = std::env::temp_dir().join(format!("rxo-again-{}.img", std::process::id()));
        let file: Vec<u8> = (0..1_000_000_u32).map(|at| (at ^ at >> 8) as u8).collect();
        std::fs::write(&path, &file).unwrap();
        let hashing = Original::open(&path, false).unwrap().begin_hashing().unwrap();
        let source = Outgoing::after(hashing).unwrap().source;
        std::fs::remove_file(&path).unwrap();
        on_two_hosts(|sender, receiver| {
            let cast = "10.0.0.1:7000".parse().unwrap();
            answer(&sender, cast, source).unwrap();
            let mut asker = Asker::new(receiver, cast);
            let manifest = asker.manifest().unwrap();
            let mut damaged = file.clone();
            damaged[5] ^= 1;
            damaged[300_000] ^= 1;
            damaged.truncate(900_000);
            let mut got = Vec::new();
            let again = |index: u64, block: &mut [u8]| asker.block(index, block);
            let copied =
                stream::copy(&mut &damaged[..], &mut got, &manifest, again, |_| {}).unwrap();
            assert_eq!((copied.again, got == file), (3, true));
            assert!(asker.block(99, &mut [0]).is_err(), "there is no such block");
        });
    }
}
