//! Two hosts, a link in each direction, and virtual time.

use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::time::Duration;

use rxo_device::{MemoryLink, MemoryOptions, MemorySink, MemorySource};
use rxo_frame::{Instant, LinkKind};
use rxo_host::{Handle, Host, HostConfig, TcpListener, TcpStream};

pub(crate) type MemoryHost = Host<MemorySource, MemorySink>;

/// Two hosts on virtual time.
pub(crate) struct World {
    pub(crate) client: MemoryHost,
    pub(crate) server: MemoryHost,
    pub(crate) there: MemoryLink,
    pub(crate) back: MemoryLink,
    pub(crate) now: Instant,
}

pub(crate) const SERVER: &str = "10.0.0.2:80";

pub(crate) fn server() -> SocketAddr {
    SERVER.parse().unwrap()
}

pub(crate) fn config(address: &str) -> HostConfig {
    let v6 = address.replace("10.0.0.", "fd00::").replace("/24", "/64");
    HostConfig::new(vec![address.parse().unwrap(), v6.parse().unwrap()], [7, 11])
}

pub(crate) fn options() -> MemoryOptions {
    MemoryOptions { link: LinkKind::RawIp, ..MemoryOptions::default() }
}

/// Creates two hosts and their links.
pub(crate) fn hosts(
    options: MemoryOptions,
    configs: [HostConfig; 2],
) -> (MemoryHost, MemoryHost, MemoryLink, MemoryLink) {
    let (there, back) = (MemoryLink::new(options), MemoryLink::new(options));
    let [client, server] = configs;
    let client = Host::new(back.source(), there.sink(), client).unwrap();
    let server = Host::new(there.source(), back.sink(), server).unwrap();
    (client, server, there, back)
}

impl World {
    pub(crate) fn new() -> Self {
        Self::with(options(), |_| {})
    }

    pub(crate) fn with(options: MemoryOptions, change: impl Fn(&mut HostConfig)) -> Self {
        let mut configs = [config("10.0.0.1/24"), config("10.0.0.2/24")];
        configs.iter_mut().for_each(change);
        let (client, server, there, back) = hosts(options, configs);
        Self { client, server, there, back, now: Instant::from_micros(1_000_000) }
    }

    pub(crate) fn at_client(&self) -> Handle {
        self.client.handle()
    }

    pub(crate) fn at_server(&self) -> Handle {
        self.server.handle()
    }

    /// Runs rounds of both hosts until nothing happens any more at this time.
    pub(crate) fn settle(&mut self) {
        for link in [&self.there, &self.back] {
            link.set_now(self.now);
        }
        for _ in 0..10_000 {
            let there = self.client.turn(self.now).unwrap();
            let back = self.server.turn(self.now).unwrap();
            if there.is_idle() && back.is_idle() {
                return;
            }
        }
        panic!("it never settles");
    }

    /// Runs rounds of the client only, until nothing happens; its packets stay on the link.
    pub(crate) fn client_alone(&mut self) {
        alone(&mut self.client, self.now);
    }

    /// Runs rounds of the server only, until nothing happens.
    pub(crate) fn server_alone(&mut self) {
        alone(&mut self.server, self.now);
    }

    /// Advances the time by `time`, and runs both hosts at each deadline.
    pub(crate) fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        loop {
            self.settle();
            let due = [self.client.poll_at(), self.server.poll_at()].into_iter().flatten().min();
            match due.filter(|due| *due <= end) {
                Some(due) => self.now = due.max(self.now),
                None => break,
            }
        }
        self.now = end;
        self.settle();
    }

    pub(crate) fn listen(&self, backlog: usize) -> TcpListener {
        let listener = self.at_server().listen(server(), backlog).unwrap();
        listener.set_nonblocking(true).unwrap();
        listener
    }

    /// Opens a connection and returns its two ends.
    pub(crate) fn connected(&mut self, listener: &TcpListener) -> (TcpStream, TcpStream) {
        let stream = self.at_client().connect_nonblocking(listener.local_addr().unwrap()).unwrap();
        stream.set_nonblocking(true).unwrap();
        self.settle();
        assert!(stream.is_connected().unwrap());
        let (accepted, peer) = listener.accept().unwrap();
        assert_eq!(peer, stream.local_addr().unwrap());
        accepted.set_nonblocking(true).unwrap();
        (stream, accepted)
    }
}

fn alone(host: &mut MemoryHost, now: Instant) {
    let is_settled = (0..10_000).any(|_| host.turn(now).unwrap().is_idle());
    assert!(is_settled, "it never settles");
}

/// Reads all available data; the flag is `true` if the peer has closed.
pub(crate) fn drain(mut stream: &TcpStream) -> io::Result<(Vec<u8>, bool)> {
    let (mut all, mut buffer) = (Vec::new(), [0; 4096]);
    loop {
        match stream.read(&mut buffer) {
            Ok(0) => return Ok((all, true)),
            Ok(read) => all.extend_from_slice(&buffer[..read]),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok((all, false)),
            Err(error) => return Err(error),
        }
    }
}

/// Writes as much of `data` as fits. Returns the number of bytes.
pub(crate) fn fill(mut stream: &TcpStream, data: &[u8]) -> usize {
    match stream.write(data) {
        Ok(written) => written,
        Err(error) => {
            assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
            0
        }
    }
}

/// Returns bytes without repeating sequences.
pub(crate) fn pattern(bytes: usize) -> Vec<u8> {
    (0..bytes as u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect()
}
