//! `rxo cat`: sends standard input to the peer, and writes the peer's data to standard output.
//!
//! The end of standard input closes that half of the connection, as `nc -N` does; the command ends when the
//! peer has closed the other half. A separate thread reads standard input, because such a read cannot be
//! interrupted; the thread ends with the process. If the peer did not receive everything, or did not close its
//! half, the exit code is 3. The totals of the fast path, if it was on, go to standard error.

use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Error, Result};
use rxo_host::TcpStream;

use crate::control::{ControlAddresses, with_sockets_removed};
use crate::endpoint::{Endpoint, EndpointPlan, incomplete, is_timeout, wait_until_delivered};
use crate::exit::partial;
use crate::flags::CatFlags;
use crate::hosting::FastTotals;
use crate::output;

/// Copies in both directions until both halves of the connection are closed.
///
/// # Errors
/// If the plan is invalid, the connection cannot be opened, or either direction fails.
pub(crate) fn command(flags: &CatFlags) -> Result<()> {
    with_sockets_removed(&flags.endpoint.host, &ControlAddresses::default(), || cat(flags))
}

fn cat(flags: &CatFlags) -> Result<()> {
    let plan = EndpointPlan::from_flags(&flags.endpoint)?;
    let endpoint = Endpoint::start(&plan)?;
    let stream = endpoint.one()?;
    let outcome = pipe(&endpoint, &stream);
    drop(stream);
    outcome?;
    let counters = endpoint.finish()?.counters;
    if let Some(totals) = FastTotals::of(&counters.fast) {
        output::note(&totals.text());
    }
    Ok(())
}

fn pipe(endpoint: &Endpoint, stream: &TcpStream) -> Result<()> {
    let sending = send_input(stream.try_clone()?)?;
    receive(endpoint, stream)?;
    // The peer has closed its half, but may still want the rest of standard input.
    loop {
        match sending.recv_timeout(CHECK_INTERVAL) {
            Ok(outcome) => {
                outcome?;
                return wait_until_delivered(endpoint, stream);
            }
            Err(RecvTimeoutError::Timeout) if !endpoint.should_stop() => {}
            Err(_) => return Err(partial("interrupted before the end of standard input")),
        }
    }
}

/// Starts a thread that sends standard input to the peer. Returns the channel on which the thread reports its result.
fn send_input(mut stream: TcpStream) -> Result<Receiver<Result<()>>> {
    let (results, result) = channel();
    thread::Builder::new().name("rxo-cat input".to_owned()).spawn(move || {
        let sent = copy(&mut io::stdin().lock(), &mut stream);
        let ended = sent.and_then(|()| stream.shutdown(Shutdown::Write).map_err(not_taken));
        // At the end of the process the channel may have no receiver.
        _ = results.send(ended);
    })?;
    Ok(result)
}

fn copy(from: &mut impl Read, to: &mut impl Write) -> Result<()> {
    let mut buffer = vec![0; BUFFER_BYTES];
    loop {
        let read = match from.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error).context("cannot read standard input"),
        };
        send_all(to, &buffer[..read]).map_err(not_taken)?;
    }
}

fn not_taken(error: io::Error) -> Error {
    incomplete("the peer does not take all", &error)
}

/// Writes all of `rest` to the peer, however long the peer takes to accept it.
fn send_all(to: &mut impl Write, mut rest: &[u8]) -> io::Result<()> {
    while !rest.is_empty() {
        match to.write(rest) {
            Ok(written) => rest = &rest[written..],
            Err(error) if is_timeout(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Copies the peer's data to standard output, until the peer closes its half.
fn receive(endpoint: &Endpoint, mut stream: &TcpStream) -> Result<()> {
    let mut out = io::stdout().lock();
    let mut buffer = vec![0; BUFFER_BYTES];
    loop {
        match stream.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(read) => {
                out.write_all(&buffer[..read])?;
                out.flush()?;
            }
            Err(error) if is_timeout(&error) && !endpoint.should_stop() => {}
            Err(error) if is_timeout(&error) => {
                return Err(partial("interrupted before the peer was done"));
            }
            Err(error) => return Err(incomplete("the peer did not come to its end", &error)),
        }
    }
}

/// Time between two checks of the stop flag while the peer sends nothing.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);
const BUFFER_BYTES: usize = 64 * 1024;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exit::PartialError;

    /// Fails at the first call.
    struct Broken;

    impl Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::ErrorKind::IsADirectory.into())
        }
    }

    impl Write for Broken {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::ConnectionReset.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn each_end_is_blamed_for_its_own() {
        let from = copy(&mut Broken, &mut Vec::new()).unwrap_err();
        assert_eq!(from.to_string(), "cannot read standard input");
        assert!(from.downcast_ref::<PartialError>().is_none());
        let to = copy(&mut &b"text"[..], &mut Broken).unwrap_err();
        assert!(to.to_string().starts_with("the peer does not take all: "), "{to}");
        assert!(to.downcast_ref::<PartialError>().is_some());
    }
}
