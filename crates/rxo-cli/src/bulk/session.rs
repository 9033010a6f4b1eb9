//! The work of one connection.

use std::io::{self, Read, Write};
use std::mem;
use std::net::{Shutdown, SocketAddr};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use crc32fast::Hasher;
use hdrhistogram::Histogram;
use rxo_host::TcpStream;
use rxo_testbed::traffic::Pattern;

use super::meter::Meter;
use super::plan::{Amount, Plan, Work};
use crate::endpoint::{Endpoint, incomplete, is_wait, settle};

/// A connection that has ended.
#[derive(Debug)]
pub(super) struct Done {
    pub(super) peer: SocketAddr,
    pub(super) bytes: u64,
    /// CRC-32 of the bytes received, or sent by a source; `None` without `--hash`.
    pub(super) crc32: Option<u32>,
    /// Time from a request to the end of its response, in nanoseconds.
    pub(super) round_trips: Option<Histogram<u64>>,
    /// `true` if a signal came before the work was done.
    pub(super) was_interrupted: bool,
}

/// Does the work of the plan on `stream`.
///
/// # Errors
/// If the connection fails.
pub(super) fn run(
    plan: &Plan,
    endpoint: &Endpoint,
    meter: &Arc<Meter>,
    stream: &TcpStream,
) -> Result<Done> {
    meter.begin();
    let peer = stream.peer_addr()?;
    let counted = Counted { hasher: plan.hash.then(Hasher::new), bytes: 0 };
    let mut session = Session { endpoint, meter, stream, counted };
    let round_trips = session.work(plan.work).with_context(|| format!("connection with {peer}"))?;
    let was_interrupted = endpoint.is_over();
    if !was_interrupted {
        settle(endpoint, stream).with_context(|| format!("connection with {peer}"))?;
    }
    let Counted { hasher, bytes } = session.counted;
    let crc32 = hasher.map(Hasher::finalize);
    Ok(Done { peer, bytes, crc32, round_trips, was_interrupted })
}

struct Session<'a> {
    endpoint: &'a Endpoint,
    meter: &'a Arc<Meter>,
    stream: &'a TcpStream,
    counted: Counted,
}

/// The bytes of a connection so far.
#[derive(Debug, Default)]
struct Counted {
    hasher: Option<Hasher>,
    bytes: u64,
}

impl Counted {
    fn count(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        if let Some(hasher) = &mut self.hasher {
            hasher.update(bytes);
        }
    }
}

