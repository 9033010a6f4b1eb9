//! Session: does the work of one connection, as far as possible without waiting.
//!
//! This module is separate from the [`crowd`](super::crowd) because a session knows only one stream: the crowd
//! calls [`Session::proceed`] whenever the stream is ready. State that a session needs only during a call is in
//! [`Shared`], once for all sessions, so that 10,000 sessions do not need 10,000 buffers.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use crc32fast::Hasher;
use hdrhistogram::Histogram;
use rxo::live::host::Settling;
use rxo_host::{SharedBytes, TcpStream};
use rxo_testbed::traffic::Pattern;

use super::meter::Meter;
use super::plan::{Amount, Plan, Work};
use crate::endpoint::{Opening, incomplete, is_timeout};
use crate::exit::partial;

/// The result of a connection that has ended.
#[derive(Debug)]
pub(super) struct Done {
    pub(super) peer: SocketAddr,
    pub(super) bytes: u64,
    /// CRC-32 of the received bytes, or for a source of the sent bytes; `None` without `--hash`.
    pub(super) crc32: Option<u32>,
    /// `true` if a signal arrived before the work was done.
    pub(super) was_interrupted: bool,
}

/// Settings, buffer and counters that all sessions share; one session uses them at a time.
pub(super) struct Shared {
    pub(super) meter: Arc<Meter>,
    work: Work,
    hash: bool,
    /// Buffer for received bytes that are about to be compared or sent back.
    buffer: Vec<u8>,
    /// The round-trip times: from a request to the end of its response, in nanoseconds. `None` if no requests
    /// are sent.
    pub(super) round_trips: Option<Histogram<u64>>,
}

impl Shared {
    pub(super) fn new(plan: &Plan, meter: Arc<Meter>) -> Result<Self> {
        let asks = matches!(plan.work, Work::Ask { .. });
        let histogram = || Histogram::new_with_bounds(LEAST_NS, MOST_NS, SIGNIFICANT_DIGITS);
        Ok(Self {
            meter,
            work: plan.work,
            hash: plan.hash,
            buffer: vec![0; BUFFER_BYTES],
            round_trips: asks.then(histogram).transpose()?,
        })
    }
}

/// A connection and its work.
pub(super) struct Session {
    stream: TcpStream,
    peer: SocketAddr,
    stage: Stage,
    /// The time at which the work ends; `None` if a number of bytes, or the peer, ends it.
    until: Option<Instant>,
    /// The bytes of this connection that were counted so far. If the connection only receives, the host's
    /// thread counts the bytes.
    counted: Arc<Mutex<Counted>>,
}

/// The stage of a session. When one stage ends, the next begins; the last stage is `Settling`.
enum Stage {
    /// The connection is being opened.
    Opening(Opening),
    /// The host's thread receives and counts the data, until the peer closes.
    Receiving,
    /// The session sends the received bytes back. `rest` contains the received bytes that did not fit into the
    /// send buffer.
    Answering { rest: Vec<u8> },
    /// The session sends the pattern, continuing at offset `at`.
    Sending { at: usize },
    /// The session sends requests. `sent` and `received` are the bytes of the current request and its
    /// response so far.
    Asking { sent: usize, received: usize, sent_at: Instant },
    /// This side has closed the connection, and the peer may not have received everything yet.
    Settling(Settling),
}

/// The result of a call of [`Session::proceed`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// The session waits for its stream.
    Waits,
    /// The session can continue, but other sessions get a turn first.
    Pauses,
    /// The current stage has ended. After the last stage, the session has ended too.
    Ends,
}

/// The bytes of a connection that were counted so far, and their hash.
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

impl Session {
    /// Creates the session of a connection that is being opened.
    pub(super) fn open(stream: TcpStream, opening: Opening, shared: &Shared) -> Result<Self> {
        Self::new(stream, Stage::Opening(opening), shared)
    }

    /// Creates the session of a connection that is open, and begins its work.
    pub(super) fn accept(stream: TcpStream, shared: &Shared) -> Result<Self> {
        let mut session = Self::new(stream, Stage::Receiving, shared)?;
        session.begin(shared)?;
        Ok(session)
    }

