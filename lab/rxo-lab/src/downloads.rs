//! Linux clients that download whole files in random order, repeatedly.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail, ensure};
use rxo_testbed::Namespace;

use crate::files;

/// Number of clients, and the files that they request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    pub(crate) clients: usize,
    /// The number of files, which are named by their numbers.
    pub(crate) files: u32,
    /// Size of each file, in bytes.
    pub(crate) file_bytes: u64,
    /// The core of the clients; `None` lets the scheduler choose.
    pub(crate) core: Option<usize>,
}

/// The progress of all clients.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Progress {
    /// File bytes received.
    pub(crate) bytes: u64,
    /// Files received completely.
    pub(crate) files: u64,
    /// Clients that have received data.
    pub(crate) served: u64,
}

/// The client threads. Dropping this ends them.
pub(crate) struct Clients {
    shared: Arc<Shared>,
    /// The thread that starts all clients and waits for them.
    threads: Option<JoinHandle<rxo_testbed::Result<()>>>,
}

#[derive(Debug, Default)]
struct Shared {
    bytes: AtomicU64,
    files: AtomicU64,
    served: AtomicU64,
    stop: AtomicBool,
    /// The error of the first client that failed.
    failure: Mutex<Option<String>>,
}

impl Clients {
    /// Starts clients of `server` in `from`.
    pub(crate) fn start(from: &Namespace, server: SocketAddr, load: Load) -> Result<Self> {
        let shared = Arc::new(Shared::default());
        let seen = Arc::clone(&shared);
        let threads = from.spawn("rxo-clients", move || {
            if let Some(Err(why)) = load.core.map(rxo_testbed::pin_to_core) {
                seen.fail(&why.into());
            }
            // Scoped threads inherit this thread's namespace and core.
            thread::scope(|scope| {
                for number in 0..load.clients as u64 {
                    let seen = &seen;
                    let work = move || {
                        let outcome = take_files(number, server, load, seen);
                        outcome.unwrap_or_else(|why| seen.fail(&why));
                    };
                    let started = thread::Builder::new().stack_size(STACK_BYTES);
                    if let Err(why) = started.spawn_scoped(scope, work) {
                        seen.fail(&why.into());
                    }
                }
            });
        })?;
        Ok(Self { shared, threads: Some(threads) })
    }

    /// Returns the progress of the clients.
    ///
    /// # Errors
    /// If a client has failed.
    pub(crate) fn progress(&self) -> Result<Progress> {
        self.shared.check()?;
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let Shared { bytes, files, served, .. } = &*self.shared;
        Ok(Progress { bytes: of(bytes), files: of(files), served: of(served) })
    }

    /// Ends the clients. Returns their progress.
    pub(crate) fn finish(mut self) -> Result<Progress> {
        self.end();
        self.progress()
    }

    fn end(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        // A client's failure is already recorded in `failure`, so the result is ignored.
        _ = self.threads.take().map(JoinHandle::join);
    }
}

impl Drop for Clients {
    fn drop(&mut self) {
        self.end();
    }
}

impl Shared {
    fn fail(&self, why: &anyhow::Error) {
        let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        failure.get_or_insert_with(|| format!("{why:#}"));
    }

    fn check(&self) -> Result<()> {
        let failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        failure.as_ref().map_or(Ok(()), |why| Err(anyhow!("a client: {why}")))
    }

    fn is_over(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

fn take_files(number: u64, server: SocketAddr, load: Load, shared: &Shared) -> Result<()> {
    let mut stream = TcpStream::connect_timeout(&server, TIMEOUT)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    let (mut random, mut buffer) = (number + 1, vec![0; READ_BYTES]);
    for request in 0.. {
        // A linear congruential generator gives each client another order of files.
        random =
            random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let file = ((random >> 33) % u64::from(load.files)) as u32;
        write!(stream, "GET /{file} HTTP/1.1\r\nHost: server\r\n\r\n")?;
        if !take_file(&mut stream, (file, load.file_bytes), &mut buffer, shared)? {
            break;
        }
        shared.files.fetch_add(1, Ordering::Relaxed);
        shared.served.fetch_add(u64::from(request == 0), Ordering::Relaxed);
    }
    Ok(())
}

/// Downloads one file. Returns `true` if the file is complete, `false` if the clients are being stopped.
fn take_file(
    stream: &mut TcpStream,
    (file, file_bytes): (u32, u64),
    buffer: &mut [u8],
    shared: &Shared,
) -> Result<bool> {
    let (mut head, mut at) = (Vec::new(), 0);
    while at < file_bytes {
        let count = stream.read(buffer).context("no answer")?;
        ensure!(count > 0, "the server ended the connection");
        if shared.is_over() {
            return Ok(false);
        }
        let mut bytes = &buffer[..count];
        if !head.ends_with(END) {
            head.extend_from_slice(bytes);
            let Some(end) = head.windows(END.len()).position(|part| part == END) else { continue };
            let behind = head.len() - end - END.len();
            head.truncate(end + END.len());
            ensure!(head.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&head));
            bytes = &bytes[count - behind..];
        }
        if !files::are_right(file, at, bytes) {
            bail!("file {file} has wrong bytes from {at} on");
        }
        at += bytes.len() as u64;
        shared.bytes.fetch_add(bytes.len() as u64, Ordering::Relaxed);
    }
    ensure!(at == file_bytes, "file {file} is too long");
    Ok(true)
}

/// The end of an HTTP response head.
const END: &[u8] = b"\r\n\r\n";
const READ_BYTES: usize = 64 << 10;
/// Stack of a client's thread, small because there are hundreds.
const STACK_BYTES: usize = 128 << 10;
const TIMEOUT: Duration = Duration::from_secs(30);
