//! Measures the memory of a connection: idle since it was opened, and idle after use.
//!
//! Separate because it is no race. The measure is this process's resident memory, which includes the
//! allocator's overhead.

use std::io::{Read, Write};
use std::net::SocketAddr;

use rxo_device::{MemoryLink, MemoryOptions, MemorySink, MemorySource};
use rxo_frame::{Duration, Instant, LinkKind};
use rxo_host::{Host, HostConfig, IpCidr, TcpListener, TcpStream};
use serde::Serialize;

use super::stack::{CLIENT, SERVER, SERVER_PORT};
use crate::process::resident_bytes;

/// Bytes of resident memory per end of a connection.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Memory {
    pub(super) connections: usize,
    /// Bytes of a connection that was never used.
    pub(super) unused_bytes: u64,
    /// Bytes of a connection with received, unread data in its buffers.
    pub(super) unread_bytes: u64,
    /// Bytes of a connection that is idle again after use.
    pub(super) used_bytes: u64,
}

/// Measures `connections` connections, at most 16,384, between two hosts.
pub(super) fn measure(connections: usize) -> Memory {
    let mut hosts = Hosts::new(connections);
    let before = resident();
    let each = || resident().saturating_sub(before) / (2 * connections as u64);
    let ends = hosts.open(connections);
    hosts.pass(REST);
    let unused_bytes = each();
    for [a, b] in &ends {
        for mut end in [a, b] {
            let written = end.write(&[7; TEXT_BYTES]).expect("an open connection");
            assert_eq!(written, TEXT_BYTES);
        }
        hosts.pass(Duration::from_millis(1));
    }
    let unread_bytes = each();
    for mut end in ends.iter().flatten() {
        let read = end.read(&mut [0; 2 * TEXT_BYTES]).expect("text that has arrived");
        assert_eq!(read, TEXT_BYTES);
    }
    hosts.pass(REST);
    Memory { connections, unused_bytes, unread_bytes, used_bytes: each() }
}

const TEXT_BYTES: usize = 16 << 10;
/// Time until idle connections have returned their buffers.
const REST: Duration = Duration::from_secs(3);

/// Two hosts on virtual time, with a link in each direction.
struct Hosts {
    hosts: [Host<MemorySource, MemorySink>; 2],
    listener: TcpListener,
    now: Instant,
}

impl Hosts {
    fn new(connections: usize) -> Self {
        let options = MemoryOptions { link: LinkKind::RawIp, ..MemoryOptions::default() };
        let (there, back) = (MemoryLink::new(options), MemoryLink::new(options));
        let host = |address: [u8; 4], from: &MemoryLink, to: &MemoryLink| {
            let network = IpCidr::new(address.into(), 24).expect("a network of 24 bits");
            let mut config = HostConfig::new(vec![network], [1, 2]);
            config.sockets = connections;
            config.memory_bytes = 64 << 30;
            Host::new(from.source(), to.sink(), config).expect("settings that can be")
        };
        let hosts = [host(CLIENT, &back, &there), host(SERVER, &there, &back)];
        let server = SocketAddr::from((SERVER, SERVER_PORT));
        let listener = hosts[1].handle().listen(server, 64).expect("a free port");
        listener.set_nonblocking(true).expect("a listener that lives");
        Self { hosts, listener, now: Instant::from_micros(1_000_000) }
    }

    fn open(&mut self, connections: usize) -> Vec<[TcpStream; 2]> {
        let (client, server) = (self.hosts[0].handle(), SocketAddr::from((SERVER, SERVER_PORT)));
        let mut ends = Vec::with_capacity(connections);
        while ends.len() < connections {
            let stream = client.connect_nonblocking(server).expect("a free port");
            self.pass(Duration::from_micros(100));
            let (accepted, _) = self.listener.accept().expect("a connection that is open");
            ends.push([stream, accepted]);
        }
        for end in ends.iter().flatten() {
            end.set_nonblocking(true).expect("a stream that lives");
        }
        ends
    }

    /// Advances the virtual time by `time`.
    fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        while self.now < end {
            let turns = self.hosts.each_mut().map(|host| host.turn(self.now).expect("a device"));
            if turns.iter().all(rxo_host::Turn::is_idle) {
                let due = self.hosts.iter().filter_map(Host::poll_at).min().unwrap_or(end);
                self.now = due.max(self.now + Duration::from_micros(1)).min(end);
            }
        }
    }
}

fn resident() -> u64 {
    resident_bytes(std::process::id()).expect("a system with /proc")
}

#[cfg(test)]
mod tests {
    use super::measure;

    #[test]
    fn all_states_are_reached() {
        assert_eq!(measure(50).connections, 50);
    }
}
