//! Tunnel ends in this process, for kernels without Geneve, GRE or IP in IP.
//!
//! ```text
//!  TCP of a namespace --TUN--> [headers are put around]          --> what is below
//!                    <--TUN--  [headers are checked and removed] <--
//! ```
//!
//! The kernel of the TUN describes a packet (a checksum to be completed, segments to be made). The tunnel's
//! packet gets the same description, with the offsets moved. A kernel describes a packet of a tunnel to a
//! packet socket in this way. It does not accept a GSO frame with such a description from a packet socket: it
//! segments by the outer headers, and drops the frame. It accepts the frame from a TAP, so large sends need a
//! [`Below::Wire`].
//!
//! The outer addresses belong to no kernel, so no kernel answers for them. An end makes the checks of a
//! kernel: the outer headers and their checksums, and that there is a checksum exactly where there should be
//! one. The inner checksums are for the kernel behind the TUN.

mod sum;
#[cfg(test)]
mod tests;
mod train;
mod wrap;

use std::fs::File;
use std::io::{self, IoSlice, Read, Write};
use std::net::IpAddr;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use rxo_testbed::error::{Context, Result};
use rxo_testbed::{
    Interface, Mac, MonitorSocket, Tap, Worker, open_tun, wait_readable, wait_writable,
};

use self::wrap::{Said, Wrapper};

/// The headers between the outer IP header and the inner packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encapsulation {
    /// Ethernet after the header of RFC 7348, in UDP to port 4789.
    Vxlan,
    /// Ethernet after the header of RFC 8926 with an option, in UDP to port 6081.
    Geneve,
    /// The header of RFC 2890 with a key.
    Gre,
    /// UDP to port 5555, without a header: FOU of Linux.
    Fou,
    /// No further header: IP in IP; IPv6 inside IPv4 is what Linux calls SIT.
    Ip,
}

/// The configuration of a tunnel, as one of its ends sees it.
#[derive(Clone, Copy, Debug)]
pub struct TunnelOptions {
    /// The headers around inner packets.
    pub encapsulation: Encapsulation,
    /// True if the headers of UDP or GRE have a checksum. IP in IP has none.
    pub has_checksum: bool,
    /// This end's outer address, which no kernel has.
    pub local: IpAddr,
    /// The other end's outer address.
    pub remote: IpAddr,
    /// Destination and source of Ethernet frames; `None` if the interface below carries IP packets.
    pub macs: Option<[Mac; 2]>,
    /// True if GSO frames of the TUN are sent on as GSO frames of the tunnel. Checksums are always left to the layer
    /// below.
    pub sends_large: bool,
}

/// The way in which the tunnel's packets travel.
#[derive(Debug)]
pub enum Below<'i, 'n> {
    /// Through an interface, on which they leave and arrive.
    Interface(&'i Interface<'n>),
    /// Through the other side of an interface, as if this end were on the wire behind it: sent packets arrive at the
    /// interface.
    Wire(Tap),
}

/// One end of a tunnel. Dropping it ends it and removes its TUN.
#[derive(Debug)]
pub struct TunnelEnd {
    shared: Arc<Shared>,
    threads: Vec<Worker<()>>,
}

/// The totals of a tunnel end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TunnelCounters {
    /// Packets sent; a GSO frame counts as one.
    pub sent: u64,
    /// GSO frames among the sent packets.
    pub sent_large: u64,
    /// Packets received and passed on.
    pub received: u64,
    /// GSO frames among the received packets.
    pub received_large: u64,
    /// Packets of the tunnel with wrong outer headers, or with a wrong description.
    pub wrong: u64,
    /// Packets that the system refused.
    pub refused: u64,
}

#[derive(Debug)]
enum Carrier {
    Socket(MonitorSocket),
    Tap(Tap),
}

#[derive(Debug)]
struct Shared {
    tun: File,
    below: Carrier,
    stop: AtomicBool,
    sent: AtomicU64,
    sent_large: AtomicU64,
    received: AtomicU64,
    received_large: AtomicU64,
    wrong: AtomicU64,
    refused: AtomicU64,
}

impl TunnelEnd {
    /// Makes `inner` as a TUN, which is down, and carries its packets through `below`, which may be in another
    /// namespace.
    ///
    /// # Errors
    /// If the name is taken, there is no such interface below, or privilege is missing.
    pub fn start(
        inner: &Interface<'_>,
        below: Below<'_, '_>,
        options: TunnelOptions,
    ) -> Result<Self> {
        let tun = inner.namespace().run(|| open_tun(inner.name(), options.sends_large))?;
        let tun = tun.context(|| inner.cannot("make the TUN"))?;
        let shared = Arc::new(Shared::new(tun, Carrier::open(below)?));
        let (out, back) = (Arc::clone(&shared), Arc::clone(&shared));
        let threads = vec![
            Worker::start("lab-wrap", None, move || out.wrap_all(options))?,
            Worker::start("lab-unwrap", None, move || back.unwrap_all(options))?,
        ];
        Ok(Self { shared, threads })
    }

    /// Returns the totals so far.
    #[must_use]
    pub fn counters(&self) -> TunnelCounters {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        TunnelCounters {
            sent: read(&self.shared.sent),
            sent_large: read(&self.shared.sent_large),
            received: read(&self.shared.received),
            received_large: read(&self.shared.received_large),
            wrong: read(&self.shared.wrong),
            refused: read(&self.shared.refused),
        }
    }
}

