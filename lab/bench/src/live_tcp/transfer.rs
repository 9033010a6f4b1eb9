//! Transfers the bytes of one row between the peer and a stack, over all its connections.
//!
//! The stack connects, so that no readiness must be awaited. Time counts from the first accepted connection
//! until all have ended. The receiver hashes each connection's bytes, and so does a sending stack: every byte
//! is checked, at the same cost for both stacks.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::thread::{self, ScopedJoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail, ensure};
use crc32fast::Hasher;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rxo_testbed::Lab;
use rxo_testbed::traffic::Pattern;
use serde::Deserialize;

use super::case::{Case, Direction};
use super::congestion::Congestion;
use super::machine_time::Used;
use super::place::{Place, Stack};
use crate::process::Process;

/// The cost of one transfer of a row.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cost {
    pub(super) time: Duration,
    /// Processor time of the whole machine.
    pub(super) processor: Duration,
    /// Processor time of the participants.
    pub(super) own: Duration,
    /// Frames that the peer received; if the stack receives, these are its ACKs.
    pub(super) peer_frames: u64,
}

/// Byte count and hash of one connection.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
pub(super) struct Sum {
    pub(super) bytes: u64,
    /// CRC-32, as eight hexadecimal digits.
    pub(super) crc32: String,
}

/// The output of `rxo sink` and `rxo source`.
#[derive(Debug, Deserialize)]
struct Totals {
    ends: Vec<Sum>,
}

pub(super) const PORT: u16 = 7_000;
const BACKLOG: i32 = 4_096;
const CALL_BYTES: usize = 256 << 10;
/// Timeout, longer than any machine needs.
pub(super) const TIMEOUT: Duration = Duration::from_secs(120);

impl Place {
    /// Transfers the bytes of `case`, and returns the cost.
    ///
    /// # Errors
    /// If a stack fails, or bytes are missing or wrong.
    pub(super) fn transfer(&self, case: &Case) -> Result<Cost> {
        let listener = self.listen()?;
        let before = self.peer_frames()?;
        let mut others: Vec<u32> = self.path_process().into_iter().collect();
        let (mut cost, at_peer, at_stack) = match self.stack {
            Stack::Linux => thread::scope(|scope| {
                let far = move || connect_and_move(case, self.congestion);
                let far = scope.spawn(move || self.namespace().run_apart(far));
                let check = || match far.is_finished() {
                    true => bail!("Linux's side has ended"),
                    false => Ok(()),
                };
                let served = serve(&listener, case, &others, check);
                let at_stack = joined(far)?.map_err(anyhow::Error::from).flatten();
                // The first failure is the cause of the second, so it is reported.
                let at_stack = at_stack.context("Linux's side")?;
                served.map(|(cost, at_peer)| (cost, at_peer, at_stack))
            })?,
            Stack::Rxo => {
                let mut process = Process::start(self.namespace(), self.command(case))?;
                others.push(process.id());
                let (cost, at_peer) = serve(&listener, case, &others, || process.check())?;
                let printed = process.end()?;
                let totals: Totals = serde_json::from_str(&printed)
                    .with_context(|| format!("cannot read what rxo prints: {printed}"))?;
                (cost, at_peer, totals.ends)
            }
        };
        cost.peer_frames = self.peer_frames()? - before;
        check(case, self.stack, at_peer, at_stack)?;
        Ok(cost)
    }

    /// Opens the peer's listener.
    pub(super) fn listen(&self) -> Result<TcpListener> {
        let address = SocketAddr::from((Lab::PEER_ADDRESSES.0, PORT));
        let listener = self.peer().run(|| TcpListener::bind(address))?.context("cannot listen")?;
        self.congestion.set(&listener)?;
        // The standard library's backlog is smaller than the largest number of connections. A connection
        // beyond it gets a SYN cookie, and a client that only reads would never learn that its ACK was
        // dropped.
        rustix::net::listen(&listener, BACKLOG)?;
        Ok(listener)
    }

    fn peer_frames(&self) -> Result<u64> {
        Ok(self.peer().interface(Lab::PEER_INTERFACE).counters()?.received_frames)
    }

