//! A tunnel in tasks of a multi-threaded tokio: a TUN that other code has opened, and trains of datagrams.
//!
//! Each direction is a task that may move between threads. Datagrams have no cipher here; one is called where `write` and
//! `push` are. As root, with an interface made by `ip tuntap add tun9 mode tun vnet_hdr`:
//! `cargo run -p rxo --example tokio_tun -- tun9 PORT PEER:PORT`. The live tests run two ends of it.

use std::error::Error;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use rxo::FrameSink;
use rxo::driver::udp::{Outbox, UdpOptions, UdpSink, UdpSocket, UdpSource};
use rxo::driver::{DeviceSink, SubmitMode, Tap, TapKind, TapSource};
use rxo::io::{PacketReader, PacketWriter};
use tokio::io::unix::AsyncFd;

type Outcome = Result<(), Box<dyn Error + Send + Sync>>;

/// Maximum number of frames of up to 64 KiB that are read at once.
const BUDGET: usize = 4;
/// The memory for the datagrams of these frames, in bytes.
const OUTBOX_BYTES: usize = 1 << 19;
/// Maximum number of packets that are coalesced together.
const BATCH: usize = 512;

/// Passes packets between `tun` and `peer` until an error.
pub(crate) async fn forward(tun: &Tap, socket: &UdpSocket, peer: SocketAddr) -> Outcome {
    let reader = registered(PacketReader::new(tun.source()?))?;
    let datagrams = registered(socket.source())?;
    // The thread of a task changes, so its writes are not bound to one.
    let writer = PacketWriter::new(tun.sink(SubmitMode::Writev)?, BATCH)?;
    let outward = tokio::spawn(outward(reader, socket.sink(), peer));
    // A second registration of the TUN, too, for a queue that is full.
    let writable = registered(tun.as_fd().try_clone_to_owned()?)?;
    let inward = tokio::spawn(inward(datagrams, writer, writable));
    tokio::select! { done = outward => done?, done = inward => done? }
}

async fn outward(
    mut tun: AsyncFd<PacketReader<TapSource>>,
    mut udp: UdpSink,
    peer: SocketAddr,
) -> Outcome {
    // A second registration of the socket needs a descriptor of its own.
    let writable = registered(udp.as_fd().try_clone_to_owned()?)?;
    let mut outbox = Outbox::new(OUTBOX_BYTES);
    loop {
        let mut ready = tun.readable_mut().await?;
        let frames = ready.get_inner_mut().read(BUDGET, |packet| {
            if let Some(room) = outbox.room(packet.len()) {
                room.copy_from_slice(packet);
                outbox.push(packet.len(), peer);
            }
        })?;
        if frames < BUDGET {
            ready.clear_ready();
        }
        while !udp.send(&mut outbox) {
            writable.writable().await?.clear_ready();
        }
    }
}

async fn inward(
    mut udp: AsyncFd<UdpSource>,
    mut tun: PacketWriter<DeviceSink>,
    writable: AsyncFd<OwnedFd>,
) -> Outcome {
    loop {
        let mut ready = udp.readable_mut().await?;
        let mut written = Ok(());
        let messages = ready.get_inner_mut().receive(|train| {
            for packet in train.datagrams() {
                let done = tun.write(packet);
                written = std::mem::replace(&mut written, Ok(())).and(done);
            }
        })?;
        written.and(tun.flush())?;
        if messages == 0 {
            ready.clear_ready();
        }
        while tun.sink().is_blocked() {
            writable.writable().await?.clear_ready();
            tun.sink_mut().resume()?;
        }
    }
}

/// Registers an end, which keeps its descriptor open and the same as long as it lives.
#[allow(deprecated, reason = "the newer function is unsafe, for ends that do not promise this")]
fn registered<T: AsRawFd>(end: T) -> io::Result<AsyncFd<T>> {
    AsyncFd::new(end)
}

#[allow(dead_code, reason = "the tests call `forward`")]
fn main() -> Outcome {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let [name, port, peer] = &arguments[..] else { return Err("give TUN PORT PEER:PORT".into()) };
    // Any descriptor does; here it is that of rxo's own.
    let opened = Tap::open(name, TapKind::Tun)?;
    let tun = Tap::from_fd(opened.as_fd().try_clone_to_owned()?)?;
    tun.interface().set_up(true)?;
    let socket = UdpSocket::bind_any(port.parse()?, UdpOptions::default())?;
    let (peer, runtime) = (peer.parse()?, runtime()?);
    runtime.block_on(forward(&tun, &socket, peer))
}

pub(crate) fn runtime() -> io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_io().build()
}
