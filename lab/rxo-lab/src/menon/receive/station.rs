//! The receiving host of a measurement: rxo's stack in the lab's host namespace, and the threads that read or
//! echo its connections, all on the receiver's core.

use std::io::{ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use rxo_host::{HostCounters, TcpListener, TcpStream};
use rxo_testbed::Lab;
use rxo_testbed::traffic::{OutgoingReport, Pattern};

use super::stack::Case;
use super::worker::Worker;

/// A running host whose connections are served.
pub(super) struct Station {
    pub(super) worker: Worker,
    shared: Arc<Shared>,
    address: SocketAddr,
}

/// The work of a connection's thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Service {
    /// Reads everything, and compares it with the sent data.
    Read,
    /// Sends each byte back.
    Echo,
}

/// State that the reading threads share.
#[derive(Debug, Default)]
struct Shared {
    received_bytes: AtomicU64,
    /// Set during the measured time, in which only a part of the reads is compared.
    is_measured: AtomicBool,
    core: Option<usize>,
    threads: Mutex<Vec<u32>>,
    /// Port and byte count of each stream that has ended, or its error.
    ended: Mutex<Vec<Result<(u16, u64), String>>>,
}

impl Station {
    /// Starts the host, which starts a thread for each incoming connection.
    ///
    /// # Errors
    /// If the device cannot be opened or the host cannot be made.
    pub(super) fn start(
        lab: &Lab,
        case: Case,
        service: Service,
        core: Option<usize>,
    ) -> Result<Self> {
        let worker = Worker::start(lab, case, core, service == Service::Read)?;
        let address = SocketAddr::new(lab.host_address(), PORT);
        let listener = worker.host.handle().listen(address, BACKLOG)?;
        let shared = Arc::new(Shared { core, ..Shared::default() });
        let accepting = Arc::clone(&shared);
        // The thread ends with the host, so nothing joins it.
        let accept = move || accept_all(&listener, &accepting, service);
        thread::Builder::new().name("accept".to_owned()).spawn(accept)?;
        Ok(Self { worker, shared, address })
    }

    pub(super) const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Waits for `connections` connections. Returns the ids of their threads.
    ///
    /// # Errors
    /// If they do not arrive in time.
    pub(super) fn threads(&self, connections: usize) -> Result<Vec<u32>> {
        wait_until(|| locked(&self.shared.threads).len() >= connections)?;
        Ok(locked(&self.shared.threads).clone())
    }

    pub(super) fn received_bytes(&self) -> u64 {
        self.shared.received_bytes.load(Ordering::Relaxed)
    }

    /// Sets whether reads are part of a measurement now.
    pub(super) fn set_measured(&self, is_measured: bool) {
        self.shared.is_measured.store(is_measured, Ordering::Relaxed);
    }

    /// Waits until all sent streams have ended, compares their byte counts, and stops the host.
    ///
    /// # Errors
    /// If data was lost or wrong.
    pub(super) fn finish(self, sent: &OutgoingReport) -> Result<HostCounters> {
        wait_until(|| locked(&self.shared.ended).len() >= sent.connections.len())?;
        let ended = std::mem::take(&mut *locked(&self.shared.ended));
        for outcome in ended {
            let (port, bytes) = outcome.map_err(anyhow::Error::msg)?;
            if !sent.connections.contains(&(port, bytes)) {
                bail!(
                    "the stream from port {port} ended after {bytes} bytes, not where it was ended"
                );
            }
        }
        self.worker.finish()
    }
}

fn accept_all(listener: &TcpListener, shared: &Arc<Shared>, service: Service) {
    while let Ok((stream, peer)) = listener.accept() {
        let own = Arc::clone(shared);
        let work = move || own.serve(stream, peer.port(), service);
        let thread = thread::Builder::new().name("application".into()).stack_size(STACK_BYTES);
        if let Err(error) = thread.spawn(work) {
            locked(&shared.ended).push(Err(format!("a thread for a connection: {error}")));
        }
    }
}

impl Shared {
    fn serve(&self, stream: TcpStream, port: u16, service: Service) {
        let pinned = self.core.map_or(Ok(()), rxo_testbed::pin_to_core);
        locked(&self.threads).push(rxo_testbed::thread_id());
        let outcome = pinned.map_err(|error| error.to_string()).and_then(|()| match service {
            Service::Read => self.read_all(stream, port),
            Service::Echo => echo(stream).map(|bytes| (port, bytes)),
        });
        locked(&self.ended).push(outcome);
    }

    fn read_all(&self, mut stream: TcpStream, port: u16) -> Result<(u16, u64), String> {
        let pattern = Pattern::of_port(port);
        let mut buffer = vec![0; READ_BYTES];
        let (mut bytes, mut reads) = (0, 0_u32);
        loop {
            let count = match stream.read(&mut buffer) {
                Ok(0) => return Ok((port, bytes)),
                Ok(count) => count,
                Err(error) => return Err(format!("the stream from port {port} broke: {error}")),
            };
            reads = reads.wrapping_add(1);
            let compares = !self.is_measured.load(Ordering::Relaxed) || reads % COMPARED == 0;
            if compares && pattern.check(bytes, &buffer[..count]).is_err() {
                return Err(format!("the stream from port {port} has wrong bytes after {bytes}"));
            }
            bytes += count as u64;
            self.received_bytes.fetch_add(count as u64, Ordering::Relaxed);
        }
    }
}

fn echo(mut stream: TcpStream) -> Result<u64, String> {
    let wrong = |error: std::io::Error| format!("the exchange broke: {error}");
    stream.set_nodelay(true).map_err(wrong)?;
    let (mut buffer, mut bytes) = ([0; 64], 0);
    loop {
        match stream.read(&mut buffer) {
            Ok(0) => return Ok(bytes),
            Ok(count) => {
                stream.write_all(&buffer[..count]).map_err(wrong)?;
                bytes += count as u64;
            }
            // The client resets its connection when its time is over.
            Err(error) if error.kind() == ErrorKind::ConnectionReset => return Ok(bytes),
            Err(error) => return Err(wrong(error)),
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    // A panicking thread can only have pushed complete entries, so the list stays valid.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn wait_until(is_so: impl Fn() -> bool) -> Result<()> {
    let begin = Instant::now();
    while !is_so() {
        if begin.elapsed() > PATIENCE {
            bail!("connections did not come or end within {} s", PATIENCE.as_secs());
        }
        thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}

const PORT: u16 = 5_000;
const BACKLOG: usize = 512;
/// Size of one read, the same as that of the lab's own receivers.
const READ_BYTES: usize = 128 * 1024;
const STACK_BYTES: usize = 256 << 10;
/// During measurement every 16th read is compared; comparing all would dominate the cost of a byte. Before
/// and after, all reads are compared.
const COMPARED: u32 = 16;
const PATIENCE: Duration = Duration::from_secs(20);
