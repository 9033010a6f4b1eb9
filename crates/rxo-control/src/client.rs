//! The asking end.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::{Answer, BadAnswer, PATIENCE, Request};

/// A connection to a process.
#[derive(Debug)]
pub struct Session {
    stream: BufReader<UnixStream>,
    path: PathBuf,
}

/// Why there is no answer. Each is one line with the remedy.
#[derive(Debug, Error)]
pub enum AskError {
    /// There is no such file.
    #[error("there is no socket {0}; start a process with --control {0}")]
    NotThere(String),
    /// Nobody listens.
    #[error("nobody listens on {0}: its process has ended; start one with --control {0}")]
    Ended(String),
    /// The mode of the file does not let this user in.
    #[error("this user may not use {0}; ask as its owner, or as root")]
    Denied(String),
    /// No answer in time.
    #[error("the process at {path} does not answer within {} s; is it stopped?", PATIENCE.as_secs())]
    Silent {
        /// The socket.
        path: String,
    },
    /// The process closed the connection first.
    #[error("the process at {0} closed the connection without an answer; it may have ended")]
    Closed(String),
    /// What listens there is something else.
    #[error("{0}: {1}")]
    Bad(String, BadAnswer),
    /// The system refuses.
    #[error("cannot use {0}: {1}; give the socket of --control")]
    System(String, io::Error),
}

impl Session {
    /// Connects to the process that listens at `path`.
    ///
    /// # Errors
    /// If there is none, or it may not be asked.
    pub fn open(path: &Path) -> Result<Self, AskError> {
        Ok(Self { stream: connect(path)?, path: path.to_owned() })
    }

    /// Asks, and waits for the answer. A session that the process has dropped, because nothing was asked for
    /// [`PATIENCE`], connects again first.
    ///
    /// # Errors
    /// If none comes.
    pub fn ask(&mut self, request: &Request) -> Result<Answer, AskError> {
        if self.is_dropped() {
            self.stream = connect(&self.path)?;
        }
        self.ask_once(request)
    }

    /// Whether the process has closed the connection, and left nothing to read.
    fn is_dropped(&mut self) -> bool {
        let set = |is_nonblocking| self.stream.get_ref().set_nonblocking(is_nonblocking);
        if set(true).is_err() {
            return false;
        }
        let is_at_end = self.stream.fill_buf().is_ok_and(<[u8]>::is_empty);
        // It was set a moment ago. If it stays so, asking fails with the reason.
        _ = self.stream.get_ref().set_nonblocking(false);
        is_at_end
    }

    fn ask_once(&mut self, request: &Request) -> Result<Answer, AskError> {
        let line = format!("{}\n", request.line());
        // A process that has too many clients says so and does not read.
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
    let set = stream.set_read_timeout(Some(PATIENCE));
    let set = set.and_then(|()| stream.set_write_timeout(Some(PATIENCE)));
    set.map_err(|error| AskError::System(shown(), error))?;
    Ok(BufReader::new(stream))
}

/// No answer is longer.
const MOST_ANSWER_BYTES: u64 = 16 << 20;
