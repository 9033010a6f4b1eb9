//! One file between the peer and a stack.
//!
//! The stack connects, so that nothing has to be waited for; time counts from the moment at which the peer
//! accepts to the end of the connection.

use std::fmt;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use rxo_lab::Lab;
use serde::Serialize;

use super::machine_time;
use super::place::{Place, Process, Stack};

/// What the stack does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Direction {
    Receiving,
    Sending,
}

impl fmt::Display for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Receiving => "receiving",
            Self::Sending => "sending",
        })
    }
}

/// What a file has cost.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cost {
    pub(super) time: Duration,
    /// Of the whole machine.
    pub(super) processor: Duration,
}

const PORT: u16 = 7_000;
const CALL_BYTES: usize = 256 << 10;
/// Longer than any machine takes.
const PATIENCE: Duration = Duration::from_secs(120);

impl Place {
    /// Moves `bytes` and returns what that has cost.
    pub(super) fn transfer(&self, direction: Direction, bytes: u64) -> Result<Cost> {
        let address = SocketAddr::from((Lab::PEER_ADDRESSES.0, PORT));
        let listener = self.peer().run(|| TcpListener::bind(address))?.context("cannot listen")?;
        match self.stack {
            Stack::Linux => thread::scope(|scope| {
                let far = || connect_and_move(address, direction, bytes);
                let far = scope.spawn(move || self.namespace().run(far));
                let cost = serve(&listener, direction, bytes, || Ok(()));
                let done = far.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
                cost.and_then(|cost| done?.map(|()| cost))
            }),
            Stack::Rxo => {
                let mut process = Process::start(self.namespace(), self.command(direction, bytes))?;
                let cost = serve(&listener, direction, bytes, || process.check())?;
                process.end()?;
                Ok(cost)
            }
        }
    }

    fn command(&self, direction: Direction, bytes: u64) -> Command {
        let mut command = Command::new(&self.rxo);
        command.arg(match direction {
            Direction::Receiving => "sink",
            Direction::Sending => "source",
        });
        command.args(["--interval", "0s", "--nic", &format!("packet:{}", Lab::NIC)]);
        command.args(["--ip", &format!("{}/24", Lab::HOST_ADDRESSES.0)]);
        command.arg(format!("{}:{PORT}", Lab::PEER_ADDRESSES.0));
        if direction == Direction::Sending {
            command.args(["--bytes", &bytes.to_string()]);
        }
        command
    }
}

/// The peer's side.
fn serve(
    listener: &TcpListener,
    direction: Direction,
    bytes: u64,
    mut check: impl FnMut() -> Result<()>,
) -> Result<Cost> {
    let mut stream = accept(listener, &mut check)?;
    let (begun, processor) = (Instant::now(), machine_time::read()?);
    let moved = match direction {
        Direction::Receiving => write(&mut stream, bytes).and_then(|()| read(&mut stream)),
        Direction::Sending => read(&mut stream),
    };
    let moved = moved.context("the peer cannot go on")?;
    let expected = if direction == Direction::Sending { bytes } else { 0 };
    ensure!(moved == expected, "{moved} bytes of {expected} have arrived at the peer");
    Ok(Cost { time: begun.elapsed(), processor: machine_time::read()?.saturating_sub(processor) })
}

/// Linux's side where rxo's would be.
fn connect_and_move(address: SocketAddr, direction: Direction, bytes: u64) -> Result<()> {
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE).context("cannot connect")?;
    limit(&stream)?;
    match direction {
        Direction::Receiving => {
            let moved = read(&mut stream)?;
            ensure!(moved == bytes, "{moved} bytes of {bytes} have arrived at Linux");
        }
        Direction::Sending => {
            write(&mut stream, bytes)?;
            read(&mut stream)?;
        }
    }
    Ok(())
}

fn accept(listener: &TcpListener, check: &mut impl FnMut() -> Result<()>) -> Result<TcpStream> {
    listener.set_nonblocking(true)?;
    let deadline = Instant::now() + PATIENCE;
    loop {
        match listener.accept() {
            Ok((stream, _)) => {
                stream.set_nonblocking(false)?;
                limit(&stream)?;
                return Ok(stream);
            }
            Err(error) if error.kind() != ErrorKind::WouldBlock => bail!("cannot accept: {error}"),
            Err(_) if Instant::now() > deadline => bail!("nobody has connected in {PATIENCE:?}"),
            Err(_) => thread::sleep(Duration::from_millis(1)),
        }
        check()?;
    }
}

/// A stack that stops is found out.
fn limit(stream: &TcpStream) -> Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    Ok(())
}

/// Sends `bytes` and says that this is all.
fn write(stream: &mut TcpStream, bytes: u64) -> std::io::Result<()> {
    let call = vec![0; CALL_BYTES];
    let mut left = bytes;
    while left > 0 {
        let now = left.min(CALL_BYTES as u64);
        stream.write_all(&call[..now as usize])?;
        left -= now;
    }
    stream.shutdown(Shutdown::Write)
}

/// Reads to the end, and returns how many bytes there were.
fn read(stream: &mut TcpStream) -> std::io::Result<u64> {
    let (mut call, mut bytes) = (vec![0; CALL_BYTES], 0);
    loop {
        match stream.read(&mut call)? {
            0 => return Ok(bytes),
            read => bytes += read as u64,
        }
    }
}
