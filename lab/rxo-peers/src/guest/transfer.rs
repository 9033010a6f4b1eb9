//! Transfers files into a guest and back, over its card.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::{Guest, GuestImage};
use rxo_testbed::Namespace;
use rxo_testbed::error::{Context, LabError, Result, failed};

/// Port for both directions.
const PORT: u16 = 5_000;
/// File in which the guest stores received data.
const FILE: &str = "/tmp/received";
/// Pause between two attempts to connect.
const AGAIN: Duration = Duration::from_millis(50);

impl Guest {
    /// Sends `content` to the guest by TCP from `network`. Returns the SHA-256 that the guest computed of the
    /// received data.
    ///
    /// # Errors
    /// If the transfer takes longer than `timeout`, or a connection breaks.
    pub fn send(
        &mut self,
        network: &Namespace,
        content: &[u8],
        timeout: Duration,
    ) -> Result<String> {
        let address = SocketAddr::from((self.address, PORT));
        self.start(&format!("nc -l -p {PORT} >{FILE}; sha256sum {FILE}"))?;
        let deadline = Instant::now() + timeout;
        let sent = network.run(|| -> io::Result<()> {
            let mut stream = connect(address, deadline)?;
            stream.set_write_timeout(Some(timeout))?;
            stream.write_all(content)
        })?;
        sent.context(|| format!("cannot send to the guest {address}"))?;
        self.finish(timeout).map(|text| first_word(&text))
    }

    /// Fetches the data that the guest received last. The guest sends it to `host`, an address of `network`.
    ///
    /// # Errors
    /// If the transfer takes longer than `timeout`, or a connection breaks.
    pub fn fetch(
        &mut self,
        network: &Namespace,
        host: Ipv4Addr,
        timeout: Duration,
    ) -> Result<Vec<u8>> {
        let guest = self.address;
        let cannot = move || format!("cannot receive from the guest {guest}");
        let listener = network.run(|| TcpListener::bind((host, PORT)))?.context(cannot)?;
        self.start(&format!("nc {host} {PORT} <{FILE}"))?;
        let deadline = Instant::now() + timeout;
        let receive = || -> io::Result<Vec<u8>> {
            let mut stream = accept(&listener, deadline)?;
            stream.set_read_timeout(Some(timeout))?;
            let mut content = Vec::new();
            stream.read_to_end(&mut content)?;
            Ok(content)
        };
        let content = receive().context(cannot)?;
        self.finish(timeout)?;
        Ok(content)
    }
}

impl GuestImage {
    /// Returns the SHA-256 of `content`, computed by the same program as the guest's.
    ///
    /// # Errors
    /// If the program fails.
    pub fn hash(&self, content: &[u8]) -> Result<String> {
        let hash = || -> io::Result<String> {
            let mut command = Command::new(self.busybox());
            command.arg("sha256sum").stdin(Stdio::piped()).stdout(Stdio::piped());
            let output = super::run_with_input(&mut command, content)?;
            Ok(first_word(&String::from_utf8_lossy(&output.stdout)))
        };
        let hash = hash().context(|| format!("cannot run {}", self.busybox().display()))?;
        let is_hash = hash.len() == 64;
        if is_hash { Ok(hash) } else { Err(no_hash(&hash)) }
    }
}

fn no_hash(text: &str) -> LabError {
    failed(format!("busybox sha256sum printed {text:?}"))
}

/// Connects to the guest, and retries until it listens or the deadline has passed.
fn connect(address: SocketAddr, deadline: Instant) -> io::Result<TcpStream> {
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        match TcpStream::connect_timeout(&address, left.max(AGAIN)) {
            Ok(stream) => return Ok(stream),
            Err(error) if left.is_zero() => return Err(error),
            Err(_) => thread::sleep(AGAIN),
        }
    }
}

fn accept(listener: &TcpListener, deadline: Instant) -> io::Result<TcpStream> {
    listener.set_nonblocking(true)?;
    loop {
        match listener.accept() {
            Ok((stream, _)) => {
                stream.set_nonblocking(false)?;
                return Ok(stream);
            }
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => return Err(error),
            Err(error) if Instant::now() >= deadline => return Err(error),
            Err(_) => thread::sleep(AGAIN),
        }
    }
}

fn first_word(text: &str) -> String {
    text.split_whitespace().next().unwrap_or_default().to_owned()
}
