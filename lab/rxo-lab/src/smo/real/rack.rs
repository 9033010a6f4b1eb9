//! A rack: up to 21 receivers in one process, each a separate host, on one interface.
//!
//! The process reads the interface once, and gives each host its frames; multicast frames go to all. Each
//! host has its own emulated network, which loses frames independently.

use std::cell::RefCell;
use std::io::{ErrorKind, Read};
use std::net::{Ipv4Addr, Shutdown, SocketAddr};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use rxo::live::host::{cast_receiver, config};
use rxo::live::{Device, DeviceOptions};
use rxo::{DeviceError, Frame, FrameSink, FrameSource, Gather, Instant, LinkKind};
use rxo_console::output;
use rxo_device::middleware::{ImpairedSource, Impairment, ImpairmentSettings};
use rxo_device::{
    MemoryLink, MemoryOptions, MemorySource, SinkCapabilities, SinkCounters, SourceCapabilities,
};
use rxo_driver::{DeviceSink, clock, wait};
use rxo_host::{Handle, Host, IpCidr, TcpStream};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::hex;
use crate::smo::model::{GROUP, PORT, SENDER, address};

/// The parameters of a rack.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Parameters {
    pub(super) interface: String,
    /// The number of the first receiver, which is its address.
    pub(super) first: usize,
    pub(super) receivers: usize,
    /// Frames lost before each receiver, of a million.
    pub(super) loss_ppm: u32,
}

/// The result of a receiver.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Copied {
    pub(super) receiver: usize,
    pub(super) bytes: u64,
    pub(super) sha256: String,
    /// Frames that the receiver sent.
    pub(super) frames_sent: u64,
    /// Frames lost on the way to the receiver.
    pub(super) lost: u64,
}

/// Receives until all receivers have the file, and prints the result of each as JSON.
pub(crate) fn run(parameters: &Parameters, stop: &AtomicBool) -> Result<()> {
    let name = format!("packet:{}", parameters.interface).parse()?;
    let Device { mut source, sink } = Device::open(&name, DeviceOptions::default())?;
    let (from, sink) = (source.capabilities(), Rc::new(RefCell::new(sink)));
    let numbers = parameters.first..parameters.first + parameters.receivers;
    let mut receivers = numbers
        .map(|number| Receiver::join(number, parameters.loss_ppm, from, Shared(Rc::clone(&sink))))
        .collect::<Result<Vec<_>>>()?;
    output::json_line(&"ready")?;
    let mut batch = Vec::new();
    while !receivers.iter().all(Receiver::is_over) {
        if stop.load(Ordering::Relaxed) {
            bail!("interrupted");
        }
        let came = source.receive(&mut batch, FRAMES_AT_ONCE)?;
        for frame in batch.drain(..) {
            share_out(&frame, &receivers);
        }
        let mut is_idle = came == 0;
        for receiver in &mut receivers {
            is_idle &= receiver.turn(clock::now())?;
        }
        if is_idle {
            // Frames accumulate during the pause, as behind a card that moderates its notifications.
            wait::pause(Duration::from_micros(500));
        }
    }
    let copies: Vec<Copied> = receivers.iter_mut().map(Receiver::copied).collect();
    output::json_line(&copies)
}

/// Gives a frame to the receivers that it is addressed to.
fn share_out<B: AsRef<[u8]>>(frame: &Frame<B>, receivers: &[Receiver]) {
    let to = destination(frame.bytes.as_ref());
    let is_meant = |receiver: &&Receiver| to.is_none_or(|to| to == address(receiver.number));
    receivers.iter().filter(is_meant).for_each(|receiver| receiver.arrived.push(frame));
}

/// Returns the receiver's address in a frame; `None` if the frame is for all.
fn destination(frame: &[u8]) -> Option<Ipv4Addr> {
    let at = match frame.get(12..14)? {
        [8, 6] => 38,
        [8, 0] if frame[0] & 1 == 0 => 30,
        _ => return None,
    };
    Some(<[u8; 4]>::try_from(frame.get(at..at + 4)?).ok()?.into())
}

/// Source of a host's frames that drops some of them.
type Lossy = ImpairedSource<MemorySource, fn() -> Instant>;

/// A receiver: a host with its connection.
struct Receiver {
    number: usize,
    host: Host<Lossy, Shared>,
    /// The frames that wait for the host.
    arrived: MemoryLink,
    stream: TcpStream,
    /// Time of the next attempt to connect, while the sender does not listen yet.
    again_at: Option<Instant>,
    buffer: Vec<u8>,
    bytes: u64,
    hash: Sha256,
    has_all: bool,
}

