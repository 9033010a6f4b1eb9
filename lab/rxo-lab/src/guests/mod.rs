//! Runs receiving guests: Linux in virtual machines, with network cards emulated by rxo.
//!
//! A guest's program reads and discards 64 KiB at a time, or answers ([`echo`]). A guest is behind a driver
//! [`domain`], or on a [`machine`] with a card.

pub(crate) mod domain;
pub(crate) mod echo;
pub(crate) mod machine;

use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use rxo_console::output;
use rxo_peers::{Guest, GuestImage, GuestNet, GuestOptions, Processor, Profile};
use rxo_testbed::{Lab, Namespace};

/// Result of one transfer to a guest.
pub(crate) struct Received {
    pub(crate) profile: Profile,
    pub(crate) took: Duration,
}

/// Finds the kernel and programs for guests. As root it installs missing programs, and says so in one line.
/// Call it before entering a private network, which cannot reach package servers.
///
/// # Errors
/// If a part is missing; the message is one line and names the package.
pub(crate) fn image() -> Result<GuestImage> {
    GuestImage::install_programs(output::aside)?;
    Ok(GuestImage::find()?)
}

/// Boots the `n`-th guest, counted from 0, with its card at `socket`.
pub(crate) fn boot(
    image: &GuestImage,
    processor: Processor,
    socket: &Path,
    n: usize,
) -> Result<Guest> {
    let options = GuestOptions {
        net: GuestNet::Vhost(socket.to_owned()),
        address: (address(n), 24),
        number: 2 + n as u8,
        processor,
    };
    let mut guest = Guest::boot(image, &options)?;
    // Larger buffers would overflow the ring, and lost frames would break up aggregates.
    guest.run(&format!("echo {BUFFER} >/proc/sys/net/ipv4/tcp_rmem"), TIMEOUT)?;
    Ok(guest)
}

/// Returns the address of the `n`-th guest, counted from 0.
pub(crate) fn address(n: usize) -> Ipv4Addr {
    let [a, b, c, first] = Lab::HOST_ADDRESSES.0.octets();
    Ipv4Addr::new(a, b, c, first + n as u8)
}

/// Sends `bytes` bytes to the `n`-th guest. Returns the instructions that the guest executed meanwhile.
pub(crate) fn receive(
    guest: &mut Guest,
    peer: &Namespace,
    n: usize,
    bytes: usize,
) -> Result<Received> {
    let before = guest.profile()?;
    let took = transfer(guest, peer, n, bytes)?;
    Ok(Received { profile: guest.profile()?.since(&before), took })
}

/// Sends `bytes` bytes to the `n`-th guest. Returns the time from the connection to the end of the transfer.
pub(crate) fn transfer(
    guest: &mut Guest,
    peer: &Namespace,
    n: usize,
    bytes: usize,
) -> Result<Duration> {
    guest.start(&format!("nc -l -p {PORT} -e dd of=/dev/null bs=65536 2>/dev/null"))?;
    let content = vec![0x5a; bytes];
    let sent = peer.run(|| -> Result<Instant> {
        let mut stream = connect(address(n))?;
        let begun = Instant::now();
        stream.set_write_timeout(Some(TIMEOUT))?;
        stream.write_all(&content)?;
        Ok(begun)
    })?;
    let begun = sent.context("cannot send to the guest")?;
    guest.finish(TIMEOUT)?;
    Ok(begun.elapsed())
}

/// Connects to `guest`, and retries until it listens.
///
/// # Errors
/// If the guest does not listen in time.
pub(crate) fn connect(guest: Ipv4Addr) -> Result<TcpStream> {
    let (address, deadline) = (SocketAddr::from((guest, PORT)), Instant::now() + TIMEOUT);
    loop {
        match TcpStream::connect_timeout(&address, TIMEOUT) {
            Ok(stream) => return Ok(stream),
            Err(error) => {
                ensure!(Instant::now() < deadline, "the guest does not listen: {error}");
                thread::sleep(AGAIN);
            }
        }
    }
}

/// Runs `work` for each item of `all` on its own thread. `work` receives the item's index, counted from 0,
/// and the item.
///
/// # Errors
/// The first error, with the item's index.
pub(crate) fn at_once<I: Send, T: Send>(
    all: impl Iterator<Item = I>,
    work: impl Fn(usize, I) -> Result<T> + Sync,
) -> Result<Vec<T>> {
    let work = &work;
    thread::scope(|scope| {
        let threads: Vec<_> =
            all.enumerate().map(|(n, one)| scope.spawn(move || work(n, one))).collect();
        let ended = threads.into_iter().enumerate().map(|(n, thread)| {
            let ended = thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            ended.with_context(|| format!("guest {n}"))
        });
        ended.collect()
    })
}

/// The port on which guests listen.
pub(crate) const PORT: u16 = 5_001;
/// Minimum, default and maximum of a receive buffer, in bytes. The resulting window fits into the ring.
const BUFFER: &str = "4096 262144 262144";
/// Timeout for a guest's actions, long because guests are emulated.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(180);
const AGAIN: Duration = Duration::from_millis(50);