    fn new(stream: TcpStream, stage: Stage, shared: &Shared) -> Result<Self> {
        stream.set_nonblocking(true)?;
        let peer = stream.peer_addr()?;
        let counted = Counted { hasher: shared.hash.then(Hasher::new), bytes: 0 };
        Ok(Self { stream, peer, stage, until: None, counted: Arc::new(Mutex::new(counted)) })
    }

    pub(super) const fn stream(&self) -> &TcpStream {
        &self.stream
    }

    /// Returns `true` while the connection is being opened.
    pub(super) const fn is_opening(&self) -> bool {
        matches!(self.stage, Stage::Opening(_))
    }

    /// Returns `true` if a timeout may end the current stage; the stream does not report such a timeout.
    pub(super) const fn is_watched(&self) -> bool {
        matches!(self.stage, Stage::Opening(_) | Stage::Settling(_))
    }

    /// Returns `true` if the session must continue at `now`, although its stream reports no event: a timeout
    /// may have passed.
    pub(super) fn is_due(&self, now: Instant) -> bool {
        self.is_watched() || self.until.is_some_and(|until| now >= until)
    }

    /// Continues the work without waiting. Returns [`Step::Ends`] once the peer has received everything.
    ///
    /// # Errors
    /// If the connection fails.
    pub(super) fn proceed(&mut self, shared: &mut Shared) -> Result<Step> {
        if let Stage::Opening(opening) = &self.stage {
            if !opening.is_connected(&self.stream)? {
                return Ok(Step::Waits);
            }
            self.begin(shared)?;
        }
        let step = self.work_and_drain(shared);
        step.with_context(|| format!("connection with {}", self.peer))
    }

    /// Ends the session at once, because a signal arrived or the host has ended. Resets the connection if its
    /// work is not done.
    ///
    /// # Errors
    /// If the connection is not open yet, or its peer may not have received everything.
    pub(super) fn interrupt(&mut self) -> Result<Done> {
        let was_interrupted = match &mut self.stage {
            Stage::Opening(_) => bail!("cannot connect to {}: interrupted", self.peer),
            Stage::Settling(settling) => {
                let done = settling.is_done(&self.stream, || true);
                done.map_err(|error| partial(format!("connection with {}: {error}", self.peer)))?;
                false
            }
            _ => {
                self.stream.abort();
                true
            }
        };
        Ok(Done { was_interrupted, ..self.done() })
    }

    /// Returns the result of the session, once it has ended.
    pub(super) fn done(&self) -> Done {
        let counted = self.counted();
        let crc32 = counted.hasher.clone().map(Hasher::finalize);
        Done { peer: self.peer, bytes: counted.bytes, crc32, was_interrupted: false }
    }

    /// Begins the work, once the connection is open.
    fn begin(&mut self, shared: &Shared) -> Result<()> {
        shared.meter.begin();
        self.until = shared.work.time().map(|time| Instant::now() + time);
        self.stage = match shared.work {
            Work::Receive => {
                self.count_on_arrival(&shared.meter);
                Stage::Receiving
            }
            Work::Answer => Stage::Answering { rest: Vec::new() },
            Work::Send(_) => Stage::Sending { at: 0 },
            Work::Ask { .. } => Stage::Asking { sent: 0, received: 0, sent_at: Instant::now() },
        };
        if matches!(shared.work, Work::Answer | Work::Ask { .. }) {
            self.stream.set_nodelay(true)?;
        }
        Ok(())
    }

    fn count_on_arrival(&self, meter: &Arc<Meter>) {
        let (counted, meter) = (Arc::clone(&self.counted), Arc::clone(meter));
        self.stream.read_with(move |text| {
            meter.passed(text.len());
            lock(&counted).count(text);
        });
    }