impl Receiver {
    fn join(number: usize, loss_ppm: u32, from: SourceCapabilities, sink: Shared) -> Result<Self> {
        let mut config = config(vec![IpCidr::new(address(number).into(), 8)?]);
        // The secret makes each receiver acknowledge other segments than its neighbours.
        config.secret[0] = config.secret[0] & !0xf | number as u64 & 0xf;
        config.mac = Some([2, 0, 0, 1, (number >> 8) as u8, number as u8]);
        cast_receiver(&mut config);
        let (mtu, most_packets) = (from.mtu, MOST_WAITING);
        let arrived =
            MemoryLink::new(MemoryOptions { mtu, most_packets, ..MemoryOptions::default() });
        let seed = number as u64;
        let loss = ImpairmentSettings { seed, loss_ppm, ..ImpairmentSettings::default() };
        let loss = Impairment::new(loss, LinkKind::Ethernet)?;
        let source = ImpairedSource::new(arrived.source(), loss, clock::now as fn() -> Instant);
        let host = Host::new(source, sink, config)?;
        Ok(Self {
            number,
            stream: join(&host.handle())?,
            host,
            arrived,
            again_at: None,
            buffer: vec![0; READ_BYTES],
            bytes: 0,
            hash: Sha256::new(),
            has_all: false,
        })
    }

    /// Returns `true` if the receiver has the whole file and the sender has acknowledged its FIN.
    fn is_over(&self) -> bool {
        let seen = self.stream.statistics();
        self.has_all && seen.snd_una == seen.snd_nxt && seen.unsent == 0
    }

    /// Runs a turn of the host. Returns `true` if it was idle.
    fn turn(&mut self, now: Instant) -> Result<bool> {
        let turn = self.host.turn(now)?;
        if self.again_at.is_some_and(|at| at <= now) {
            self.again_at = None;
            self.stream = join(&self.host.handle())?;
        }
        loop {
            match self.stream.read(&mut self.buffer) {
                Ok(0) if !self.has_all => {
                    self.has_all = true;
                    self.stream.shutdown(Shutdown::Write)?;
                }
                Ok(0) => return Ok(turn.is_idle()),
                Ok(count) => {
                    self.hash.update(&self.buffer[..count]);
                    self.bytes += count as u64;
                }
                Err(error) if is_wait(&error) => return Ok(turn.is_idle()),
                Err(error) if self.bytes == 0 && is_absent(&error) => {
                    self.again_at.get_or_insert(now + BETWEEN_TRIES);
                    return Ok(turn.is_idle());
                }
                Err(error) => {
                    return Err(error).with_context(|| format!("receiver {}", self.number));
                }
            }
        }
    }

    fn copied(&mut self) -> Copied {
        let counters = self.host.counters();
        Copied {
            receiver: self.number,
            bytes: self.bytes,
            sha256: hex(&self.hash.clone().finalize()),
            frames_sent: counters.sink.frames,
            lost: counters.source.impaired.lost,
        }
    }
}

/// Connects to the sender to join its group.
fn join(handle: &Handle) -> Result<TcpStream> {
    let (sender, group) = ((SENDER, PORT).into(), SocketAddr::new(GROUP.into(), PORT));
    let stream = handle.join_nonblocking(sender, group)?;
    stream.set_nonblocking(true)?;
    Ok(stream)
}

/// Returns `true` for errors before the connection is open, or while no data is available.
fn is_wait(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::NotConnected)
}

/// Returns `true` for errors of a sender that does not listen yet. On a busy machine its process takes longer to start
/// than a host waits for an answer to ARP.
fn is_absent(error: &std::io::Error) -> bool {
    use ErrorKind::{ConnectionRefused, HostUnreachable, TimedOut};
    matches!(error.kind(), ConnectionRefused | HostUnreachable | TimedOut)
}

/// The interface's sink, shared by all hosts on this thread.
#[derive(Clone)]
struct Shared(Rc<RefCell<DeviceSink>>);

impl FrameSink for Shared {
    fn capabilities(&self) -> SinkCapabilities {
        self.0.borrow().capabilities()
    }

    fn transmit<'a, G: Gather<'a>>(
        &mut self,
        batch: impl ExactSizeIterator<Item = G>,
    ) -> Result<(), DeviceError> {
        self.0.borrow_mut().transmit(batch)
    }

    fn counters(&self) -> SinkCounters {
        self.0.borrow().counters()
    }

    fn is_blocked(&self) -> bool {
        self.0.borrow().is_blocked()
    }

    fn resume(&mut self) -> Result<(), DeviceError> {
        self.0.borrow_mut().resume()
    }
}

/// Frames per receive call, as many as arrive during one turn of all hosts.
const FRAMES_AT_ONCE: usize = 1_024;
/// Most frames that wait for one host.
const MOST_WAITING: usize = 1 << 16;
const BETWEEN_TRIES: Duration = Duration::from_millis(100);
const READ_BYTES: usize = 256 << 10;