    /// Returns rxo's command for `case`.
    pub(super) fn command(&self, case: &Case) -> Command {
        let mut command = Command::new(&self.rxo);
        command.arg(match case.direction {
            Direction::Receiving => "sink",
            Direction::Sending => "source",
        });
        command.args(["--interval", "0s", "--hash", "--json"]);
        command.args(["--connections", &case.connections.to_string()]);
        command.args(["--workers", &self.workers.to_string()]);
        command.args(["--nic", &format!("packet:{}", Lab::NIC)]);
        command.args(["--ip", &format!("{}/24", Lab::HOST_ADDRESSES.0)]);
        command.arg(format!("{}:{PORT}", Lab::PEER_ADDRESSES.0));
        if case.direction == Direction::Sending {
            command.args(["--bytes", &case.each().to_string()]);
            command.args(["--congestion", &self.congestion.to_string()]);
            command.args(["--initial-window", &self.initial_window]);
        }
        command
    }
}

/// Compares the received bytes with the sent bytes.
fn check(case: &Case, stack: Stack, mut at_peer: Vec<Sum>, mut at_stack: Vec<Sum>) -> Result<()> {
    at_peer.sort();
    at_stack.sort();
    // The peer sends a known pattern; rxo reports what it has sent.
    let is_known = case.direction == Direction::Receiving || stack == Stack::Linux;
    let expected = vec![Sum::of_pattern(case.each()); case.connections];
    let received = if case.direction == Direction::Receiving { &at_stack } else { &at_peer };
    let sent = if is_known { &expected } else { &at_stack };
    ensure!(received.len() == case.connections, "{} connections have ended", received.len());
    let wrong = received.iter().zip(sent).find(|(received, sent)| received != sent);
    let wrong =
        wrong.or_else(|| received.iter().zip(sent).find(|(one, _)| one.bytes != case.each()));
    match wrong {
        Some((received, sent)) => bail!("{received:?} has arrived of {sent:?}"),
        None => Ok(()),
    }
}

impl Sum {
    fn of_pattern(bytes: u64) -> Self {
        let mut hasher = Hasher::new();
        // Hashing cannot fail, so the result is ignored.
        let done = each_part(&pattern(), bytes, |part| {
            hasher.update(part);
            Ok(())
        });
        debug_assert!(done.is_ok());
        Self::new(bytes, hasher)
    }

    fn new(bytes: u64, hasher: Hasher) -> Self {
        Self { bytes, crc32: format!("{:08x}", hasher.finalize()) }
    }
}

/// Runs the peer's side. The processes `others` participate. `check` fails if the stack has ended.
fn serve(
    listener: &TcpListener,
    case: &Case,
    others: &[u32],
    mut check: impl FnMut() -> Result<()>,
) -> Result<(Cost, Vec<Sum>)> {
    let pattern = pattern();
    let first = accept(listener, &mut check)?;
    let (begun, before) = (Instant::now(), Used::read(others)?);
    let sums = thread::scope(|scope| {
        let at_peer = |stream: TcpStream| {
            let pattern = &pattern[..];
            move || match case.direction {
                Direction::Receiving => give(&stream, pattern, case.each()),
                Direction::Sending => take(&stream),
            }
        };
        let mut threads = vec![spawn(scope, at_peer(first))?];
        for _ in 1..case.connections {
            threads.push(spawn(scope, at_peer(accept(listener, &mut check)?))?);
        }
        threads.into_iter().map(|thread| joined(thread)?.context("the peer")).collect()
    });
    let (time, sums): (_, Result<Vec<_>>) = (begun.elapsed(), sums);
    let after = Used::read(others)?;
    let processor = after.by_all.saturating_sub(before.by_all);
    let own = after.by_own.saturating_sub(before.by_own);
    Ok((Cost { time, processor, own, peer_frames: 0 }, sums?))
}

/// Linux's side where rxo's would be. Connects one after the other, so that no backlog has to take all SYNs at once.
fn connect_and_move(case: &Case, congestion: Congestion) -> Result<Vec<Sum>> {
    let address = SocketAddr::from((Lab::PEER_ADDRESSES.0, PORT));
    let pattern = &pattern()[..];
    let connect = || -> Result<TcpStream> {
        let stream = TcpStream::connect_timeout(&address, TIMEOUT).context("cannot connect")?;
        limit(&stream)?;
        congestion.set(&stream)?;
        Ok(stream)
    };
    let at_stack = |stream: TcpStream| {
        move || match case.direction {
            Direction::Receiving => take(&stream),
            Direction::Sending => give_hashed(&stream, pattern, case.each()),
        }
    };
    thread::scope(|scope| {
        let threads: Result<Vec<_>> =
            (0..case.connections).map(|_| Ok(spawn(scope, at_stack(connect()?))?)).collect();
        threads?.into_iter().map(|thread| Ok(joined(thread)??)).collect()
    })
}

