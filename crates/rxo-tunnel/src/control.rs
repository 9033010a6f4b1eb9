//! The control socket: `/var/run/wireguard/INTERFACE.sock`, by which `wg` reads and changes the interface.
//!
//! A thread per client serves requests, so that no client delays another. Packets do not wait for clients: a
//! request is parsed before the interface is locked, and its answer is written after the lock is released.
//! Contract: the socket file has mode 0600 from its creation, and is removed at the end unless another process
//! has replaced it.

use std::fs::{self, DirBuilder};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use rustix::fs::Mode;
use rustix::process::umask;

use crate::interface::Shared;
use crate::uapi::{Reader, Refusal, Request, answer, figures};

/// The folder in which `wg` looks for sockets.
const FOLDER: &str = "/var/run/wireguard";

/// Maximum number of clients at a time.
const MOST_CLIENTS: usize = 16;

/// The time after which an idle client is disconnected: a client that sends no request or does not read its
/// answer.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The interval between attempts to connect to an existing socket. [`ENDING_CHECKS`] such attempts wait two
/// seconds for another process to end.
const CHECK_INTERVAL: Duration = Duration::from_millis(100);
const ENDING_CHECKS: u32 = 20;

/// The control socket: its listener and its file.
#[derive(Debug)]
pub(crate) struct ControlSocket {
    path: PathBuf,
    /// The inode number of the socket file. A different inode under the path means that another process
    /// replaced the file.
    inode: u64,
    listener: UnixListener,
}

impl ControlSocket {
    /// Creates the control socket of `interface`. Replaces an existing socket file that no process serves.
    ///
    /// # Errors
    /// If another process serves the socket, or the folder cannot be written.
    pub(crate) fn open(interface: &str) -> Result<Self> {
        let path = Path::new(FOLDER).join(format!("{interface}.sock"));
        let cannot = || format!("cannot make {}; run as root", path.display());
        // The mode is explicit, because a user who can write to this folder can replace the socket.
        DirBuilder::new().recursive(true).mode(0o755).create(FOLDER).with_context(cannot)?;
        if is_served(&path) {
            bail!("{}: another program serves `{interface}`; end it first", path.display());
        }
        if path.exists() {
            fs::remove_file(&path).with_context(cannot)?;
        }
        // Set before the file exists, so that there is no moment in which others could connect.
        let before = umask(Mode::from_raw_mode(0o177));
        let listener = UnixListener::bind(&path);
        umask(before);
        let listener = listener.with_context(cannot)?;
        let inode = fs::metadata(&path).with_context(cannot)?.ino();
        Ok(Self { path, inode, listener })
    }

    /// Returns `true` while the socket file exists and was not replaced. A user ends the tunnel by removing
    /// this file.
    pub(crate) fn exists(&self) -> bool {
        fs::metadata(&self.path).is_ok_and(|it| it.ino() == self.inode)
    }

    /// Starts a thread that serves clients until the process ends.
    ///
    /// # Errors
    /// If the system cannot start a thread.
    pub(crate) fn serve(&self, shared: Arc<Shared>) -> Result<()> {
        let cannot = "cannot serve the control socket";
        let listener = self.listener.try_clone().context(cannot)?;
        let accept = move || {
            let places = Arc::new(());
            for stream in listener.incoming() {
                match stream {
                    // Dropping the stream closes it.
                    Ok(_) if Arc::strong_count(&places) > MOST_CLIENTS => {}
                    Ok(stream) => start(stream, Arc::clone(&shared), Arc::clone(&places)),
                    // Descriptors may be free again later.
                    Err(_) => thread::sleep(CHECK_INTERVAL),
                }
            }
        };
        thread::Builder::new().name("control".to_owned()).spawn(accept).context(cannot)?;
        Ok(())
    }
}

impl Drop for ControlSocket {
    fn drop(&mut self) {
        if self.exists() {
            // If this process may not remove the file, the next process replaces it.
            _ = fs::remove_file(&self.path);
        }
    }
}

/// Returns `true` if a process serves the socket. Waits up to two seconds for that process to end, because a
/// process whose interface was just deleted ends soon.
fn is_served(path: &Path) -> bool {
    for _ in 0..ENDING_CHECKS {
        if UnixStream::connect(path).is_err() {
            return false;
        }
        thread::sleep(CHECK_INTERVAL);
    }
    true
}

/// Starts a thread that serves a client. The thread keeps `place` until it ends: the reference count of `place`
/// limits the number of clients. If no thread can be started, the client is disconnected.
fn start(stream: UnixStream, shared: Arc<Shared>, place: Arc<()>) {
    let serve = move || {
        let _place = place;
        // The client has gone, or is too slow.
        _ = converse(stream, &shared);
    };
    _ = thread::Builder::new().name("client".to_owned()).spawn(serve);
}

/// Answers requests until the client closes the connection, is idle for [`TIMEOUT`], or sends a request that
/// is too long.
fn converse(mut stream: UnixStream, shared: &Shared) -> io::Result<()> {
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    let (mut reader, mut bytes) = (Reader::default(), [0; 4_096]);
    loop {
        while let Some(request) = reader.take_request() {
            let is_last = request == Err(Refusal::TooLong);
            stream.write_all(reply(request, shared).as_bytes())?;
            if is_last {
                return Ok(());
            }
        }
        match stream.read(&mut bytes) {
            Ok(0) => return Ok(()),
            Ok(count) => reader.push(&bytes[..count]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

fn reply(request: Result<Request, Refusal>, shared: &Shared) -> String {
    match request {
        Ok(Request::Get) => {
            let status = shared.read().status();
            answer(&figures(&status), Ok(()))
        }
        Ok(Request::Set(settings)) => answer("", shared.apply(&settings)),
        Err(refusal) => answer("", Err(refusal)),
    }
}
