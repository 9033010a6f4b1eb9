//! Reload: reads the file of a run's flags again, on SIGHUP or when the worker requests it.
//!
//! The keeper opens the file and sends the descriptor to the worker, which reads it; so the worker needs no
//! permission to open files. A SIGHUP because the terminal was closed is not a reload, but a request to end the
//! run.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use super::channel::{Order, Report};
use super::requests::Requests;

/// An order to the worker to read the file of the run's flags, and to apply them.
#[derive(Debug)]
pub struct Reload {
    /// The open file, or the error with which the keeper failed to open it.
    pub file: io::Result<File>,
    /// `true` if the worker has requested the reload; `false` after a SIGHUP.
    pub is_asked: bool,
}

/// A handle by which the worker requests the file of the run's flags from the keeper.
#[derive(Debug)]
pub struct ReloadAsker(pub(super) UnixStream);

impl ReloadAsker {
    /// Requests the file, which then arrives as a [`Reload`].
    ///
    /// # Errors
    /// If the keeper is gone.
    pub fn ask(&self) -> io::Result<()> {
        Report::Reload.send(&self.0, &[])
    }
}

/// The keeper's side of reloading: the path of the file, and the stream of SIGHUPs.
#[derive(Debug)]
pub(super) struct Reloads {
    path: PathBuf,
    /// The stream that yields one byte for each SIGHUP; `None` under `nohup`.
    hangups: Option<Requests>,
    /// `true` if the process had a terminal when it started.
    had_terminal: bool,
}

/// The meaning of a SIGHUP to the keeper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hangup {
    /// The user wants the file to be read again.
    Reload,
    /// The terminal of the run was closed.
    Closed,
}

impl Reloads {
    pub(super) fn new(path: &Path, hangups: Option<UnixStream>) -> io::Result<Self> {
        let hangups = hangups.map(Requests::new).transpose()?;
        Ok(Self { path: path.to_owned(), hangups, had_terminal: has_terminal() })
    }

    /// Returns the meaning of the SIGHUPs since the last call; `None` if there was none.
    pub(super) fn hangup(&mut self) -> Option<Hangup> {
        let count = self.hangups.as_mut().map_or(0, Requests::count);
        (count > 0).then(|| meaning(self.had_terminal, has_terminal()))
    }

    pub(super) fn stream(&self) -> Option<BorrowedFd<'_>> {
        self.hangups.as_ref()?.0.as_ref().map(AsFd::as_fd)
    }

    /// Sends the file to the worker. If the worker is gone, the next `receive` returns an error.
    pub(super) fn send(&self, to: &UnixStream, is_asked: bool) {
        _ = match open(&self.path) {
            Ok(file) => Order::Reload { is_asked, refused: 0 }.send_with(to, &[file.as_fd()]),
            Err(error) => {
                let refused = error.raw_os_error().unwrap_or(libc::EINVAL).unsigned_abs();
                Order::Reload { is_asked, refused }.send(to)
            }
        };
    }
}

/// Opens the regular file at `path`. Other files are refused, because opening or reading a FIFO could wait
/// for another process.
fn open(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(ErrorKind::InvalidInput.into()) }
}

/// Returns the meaning of a SIGHUP: a process that has lost its terminal must end the run. A service never
/// had a terminal, so its SIGHUP is a reload.
const fn meaning(had_terminal: bool, has_terminal: bool) -> Hangup {
    if had_terminal && !has_terminal { Hangup::Closed } else { Hangup::Reload }
}

fn has_terminal() -> bool {
    File::open("/dev/tty").is_ok()
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use super::*;

    #[test]
    fn only_a_terminal_that_is_lost_means_the_end() {
        assert_eq!(meaning(true, false), Hangup::Closed);
        for (had, has) in [(true, true), (false, false), (false, true)] {
            assert_eq!(meaning(had, has), Hangup::Reload);
        }
    }

    #[test]
    fn several_at_once_are_one() {
        let (stream, mut ask) = UnixStream::pair().unwrap();
        let mut reloads = Reloads::new(Path::new("/nowhere"), Some(stream)).unwrap();
        assert_eq!(reloads.hangup(), None);
        ask.write_all(&[0; 3]).unwrap();
        assert_eq!((reloads.hangup(), reloads.hangup()), (Some(Hangup::Reload), None));
        assert_eq!(Reloads::new(Path::new("/nowhere"), None).unwrap().hangup(), None);
    }

    #[test]
    fn the_worker_gets_the_file_or_the_reason() {
        let (keeper, worker) = UnixStream::pair().unwrap();
        let received = |path: &str, is_asked| {
            Reloads::new(Path::new(path), None).unwrap().send(&keeper, is_asked);
            let (order, files) = Order::receive(&worker).unwrap();
            order.reload(files).unwrap()
        };
        let mut got = received("/proc/self/status", true);
        let mut text = String::new();
        got.file.as_mut().unwrap().read_to_string(&mut text).unwrap();
        assert!(got.is_asked && text.starts_with("Name:"), "{text}");
        let rows = [("/nowhere", ErrorKind::NotFound), ("/dev", ErrorKind::InvalidInput)];
        for (path, kind) in rows {
            let got = received(path, false);
            assert_eq!((got.file.unwrap_err().kind(), got.is_asked), (kind, false));
        }
    }
}
