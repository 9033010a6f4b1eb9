//! An echo server on several cores: a host in shards, each with its own packet ring and thread.
//!
//! ```sh
//! cargo run --release -p rxo --example sharded -- eth1 192.0.2.7/24 4
//! ```
//!
//! `eth1` must be up, and the system must not have an address on it.

use std::io;
use std::net::Shutdown;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Sender, channel};
use std::thread;

use rxo::driver::{DeviceBuf, DeviceSink, Isolation, PacketOptions, PacketSource};
use rxo::host::{Handle, HostConfig, ShardOpener};
use rxo::live::{SystemWaiter, host};

type Outcome<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

fn main() -> Outcome<()> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let [interface, address, cores] = &arguments[..] else {
        return Err(
            "give an interface, an address and a number of cores, such as eth1 192.0.2.7/24 4"
                .into(),
        );
    };
    let mut config = host::config(vec![address.parse()?]);
    let (started, starting) = channel();
    thread::scope(|scope| {
        let running = scope.spawn(|| run(interface, &mut config, cores.parse()?, started));
        if let Ok(handle) = starting.recv() {
            scope.spawn(move || serve(&handle));
        }
        running.join().map_err(|_| "the host has panicked")?
    })
}

/// Runs a host in `shards`, each on its own thread, and sends its handle as soon as all shards run.
fn run(
    interface: &str,
    config: &mut HostConfig,
    shards: u32,
    started: Sender<Handle>,
) -> Outcome<()> {
    // The sockets form a group, among which the kernel divides the connections.
    let sources = PacketSource::open_shards(interface, PacketOptions::default(), shards)?;
    config.mac = Some(sources[0].interface().hardware_address()?);
    // The kernel itself would answer the connections with resets.
    let addresses: Vec<_> = config.addresses.iter().map(|cidr| cidr.address()).collect();
    let _isolation = Isolation::of_addresses(interface, &addresses);
    let openers = ShardOpener::all(sources.len(), config)?;
    thread::scope(|scope| {
        let start = |(opener, source)| {
            let started = started.clone();
            scope.spawn(move || run_shard(interface, opener, source, &started))
        };
        let running: Vec<_> = openers.into_iter().zip(sources).map(start).collect();
        let ends =
            running.into_iter().map(|shard| shard.join().map_err(|_| "a shard has panicked")?);
        ends.collect()
    })
}

/// Runs a shard, which sends through a socket that its own thread opens.
fn run_shard(
    interface: &str,
    opener: ShardOpener<DeviceBuf>,
    source: PacketSource,
    started: &Sender<Handle>,
) -> Outcome<()> {
    let sink = DeviceSink::packet(interface)?;
    let (mut shard, handle) = opener.open(source, sink)?;
    // The handle of each shard is that of the whole host, so one is enough.
    let _sent = started.send(handle);
    Ok(shard.run(&mut SystemWaiter::new(), &AtomicBool::new(false), |_, _| {})?)
}

/// Echoes the data of all connections; the listener accepts from all shards.
fn serve(handle: &Handle) -> io::Result<()> {
    let listener = handle.listen(([0, 0, 0, 0], 7).into(), 128)?;
    loop {
        let (stream, _peer) = listener.accept()?;
        thread::spawn(move || {
            io::copy(&mut &stream, &mut &stream)?;
            stream.shutdown(Shutdown::Write)
        });
    }
}