/// Sends `bytes` of `pattern`, and hashes them: what arrives is hashed at the other end, and rxo hashes what it sends.
fn give_hashed(stream: &TcpStream, pattern: &[u8], bytes: u64) -> io::Result<Sum> {
    let mut hasher = Hasher::new();
    each_part(pattern, bytes, |part| {
        hasher.update(part);
        (&*stream).write_all(part)
    })?;
    end(stream)?;
    Ok(Sum::new(bytes, hasher))
}

/// Lets each end have the sockets of so many connections.
///
/// # Errors
/// If the system does not permit so many open files.
pub(super) fn allow_files(connections: usize) -> Result<()> {
    let wanted = (connections + OTHER_FILES) as u64;
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current.is_none_or(|current| current >= wanted) {
        return Ok(());
    }
    let maximum = maximum.map(|maximum| maximum.max(wanted));
    setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum }).with_context(|| {
        format!("{connections} connections need {wanted} open files; raise `ulimit -n`")
    })
}

fn spawn<'scope, T: Send + 'scope>(
    scope: &'scope thread::Scope<'scope, '_>,
    work: impl FnOnce() -> T + Send + 'scope,
) -> io::Result<ScopedJoinHandle<'scope, T>> {
    thread::Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, work)
}

fn joined<T>(thread: ScopedJoinHandle<'_, T>) -> Result<T> {
    thread.join().map_err(|_| anyhow!("a thread has panicked"))
}

/// Waits for the next connection.
pub(super) fn accept(
    listener: &TcpListener,
    check: &mut impl FnMut() -> Result<()>,
) -> Result<TcpStream> {
    listener.set_nonblocking(true)?;
    let deadline = Instant::now() + TIMEOUT;
    loop {
        match listener.accept() {
            Ok((stream, _)) => {
                stream.set_nonblocking(false)?;
                limit(&stream)?;
                return Ok(stream);
            }
            Err(error) if error.kind() != ErrorKind::WouldBlock => bail!("cannot accept: {error}"),
            Err(_) if Instant::now() > deadline => bail!("nobody has connected in {TIMEOUT:?}"),
            Err(_) => thread::sleep(Duration::from_millis(1)),
        }
        check()?;
    }
}

/// Sets timeouts on a stream, so that a stalled stack is detected.
pub(super) fn limit(stream: &TcpStream) -> Result<()> {
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    Ok(())
}

/// Sends `bytes` of `pattern`.
pub(super) fn give(stream: &TcpStream, pattern: &[u8], bytes: u64) -> io::Result<Sum> {
    each_part(pattern, bytes, |part| (&*stream).write_all(part))?;
    end(stream)?;
    Ok(Sum::new(bytes, Hasher::new()))
}

/// Shuts down the sending side, and waits until the other end has done so too.
fn end(stream: &TcpStream) -> io::Result<()> {
    stream.shutdown(Shutdown::Write)?;
    match (&*stream).read(&mut [0])? {
        0 => Ok(()),
        _ => Err(io::Error::other("bytes have come back")),
    }
}

/// Reads and hashes all bytes to the end of the stream.
fn take(stream: &TcpStream) -> io::Result<Sum> {
    let (mut call, mut bytes, mut hasher) = (vec![0; CALL_BYTES], 0, Hasher::new());
    loop {
        match (&*stream).read(&mut call)? {
            0 => return Ok(Sum::new(bytes, hasher)),
            read => {
                hasher.update(&call[..read]);
                bytes += read as u64;
            }
        }
    }
}

/// Calls `with` for parts of the endlessly repeated `pattern`, `bytes` bytes in total.
fn each_part(
    pattern: &[u8],
    bytes: u64,
    mut with: impl FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<()> {
    let mut left = bytes;
    while left > 0 {
        let now = left.min(pattern.len() as u64);
        with(&pattern[..now as usize])?;
        left -= now;
    }
    Ok(())
}

/// Pseudo-random bytes with a period that is no power of two.
pub(super) fn pattern() -> Vec<u8> {
    Pattern::of_port(0).file(PATTERN_BYTES)
}

const PATTERN_BYTES: usize = 257 * 1_021;
/// Files beside the sockets.
const OTHER_FILES: usize = 256;
/// Buffers are on the heap.
const STACK_BYTES: usize = 128 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sum_of_a_pattern_is_that_of_its_bytes() {
        let bytes = PATTERN_BYTES as u64 + 1_000;
        let whole: Vec<u8> = pattern().into_iter().cycle().take(bytes as usize).collect();
        let mut hasher = Hasher::new();
        hasher.update(&whole);
        assert_eq!(Sum::of_pattern(bytes), Sum::new(bytes, hasher));
    }
}
