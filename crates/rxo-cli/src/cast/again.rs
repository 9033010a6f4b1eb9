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
use std::time::{Duration, Instant};

use rxo_driver::wait;
use rxo_host::{Handle, TcpListener, TcpStream};

use super::manifest::{MOST_FILE_BYTES, Manifest};
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

/// A receiver's requests for blocks of the sender. Each request has a connection of its own: an idle connection would
/// take a place from other receivers until the sender closes it.
#[derive(Debug)]
pub(super) struct Asker {
    handle: Handle,
    sender: SocketAddr,
    /// The time for which a failed request is repeated.
    patience: Duration,
}

impl Asker {
    /// Creates an asker for the cast of the sender at `cast`.
    pub(super) fn new(handle: Handle, cast: SocketAddr) -> Self {
        Self { handle, sender: address(cast), patience: PEER_TIMEOUT }
    }

    /// Requests the manifest from the sender.
    ///
    /// # Errors
    /// If the sender does not answer, or the answer is no manifest.
    pub(super) fn manifest(&self) -> Result<Manifest, StreamError> {
        let read = |stream| match Manifest::read(&mut io::BufReader::new(stream), MOST_FILE_BYTES) {
            Err(StreamError::Short) => Err(io::ErrorKind::UnexpectedEof.into()),
            Err(StreamError::Broken(error)) => Err(error),
            read => Ok(read),
        };
        self.until_answered(MANIFEST, read).map_err(StreamError::Broken)?
    }

    /// Requests block `index` from the sender, and reads it into `block`, which has the length of the block.
    ///
    /// # Errors
    /// If the sender does not answer.
    pub(super) fn block(&self, index: u64, block: &mut [u8]) -> io::Result<()> {
        self.until_answered(index, |mut stream| stream.read_exact(block))
    }

    fn ask(&self, number: u64) -> io::Result<TcpStream> {
        let mut stream = self.handle.connect_timeout(self.sender, PEER_TIMEOUT)?;
        stream.set_read_timeout(Some(PEER_TIMEOUT))?;
        stream.write_all(&number.to_be_bytes())?;
        Ok(stream)
    }

    /// Repeats the request `number` until `read` gets the answer, at most for the asker's patience: the sender closes
    /// connections beyond [`MOST_AT_ONCE`], and all receivers may ask for the same block at once.
    fn until_answered<T>(
        &self,
        number: u64,
        mut read: impl FnMut(TcpStream) -> io::Result<T>,
    ) -> io::Result<T> {
        use io::ErrorKind::{ConnectionRefused, UnexpectedEof};
        let begun = Instant::now();
        loop {
            match self.ask(number).and_then(&mut read) {
                // Nothing listens there.
                Err(error) if error.kind() == ConnectionRefused => return Err(error),
                Err(_) if begun.elapsed() < self.patience => wait::pause(BETWEEN_TRIES),
                Err(error) if error.kind() == UnexpectedEof => {
                    return Err(io::Error::new(UnexpectedEof, "it closes the connection"));
                }
                answer => return answer,
            }
        }
    }
}

/// The number that asks for the manifest.
pub(super) const MANIFEST: u64 = u64::MAX;
const MOST_AT_ONCE: usize = 64;
/// The time after which a peer that sends nothing counts as gone.
const PEER_TIMEOUT: Duration = Duration::from_secs(10);
const BETWEEN_TRIES: Duration = Duration::from_millis(50);

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use rxo_device::{MemoryLink, MemoryOptions};
    use rxo_frame::{Frame, LinkKind};
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
            let begun = Instant::now();
            while !ended.load(Ordering::Relaxed) {
                let now = rxo_frame::Instant::from_micros(1 + begun.elapsed().as_micros() as u64);
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

    /// Returns the source of a file with the content `file`. `name` must be unique among the tests.
    fn source(name: &str, file: &[u8]) -> Arc<Source> {
        let path = std::env::temp_dir().join(format!("rxo-{name}-{}.img", std::process::id()));
        std::fs::write(&path, file).unwrap();
        let hashing = Original::open(&path, false).unwrap().begin_hashing().unwrap();
        std::fs::remove_file(&path).unwrap();
        Outgoing::after(hashing).unwrap().source
    }

    /// A forged segment damages the same block at all receivers. Those that have asked keep no place, and the first
    /// may ask again.
    #[test]
    fn more_receivers_than_places_get_the_same_block() {
        let file = vec![7; 5_000];
        let source = source("places", &file);
        on_two_hosts(|sender, receiver| {
            let cast = "10.0.0.1:7000".parse().unwrap();
            answer(&sender, cast, source).unwrap();
            let askers: Vec<_> =
                (0..=MOST_AT_ONCE).map(|_| Asker::new(receiver.clone(), cast)).collect();
            for asker in askers.iter().chain(&askers[..1]) {
                let mut block = [0; 5_000];
                asker.block(0, &mut block).unwrap();
                assert_eq!(block[..], file);
            }
        });
    }

    /// The stream of the group has damaged blocks and ends early; the receiver gets the file nevertheless.
    #[test]
    fn damaged_blocks_are_had_from_the_sender() {
        let file: Vec<u8> = (0..1_000_000_u32).map(|at| (at ^ at >> 8) as u8).collect();
        let source = source("again", &file);
        on_two_hosts(|sender, receiver| {
            let cast = "10.0.0.1:7000".parse().unwrap();
            answer(&sender, cast, source).unwrap();
            let asker = Asker { patience: Duration::ZERO, ..Asker::new(receiver, cast) };
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