impl Drop for TunnelEnd {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // The interface below may be gone already, so an error of the thread is ignored.
            _ = thread.finish();
        }
    }
}

impl Carrier {
    fn open(below: Below<'_, '_>) -> Result<Self> {
        let interface = match below {
            Below::Interface(interface) => interface,
            Below::Wire(tap) => return Ok(Self::Tap(tap)),
        };
        let index = interface.index()?;
        let socket = interface.namespace().run(|| MonitorSocket::open(index))?;
        socket.map(Self::Socket).context(|| interface.cannot("open a packet socket on"))
    }

    fn send(&self, pieces: &[IoSlice<'_>]) -> io::Result<()> {
        match self {
            Self::Socket(socket) => socket.send(pieces),
            Self::Tap(tap) => (&tap.0).write_vectored(pieces).map(|_| ()),
        }
    }

    fn receive(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        match self {
            Self::Socket(socket) => Ok(socket.receive(buffer)?.map(|(bytes, _)| bytes)),
            Self::Tap(tap) => tap.read(buffer),
        }
    }
}

impl AsRawFd for Carrier {
    fn as_raw_fd(&self) -> RawFd {
        match self {
            Self::Socket(socket) => socket.as_raw_fd(),
            Self::Tap(tap) => tap.0.as_raw_fd(),
        }
    }
}

impl Shared {
    fn new(tun: File, below: Carrier) -> Self {
        let [sent, sent_large, received, received_large, wrong, refused] =
            [(); 6].map(|()| AtomicU64::new(0));
        let stop = AtomicBool::new(false);
        Self { tun, below, stop, sent, sent_large, received, received_large, wrong, refused }
    }

    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    fn wrap_all(&self, options: TunnelOptions) -> Result<()> {
        let (mut wrapper, mut buffer) = (Wrapper::new(options), vec![0; LARGEST_BYTES]);
        while !self.is_stopped() {
            let bytes = match (&self.tun).read(&mut buffer) {
                Err(error) if is_passing(&error) => {
                    let waited = wait_readable(&self.tun, CHECK_INTERVAL);
                    waited.context(|| "cannot wait for the TUN of a tunnel".into())?;
                    continue;
                }
                read => read.context(|| "cannot read the TUN of a tunnel".into())?,
            };
            let Some((said, packet)) = Said::split(&buffer[..bytes]) else { continue };
            let Some((said, head)) = wrapper.wrap(said, packet) else {
                add(&self.refused);
                continue;
            };
            self.send(said, head, packet)?;
        }
        Ok(())
    }

    fn send(&self, said: Said, head: &[u8], packet: &[u8]) -> Result<()> {
        let header = said.to_bytes();
        let pieces = [IoSlice::new(&header), IoSlice::new(head), IoSlice::new(packet)];
        loop {
            match self.below.send(&pieces) {
                Ok(()) => break,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock && !self.is_stopped() => {
                    let waited = wait_writable(&self.below, CHECK_INTERVAL);
                    waited.context(|| "cannot wait for the interface below a tunnel".into())?;
                }
                // The interface's queue is full, or it refuses such a packet: the packet is lost, as on any network.
                Err(_) => {
                    add(&self.refused);
                    return Ok(());
                }
            }
        }
        add(&self.sent);
        if said.is_large() {
            add(&self.sent_large);
        }
        Ok(())
    }

    fn unwrap_all(&self, options: TunnelOptions) -> Result<()> {
        let (wrapper, mut buffer) = (Wrapper::new(options), vec![0; LARGEST_BYTES]);
        while !self.is_stopped() {
            let received = self.below.receive(&mut buffer);
            let received = received.context(|| "cannot read below a tunnel".into())?;
            let Some(bytes) = received else {
                let waited = wait_readable(&self.below, CHECK_INTERVAL);
                waited.context(|| "cannot wait for the interface below a tunnel".into())?;
                continue;
            };
            let Some((said, frame)) = Said::split(&buffer[..bytes]) else { continue };
            match said.train() {
                None => self.unwrap(&wrapper, said, frame),
                Some((size, udp)) => {
                    let datagrams = train::divide(frame, udp, options.local.is_ipv6(), size);
                    let said = Said::default();
                    datagrams.iter().for_each(|frame| self.unwrap(&wrapper, said, frame));
                }
            }
        }
        Ok(())
    }

    fn unwrap(&self, wrapper: &Wrapper, said: Said, frame: &[u8]) {
        match wrapper.unwrap(said, frame) {
            Ok(None) => {}
            Ok(Some((said, packet))) => self.pass_on(said, packet),
            Err(_) => add(&self.wrong),
        }
    }

    fn pass_on(&self, said: Said, packet: &[u8]) {
        let header = said.to_bytes();
        let pieces = [IoSlice::new(&header), IoSlice::new(packet)];
        if (&self.tun).write_vectored(&pieces).is_err() {
            return add(&self.refused);
        }
        add(&self.received);
        if said.is_large() {
            add(&self.received_large);
        }
    }
}

fn add(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

fn is_passing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

/// Length of a buffer: headers, and the largest IP packet.
const LARGEST_BYTES: usize = 128 + (64 << 10);

/// Time after which a waiting thread checks whether to end.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);
