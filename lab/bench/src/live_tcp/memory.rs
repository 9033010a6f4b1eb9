//! The memory of a receiving connection, idle and active.
//!
//! Of rxo it is what the process `rxo sink` has in memory for each connection beyond its first, the application
//! included. Of Linux it is what the kernel has allocated for a socket: its objects, which
//! `/proc/slabinfo` gives sizes of, and what `SO_MEMINFO` says is in its queues or set aside for them.

use std::fs;
use std::io::Read;
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use rxo_testbed::{Lab, socket_memory_bytes};
use serde::Serialize;

use super::case::{Case, Direction, Net};
use super::place::{Place, Stack};
use super::transfer::{PORT, TIMEOUT, accept, give, limit, pattern};
use crate::process::{Process, resident_bytes};

/// The memory of a connection.
#[derive(Debug, Serialize)]
pub(super) struct Memory {
    pub(super) stack: Stack,
    pub(super) connections: usize,
    /// Bytes of an open connection before any data was sent.
    pub(super) idle_bytes: u64,
    /// Peak bytes while all connections receive at once.
    pub(super) active_bytes: u64,
}

/// The wire of the measurement.
pub(super) const NET: Net = Net { mtu: 1_500, tso: false, delay_ms: 0, loss_percent: 0 };

/// Measures the connections of `place`, which must have a wire.
///
/// # Errors
/// If the stack fails, or the system does not report its memory.
pub(super) fn measure(place: &Place) -> Result<Memory> {
    let (idle_bytes, active_bytes) = match place.stack {
        Stack::Linux => of_linux(place)?,
        Stack::Rxo => of_rxo(place)?,
    };
    Ok(Memory { stack: place.stack, connections: CONNECTIONS, idle_bytes, active_bytes })
}

fn of_rxo(place: &Place) -> Result<(u64, u64)> {
    let one = rxo_with(place, 1, |process, _| stable_memory(process))?;
    let (idle, active) = rxo_with(place, CONNECTIONS, |process, streams| {
        let idle = stable_memory(process)?;
        Ok((idle, most_while_receiving(&streams, || resident_bytes(process.id()))?))
    })?;
    let each = |all: u64| all.saturating_sub(one) / (CONNECTIONS as u64 - 1);
    Ok((each(idle), each(active)))
}

/// Runs `rxo sink` with `connections` connections, and measures it.
fn rxo_with<T>(
    place: &Place,
    connections: usize,
    measure: impl FnOnce(&mut Process, Vec<TcpStream>) -> Result<T>,
) -> Result<T> {
    let case = Case { net: NET, connections, direction: Direction::Receiving, bytes: BYTES };
    let listener = place.listen()?;
    let mut process = Process::start(place.namespace(), place.command(&case))?;
    let streams: Result<Vec<_>> =
        (0..connections).map(|_| accept(&listener, &mut || process.check())).collect();
    measure(&mut process, streams?)
}

fn of_linux(place: &Place) -> Result<(u64, u64)> {
    let listener = place.listen()?;
    let address = SocketAddr::from((Lab::PEER_ADDRESSES.0, PORT));
    let connect = || TcpStream::connect_timeout(&address, TIMEOUT);
    let mut pairs = Vec::new();
    for _ in 0..CONNECTIONS {
        let own = place.namespace().run(connect)?.context("cannot connect")?;
        limit(&own)?;
        pairs.push((own, accept(&listener, &mut || Ok(()))?));
    }
    let (own, streams): (Vec<_>, Vec<_>) = pairs.into_iter().unzip();
    let objects = socket_objects()?;
    let queued = || own.iter().map(|stream| Ok(socket_memory_bytes(stream)?)).sum::<Result<u64>>();
    let idle = queued()?;
    let active = thread::scope(|scope| {
        for mut stream in &own {
            scope.spawn(move || {
                let mut call = vec![0; 256 << 10];
                // A read error here also fails the sender, which reports it.
                while stream.read(&mut call).is_ok_and(|read| read > 0) {}
                stream.shutdown(std::net::Shutdown::Both)
            });
        }
        most_while_receiving(&streams, queued)
    })?;
    let each = |all: u64| objects + all / CONNECTIONS as u64;
    Ok((each(idle), each(active)))
}

/// Sends to all `streams` at once. Returns the maximum of `used` meanwhile.
fn most_while_receiving(streams: &[TcpStream], used: impl Fn() -> Result<u64>) -> Result<u64> {
    let pattern = pattern();
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let pattern = &pattern[..];
        let send = |stream| give(stream, pattern, BYTES / CONNECTIONS as u64);
        let senders: Vec<_> =
            streams.iter().map(|stream| scope.spawn(move || send(stream))).collect();
        let watched = scope.spawn(|| {
            let sent = senders.into_iter().try_for_each(|sender| {
                let sent = sender.join().map_err(|_| anyhow!("a sender has panicked"))?;
                sent.map(|_| ()).context("the peer cannot send")
            });
            is_over.store(true, Ordering::Release);
            sent
        });
        let mut most = used()?;
        while !is_over.load(Ordering::Acquire) {
            // At the end the process may have gone, so an error counts as zero.
            most = most.max(used().unwrap_or(0));
            thread::sleep(Duration::from_millis(10));
        }
        watched.join().map_err(|_| anyhow!("the watcher has panicked"))??;
        Ok(most)
    })
}

/// Returns the memory of a process once it has stopped changing.
fn stable_memory(process: &Process) -> Result<u64> {
    let deadline = Instant::now() + TIMEOUT;
    let mut last = 0;
    loop {
        let now = resident_bytes(process.id())?;
        if now == last {
            return Ok(now);
        }
        if Instant::now() > deadline {
            bail!("the memory of rxo does not become stable: {last} and {now} bytes");
        }
        last = now;
        thread::sleep(Duration::from_millis(300));
    }
}

/// Returns the size of a socket's kernel objects, in bytes.
fn socket_objects() -> Result<u64> {
    let slabs = fs::read_to_string("/proc/slabinfo").context("cannot read /proc/slabinfo")?;
    OBJECTS
        .iter()
        .map(|name| {
            object_bytes(&slabs, name)
                .with_context(|| format!("/proc/slabinfo has no {name}; boot with slab_nomerge"))
        })
        .sum()
}

fn object_bytes(slabs: &str, name: &str) -> Option<u64> {
    let mut rows = slabs.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    rows.find(|row| row.first() == Some(&name))?.get(3)?.parse().ok()
}

/// Slab caches of a socket, its inode, its file and its name.
const OBJECTS: [&str; 4] = ["TCP", "sock_inode_cache", "filp", "dentry"];
const CONNECTIONS: usize = 400;
const BYTES: u64 = 400_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_size_of_an_object_is_the_fourth_field() {
        let slabs = "slabinfo - version: 2.1\nTCPv6 1 2 2496 13\nTCP 65 65 2368 13 8 : tunables";
        assert_eq!(object_bytes(slabs, "TCP"), Some(2_368));
        assert_eq!(object_bytes(slabs, "UDP"), None);
    }
}