    fn work_and_drain(&mut self, shared: &mut Shared) -> Result<Step> {
        if let Stage::Settling(settling) = &mut self.stage {
            return drain(&self.stream, settling, &mut shared.buffer);
        }
        let step = self.work(shared)?;
        if step != Step::Ends {
            return Ok(step);
        }
        self.stream.shutdown(Shutdown::Write).or_else(ignore_closed)?;
        self.stage = Stage::Settling(Settling::begin(&self.stream));
        // The peer may already have received everything; then no event would continue the session.
        Ok(Step::Pauses)
    }

    fn work(&mut self, shared: &mut Shared) -> Result<Step> {
        for _ in 0..MOST_CALLS {
            let step = match shared.work {
                Work::Receive => return self.await_end(),
                Work::Answer => self.answer(shared)?,
                Work::Send(amount) => self.send(shared, amount)?,
                Work::Ask { bytes, amount } => self.ask(shared, bytes, amount)?,
            };
            if step != Step::Pauses {
                return Ok(step);
            }
        }
        Ok(Step::Pauses)
    }

    /// Checks whether the peer has closed. Receives no data, because the reader on the host's thread does that.
    fn await_end(&self) -> Result<Step> {
        match self.read(&mut [0])? {
            None => Ok(Step::Waits),
            Some(0) => Ok(Step::Ends),
            Some(_) => bail!("text has passed the reader by"),
        }
    }

    /// Sends back the received bytes that are still unsent. If there are none, receives more bytes and sends
    /// these back.
    fn answer(&mut self, shared: &mut Shared) -> Result<Step> {
        let Stage::Answering { rest } = &mut self.stage else { return Ok(Step::Ends) };
        let mut rest = std::mem::take(rest);
        if rest.is_empty() {
            let read = match self.read(&mut shared.buffer)? {
                None => return Ok(Step::Waits),
                Some(0) => return Ok(Step::Ends),
                Some(read) => read,
            };
            self.count(shared, &shared.buffer[..read]);
            let written = self.write(&shared.buffer[..read])?;
            rest = shared.buffer[written..read].to_vec();
        } else {
            let written = self.write(&rest)?;
            rest.drain(..written);
            if written == 0 {
                self.stage = Stage::Answering { rest };
                return Ok(Step::Waits);
            }
        }
        if rest.is_empty() {
            shared.meter.exchanged();
            rest = Vec::new();
        }
        self.stage = Stage::Answering { rest };
        Ok(Step::Pauses)
    }

    fn send(&mut self, shared: &mut Shared, amount: Amount) -> Result<Step> {
        let left = amount.bytes() - self.counted().bytes;
        if left == 0 || self.is_due(Instant::now()) {
            return Ok(Step::Ends);
        }
        let Stage::Sending { at } = &mut self.stage else { return Ok(Step::Ends) };
        let most = usize::try_from(left).unwrap_or(usize::MAX).min(WRITE_BYTES);
        let mut text = SharedBytes::from(&PATTERN[..]);
        text.advance(*at);
        let written = taken(self.stream.write_shared(&mut text.first(most)))?;
        let sent = *at..*at + written;
        *at = sent.end % PATTERN_BYTES;
        self.count(shared, &PATTERN[sent]);
        Ok(if written == 0 { Step::Waits } else { Step::Pauses })
    }

    fn ask(&mut self, shared: &mut Shared, bytes: usize, amount: Amount) -> Result<Step> {
        let Stage::Asking { sent, received, sent_at } = self.stage else { return Ok(Step::Ends) };
        let sent_at = if sent == 0 { Instant::now() } else { sent_at };
        let is_enough = self.counted().bytes >= amount.bytes() || self.is_due(sent_at);
        if sent == 0 && is_enough {
            return Ok(Step::Ends);
        }
        if sent < bytes {
            let written = self.write(&PATTERN[sent..bytes])?;
            self.stage = Stage::Asking { sent: sent + written, received, sent_at };
            return Ok(if written == 0 { Step::Waits } else { Step::Pauses });
        }
        let answer = &mut shared.buffer[..bytes - received];
        let read = match self.read(answer)? {
            None => return Ok(Step::Waits),
            Some(0) => bail!("the peer closed in the middle of a response"),
            Some(read) => read,
        };
        let so_far = received + read;
        if answer[..read] != PATTERN[received..so_far] {
            bail!("the peer does not send back what it is sent; start it as `rxo sink --rr`");
        }
        self.stage = Stage::Asking { sent, received: so_far, sent_at };
        if so_far == bytes {
            self.take_response(shared, bytes, sent_at);
        }
        Ok(Step::Pauses)
    }

