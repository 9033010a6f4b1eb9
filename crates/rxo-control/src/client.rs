//! The client's end of a control socket.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::{Answer, BadAnswer, CLIENT_TIMEOUT, Request};

/// A client's connection to a running process.
#[derive(Debug)]
pub struct Session {
    stream: BufReader<UnixStream>,
    path: PathBuf,
}

/// The error of a client that gets no valid answer. Each message is one line with the remedy.
#[derive(Debug, Error)]
pub enum AskError {
    /// The file of the socket does not exist.
    #[error("there is no socket {0}; start a process with --control {0}")]
    NotThere(String),
    /// No process listens at the socket.
    #[error("nobody listens on {0}: its process has ended; start one with --control {0}")]
    Ended(String),
    /// The mode of the socket's file forbids this user to connect.
    #[error("this user may not use {0}; ask as its owner, or as root")]
    Denied(String),
    /// The process did not answer within [`CLIENT_TIMEOUT`].
    #[error("the process at {path} does not answer within {} s; is it stopped?", CLIENT_TIMEOUT.as_secs())]
    Silent {
        /// The path of the socket.
        path: String,
    },
    /// The process closed the connection before it answered.
    #[error("the process at {0} closed the connection without an answer; it may have ended")]
    Closed(String),
    /// The answer is invalid, so another program listens at the socket.
    #[error("{0}: {1}")]
    Bad(String, BadAnswer),
    /// A system call failed: to connect, to read or to write.
    #[error("cannot use {0}: {1}; give the socket of --control")]
    System(String, io::Error),
}

impl Session {
    /// Connects to the process that listens at `path`.
    ///
    /// # Errors
    /// If there is no process, or if this user may not connect to it.
    pub fn open(path: &Path) -> Result<Self, AskError> {
        Ok(Self { stream: connect(path)?, path: path.to_owned() })
    }

    /// Sends a request and waits for the answer. Reconnects first if the process has dropped this session; a
    /// process drops a session after [`CLIENT_TIMEOUT`] without a request.
    ///
    /// # Errors
    /// If no valid answer comes within [`CLIENT_TIMEOUT`].
    pub fn ask(&mut self, request: &Request) -> Result<Answer, AskError> {
        if self.is_dropped() {
            self.stream = connect(&self.path)?;
        }
        self.ask_once(request)
    }

    /// Returns `true` if the process has closed the connection, and nothing is left to read from it.
    fn is_dropped(&mut self) -> bool {
        let set = |is_nonblocking| self.stream.get_ref().set_nonblocking(is_nonblocking);
        if set(true).is_err() {
            return false;
        }
        let is_at_end = self.stream.fill_buf().is_ok_and(<[u8]>::is_empty);
        // If the socket stays nonblocking, the next read fails with `WouldBlock`.
        _ = self.stream.get_ref().set_nonblocking(false);
        is_at_end
    }

    fn ask_once(&mut self, request: &Request) -> Result<Answer, AskError> {
        let line = format!("{}\n", request.line());
        // A process with too many clients answers without reading, so a failed write may still be answered.
        let sent = self.stream.get_mut().write_all(line.as_bytes());
        let mut line = String::new();
        let read = self.stream.by_ref().take(MOST_ANSWER_BYTES).read_line(&mut line);
        let shown = || self.path.display().to_string();
        match sent.and(read) {
            Ok(0) => Err(AskError::Closed(shown())),
            Ok(_) => Answer::parse(&line).map_err(|bad| AskError::Bad(shown(), bad)),
            Err(_) if !line.is_empty() => {
                Answer::parse(&line).map_err(|bad| AskError::Bad(shown(), bad))
            }
            Err(error) => Err(match error.kind() {
                io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
                    AskError::Silent { path: shown() }
                }
                io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset => {
                    AskError::Closed(shown())
                }
                io::ErrorKind::InvalidData => AskError::Bad(shown(), BadAnswer),
                _ => AskError::System(shown(), error),
            }),
        }
    }
}

fn connect(path: &Path) -> Result<BufReader<UnixStream>, AskError> {
    let shown = || path.display().to_string();
    let stream = UnixStream::connect(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => AskError::NotThere(shown()),
        io::ErrorKind::ConnectionRefused => AskError::Ended(shown()),
        io::ErrorKind::PermissionDenied => AskError::Denied(shown()),
        _ => AskError::System(shown(), error),
    })?;
    let set = stream.set_read_timeout(Some(CLIENT_TIMEOUT));
    let set = set.and_then(|()| stream.set_write_timeout(Some(CLIENT_TIMEOUT)));
    set.map_err(|error| AskError::System(shown(), error))?;
    Ok(BufReader::new(stream))
}

/// Maximum length of an answer, in bytes.
const MOST_ANSWER_BYTES: u64 = 16 << 20;