impl Session<'_> {
    fn work(&mut self, work: Work) -> Result<Option<Histogram<u64>>> {
        match work {
            Work::Receive => self.receive()?,
            Work::Answer => self.answer()?,
            Work::Send(amount) => self.send(amount)?,
            Work::Ask { bytes, amount } => return self.ask(bytes, amount).map(Some),
        }
        Ok(None)
    }

    /// Receives until the peer closes, on the host's thread. This thread only waits for the end.
    fn receive(&mut self) -> Result<()> {
        let counted = Arc::new(Mutex::new(mem::take(&mut self.counted)));
        let (counting, meter) = (Arc::clone(&counted), Arc::clone(self.meter));
        self.stream.read_with(move |text| {
            meter.passed(text.len());
            lock(&counting).count(text);
        });
        let ended = self.await_end();
        self.counted = mem::take(&mut lock(&counted));
        ended?;
        self.close()
    }

    /// Waits for the end without a timeout, because hundreds of threads that poll for a signal take a core's time.
    fn await_end(&self) -> Result<()> {
        self.stream.set_nonblocking(true)?;
        while !self.endpoint.is_over() {
            match (&mut &*self.stream).read(&mut [0]) {
                Ok(0) => break,
                Ok(_) => bail!("text has passed the reader by"),
                Err(error) if is_wait(&error) => self.endpoint.await_readable(self.stream)?,
                Err(error) => return Err(incomplete("cannot receive", &error)),
            }
        }
        Ok(self.stream.set_nonblocking(false)?)
    }

    /// Receives until the peer closes, and sends everything back.
    fn answer(&mut self) -> Result<()> {
        self.stream.set_nodelay(true)?;
        let mut buffer = vec![0; BUFFER_BYTES];
        while let Some(read) = self.read(&mut buffer)? {
            if self.write_all(&buffer[..read])? {
                self.meter.exchanged();
            }
            self.count(&buffer[..read]);
        }
        self.close()
    }

    fn send(&mut self, amount: Amount) -> Result<()> {
        let pattern = &PATTERN[..];
        let end = Instant::now() + amount.time();
        let mut at = 0;
        while self.counted.bytes < amount.bytes()
            && Instant::now() < end
            && !self.endpoint.is_over()
        {
            let left = usize::try_from(amount.bytes() - self.counted.bytes).unwrap_or(usize::MAX);
            let most = (at + WRITE_BYTES).min(pattern.len()).min(at.saturating_add(left));
            let written = self.write(&pattern[at..most])?;
            self.count(&pattern[at..at + written]);
            at = (at + written) % pattern.len();
        }
        self.close()
    }

    fn ask(&mut self, bytes: usize, amount: Amount) -> Result<Histogram<u64>> {
        self.stream.set_nodelay(true)?;
        let mut round_trips = Histogram::new_with_bounds(LEAST_NS, MOST_NS, SIGNIFICANT_DIGITS)?;
        let (request, mut response) = (&PATTERN[..bytes], vec![0; bytes]);
        let end = Instant::now() + amount.time();
        while self.counted.bytes < amount.bytes() && Instant::now() < end {
            let sent_at = Instant::now();
            if !self.write_all(request)? || !self.read_all(&mut response)? {
                break;
            }
            if response != request {
                bail!("the peer does not send back what it is sent; start it as `rxo sink --rr`");
            }
            round_trips.saturating_record(nanos(sent_at.elapsed()));
            self.meter.exchanged();
            self.count(&response);
        }
        self.close()?;
        Ok(round_trips)
    }

    /// Closes the connection; after a signal, resets it, because not everything was sent.
    fn close(&self) -> Result<()> {
        if self.endpoint.is_over() {
            self.stream.abort();
            return Ok(());
        }
        Ok(self.stream.shutdown(Shutdown::Write).or_else(closed_is_fine)?)
    }

    fn count(&mut self, bytes: &[u8]) {
        self.meter.passed(bytes.len());
        self.counted.count(bytes);
    }

    /// Reads the next bytes; `None` if the peer has closed, or after a signal.
    fn read(&self, to: &mut [u8]) -> Result<Option<usize>> {
        while !self.endpoint.is_over() {
            match (&mut &*self.stream).read(to) {
                Ok(0) => return Ok(None),
                Ok(read) => return Ok(Some(read)),
                Err(error) if is_wait(&error) => {}
                Err(error) => return Err(incomplete("cannot receive", &error)),
            }
        }
        Ok(None)
    }

    /// Fills `to`. Returns `false` after a signal.
    fn read_all(&mut self, to: &mut [u8]) -> Result<bool> {
        let mut filled = 0;
        while filled < to.len() {
            match self.read(&mut to[filled..])? {
                Some(read) => filled += read,
                None if self.endpoint.is_over() => return Ok(false),
                None => bail!("the peer closed in the middle of a response"),
            }
        }
        Ok(true)
    }

    /// Writes once. Returns the number of bytes written; 0 if the send buffer stayed full until the timeout.
    fn write(&mut self, from: &[u8]) -> Result<usize> {
        match (&mut &*self.stream).write(from) {
            Ok(written) => Ok(written),
            Err(error) if is_wait(&error) => Ok(0),
            Err(error) => Err(incomplete("cannot send", &error)),
        }
    }

    /// Writes all of `from`. Returns `false` after a signal.
    fn write_all(&mut self, from: &[u8]) -> Result<bool> {
        let mut sent = 0;
        while sent < from.len() && !self.endpoint.is_over() {
            sent += self.write(&from[sent..])?;
        }
        Ok(sent == from.len())
    }
}

impl Amount {
    const fn bytes(self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Time(_) => u64::MAX,
        }
    }

    const fn time(self) -> Duration {
        match self {
            Self::Bytes(_) => FOR_EVER,
            Self::Time(time) => time,
        }
    }
}

/// Locks the counters, even after a panic of another thread, which cannot leave them half changed.
fn lock(counted: &Mutex<Counted>) -> MutexGuard<'_, Counted> {
    counted.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Ignores the error of a peer that closed completely after everything it sent was received.
fn closed_is_fine(error: io::Error) -> io::Result<()> {
    if error.kind() == io::ErrorKind::NotConnected { Ok(()) } else { Err(error) }
}

/// Pseudo-random bytes whose period is no power of two. All connections send this memory.
static PATTERN: LazyLock<Vec<u8>> = LazyLock::new(|| Pattern::of_port(0).file(PATTERN_BYTES));

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

const BUFFER_BYTES: usize = 256 * 1024;
const WRITE_BYTES: usize = 64 * 1024;
const PATTERN_BYTES: usize = 257 * 1_021;
/// Lower end of the histogram's range, in nanoseconds. Times outside the range count as its ends.
const LEAST_NS: u64 = 100;
const MOST_NS: u64 = 100_000_000_000;
const SIGNIFICANT_DIGITS: u8 = 3;
const FOR_EVER: Duration = Duration::from_secs(10 * 365 * 86_400);