    /// Records a complete response.
    fn take_response(&mut self, shared: &mut Shared, bytes: usize, sent_at: Instant) {
        if let Some(round_trips) = &mut shared.round_trips {
            round_trips.saturating_record(nanos(sent_at.elapsed()));
        }
        shared.meter.exchanged();
        self.count(shared, &PATTERN[..bytes]);
        self.stage = Stage::Asking { sent: 0, received: 0, sent_at };
    }

    fn count(&self, shared: &Shared, bytes: &[u8]) {
        shared.meter.passed(bytes.len());
        self.counted().count(bytes);
    }

    /// Locks the byte counter. A panic cannot leave the counter half changed.
    fn counted(&self) -> MutexGuard<'_, Counted> {
        lock(&self.counted)
    }

    /// Reads the next bytes; `None` if there are none yet, `Some(0)` if the peer has closed.
    fn read(&self, to: &mut [u8]) -> Result<Option<usize>> {
        match (&self.stream).read(to) {
            Ok(read) => Ok(Some(read)),
            Err(error) if is_timeout(&error) => Ok(None),
            Err(error) => Err(incomplete("cannot receive", &error)),
        }
    }

    /// Writes once. Returns the number of bytes that the send buffer accepted; 0 if the buffer is full.
    fn write(&self, from: &[u8]) -> Result<usize> {
        taken((&self.stream).write(from))
    }
}

/// Discards the data that the peer still sends, and checks if the peer has received everything.
fn drain(mut stream: &TcpStream, settling: &mut Settling, buffer: &mut [u8]) -> Result<Step> {
    let mut reads = 0;
    // Reads first, so that the check below notices any change that the peer's data makes. The check also
    // finds a failed connection.
    while reads < MOST_CALLS && stream.read(buffer).is_ok_and(|read| read > 0) {
        reads += 1;
    }
    let is_done = settling.is_done(stream, || false).map_err(|error| partial(error.to_string()))?;
    Ok(if is_done { Step::Ends } else { Step::Waits })
}

/// Returns the number of bytes that a write has accepted; 0 if the send buffer was full.
fn taken(written: io::Result<usize>) -> Result<usize> {
    match written {
        Ok(written) => Ok(written),
        Err(error) if is_timeout(&error) => Ok(0),
        Err(error) => Err(incomplete("cannot send", &error)),
    }
}

impl Amount {
    const fn bytes(self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Time(_) => u64::MAX,
        }
    }
}

fn lock(counted: &Mutex<Counted>) -> MutexGuard<'_, Counted> {
    counted.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Ignores the error that the connection is already closed. The peer has then closed the connection completely,
/// and all data from the peer was received.
fn ignore_closed(error: io::Error) -> io::Result<()> {
    if error.kind() == io::ErrorKind::NotConnected { Ok(()) } else { Err(error) }
}

/// Pseudo-random bytes whose period is not a power of two. All connections send from this memory: no data is
/// copied before the device reads it.
static PATTERN: LazyLock<Vec<u8>> = LazyLock::new(|| Pattern::of_port(0).file(PATTERN_BYTES));

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

const BUFFER_BYTES: usize = 256 * 1024;
const WRITE_BYTES: usize = 64 * 1024;
const PATTERN_BYTES: usize = 257 * 1_021;
/// Maximum number of calls of a stream before other sessions get a turn.
const MOST_CALLS: usize = 8;
/// The smallest time in the histogram of round trips. A shorter time counts as this one.
const LEAST_NS: u64 = 100;
const MOST_NS: u64 = 100_000_000_000;
const SIGNIFICANT_DIGITS: u8 = 3;
