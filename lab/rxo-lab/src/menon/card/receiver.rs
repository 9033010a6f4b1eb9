//! The receiving host as a separate process, on a card's socket.
//!
//! It reads the connections, and measures the middle half of the data: processor time, or under callgrind the
//! instructions inside [`counted_phase`]. Data before and after that half is compared with the sent data.

use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver as Results, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use rxo::live::host::config;
use rxo::live::{Device, DeviceOptions};
use rxo::tcp::AckPolicy;
use rxo_coalesce::Config as EngineConfig;
use rxo_console::output;
use rxo_driver::{DeviceSink, DeviceSource, clock, wait};
use rxo_host::{Host, HostConfig, HostCounters, IpCidr, TcpListener, TcpStream};
use rxo_testbed::traffic::Pattern;
use rxo_testbed::{CpuMeter, CpuReading};
use serde::{Deserialize, Serialize};

use crate::callgrind::counted_phase;
use crate::menon::stack::Stack;

/// The parameters of the receiving process.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Parameters {
    /// The card's socket.
    pub(super) socket: PathBuf,
    /// The host's address, in a network of 24 bits.
    pub(super) address: IpAddr,
    /// The Aggregation Limit; without it each frame is alone.
    pub(super) limit: Option<u16>,
    /// `true` if ACKs leave as templates.
    pub(super) ack_offload: bool,
    /// Frames that one poll takes at most.
    pub(super) poll_frames: usize,
    /// Connections to wait for.
    pub(super) connections: usize,
    /// Bytes that all connections send together.
    pub(super) bytes: u64,
    /// `true` if each byte is sent back.
    pub(super) echo: bool,
    /// `true` if each connection is read on a thread of its own.
    pub(super) threads: bool,
    /// The time for which a worker that finds nothing pauses, in microseconds.
    pub(super) pause_us: u64,
    /// The core of all threads.
    pub(super) core: Option<usize>,
}

/// The measurements of the middle half.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Measured {
    /// Payload bytes read.
    pub(super) bytes: u64,
    /// Frames received from the card.
    pub(super) packets: u64,
    /// Deliveries to connections.
    pub(super) deliveries: u64,
    /// Packets handed to the card. A template is one packet.
    pub(super) handed_over: u64,
    /// ACKs in the packets handed over.
    pub(super) acks: u64,
    /// Processor time of all threads.
    pub(super) cpu_s: f64,
    pub(super) seconds: f64,
    /// Idle turns, after which the worker paused.
    pub(super) pauses: u64,
}

/// Prints "ready", receives, and prints the measurements as a line of JSON.
pub(crate) fn run(parameters: &Parameters, stop: &AtomicBool) -> Result<()> {
    if let Some(core) = parameters.core {
        rxo_testbed::pin_to_core(core)?;
    }
    let mut receiver = Receiver::new(parameters, stop)?;
    output::json_line(&"ready")?;
    let all = parameters.bytes;
    receiver.receive(all / 4)?;
    let before = receiver.reading()?;
    counted_phase(|| receiver.receive(all / 4 * 3))?;
    let measured = receiver.reading()?.since(&before);
    receiver.receive(all)?;
    if parameters.echo {
        receiver.see_off()?;
    }
    output::json_line(&measured)
}

/// Both ends of the channel on which reading threads report their results.
type Ends = (Sender<Result<()>>, Results<Result<()>>);

struct Receiver<'s> {
    host: Host<DeviceSource, DeviceSink>,
    listener: TcpListener,
    /// Connections that are read on this thread.
    own: Vec<Connection>,
    /// Results of the reading threads; `None` if connections are read on this thread.
    threads: Option<Ends>,
    shared: Arc<Shared>,
    parameters: Parameters,
    last_progress: (u64, Instant),
    pauses: u64,
    stop: &'s AtomicBool,
}

/// State that reading threads share with the worker.
#[derive(Debug, Default)]
struct Shared {
    bytes: AtomicU64,
}

struct Reading {
    at: Instant,
    bytes: u64,
    cpu: CpuReading,
    host: HostCounters,
    pauses: u64,
}

impl<'s> Receiver<'s> {
    fn new(parameters: &Parameters, stop: &'s AtomicBool) -> Result<Self> {
        let name = format!("virtio:{}", parameters.socket.display()).parse()?;
        let device = Device::open(&name, DeviceOptions::default())?;
        let stack = Stack { limit: parameters.limit, ack_offload: parameters.ack_offload };
        let mut config = HostConfig {
            engine: EngineConfig::new(stack.policy(), rxo::random_seed()),
            ack_templates: stack.ack_offload,
            budget_frames: parameters.poll_frames,
            ..config(vec![IpCidr::new(parameters.address, PREFIX_BITS)?])
        };
        config.tcp.acks = AckPolicy::EverySecondSegment;
        let host = Host::new(device.source, device.sink, config)?;
        let listener = host.handle().listen(SocketAddr::new(parameters.address, PORT), BACKLOG)?;
        listener.set_nonblocking(true)?;
        Ok(Self {
            host,
            listener,
            own: Vec::new(),
            threads: parameters.threads.then(channel),
            shared: Arc::default(),
            parameters: parameters.clone(),
            last_progress: (0, Instant::now()),
            pauses: 0,
            stop,
        })
    }

    /// Runs turns until `bytes` bytes have been read. An idle worker pauses, so that frames accumulate as
    /// behind a card that moderates its notifications.
    fn receive(&mut self, bytes: u64) -> Result<()> {
        let phase = Phase::of(bytes, self.parameters.bytes);
        while self.shared.bytes.load(Ordering::Relaxed) < bytes {
            let turn = self.host.turn(clock::now())?;
            let read = self.read_all(phase)?;
            if turn.is_idle() && read == 0 {
                self.accept()?;
                self.check_progress()?;
                self.pauses += 1;
                wait::pause(Duration::from_micros(self.parameters.pause_us));
            }
        }
        Ok(())
    }

    /// Runs turns until all streams have ended, so that the last answers arrive.
    fn see_off(&mut self) -> Result<()> {
        while !self.own.iter().all(|connection| connection.is_ended) {
            self.host.turn(clock::now())?;
            self.read_all(Phase::Compared)?;
            self.check_progress()?;
        }
        Ok(())
    }

    fn read_all(&mut self, phase: Phase) -> Result<u64> {
        let mut read = 0;
        for connection in &mut self.own {
            // Reads everything that the turn delivered, so that no data waits.
            loop {
                let came = connection.read_some(phase)?;
                if self.parameters.echo {
                    connection.answer(came)?;
                }
                read += came;
                if came < READ_BYTES as u64 {
                    break;
                }
            }
        }
        self.shared.bytes.fetch_add(read, Ordering::Relaxed);
        Ok(read)
    }

    fn accept(&mut self) -> Result<()> {
        loop {
            let (stream, peer) = match self.listener.accept() {
                Ok(accepted) => accepted,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error).context("no connection can be accepted"),
            };
            let connection = Connection::new(stream, peer.port());
            let Some((tell, _)) = &self.threads else {
                connection.stream.set_nonblocking(true)?;
                self.own.push(connection);
                continue;
            };
            let (tell, shared, all) =
                (tell.clone(), Arc::clone(&self.shared), self.parameters.bytes);
            let each = all / self.parameters.connections as u64;
            let work = move || tell.send(connection.read_to_end(&shared, each));
            thread::Builder::new().name("application".to_owned()).spawn(work)?;
        }
    }

    fn check_progress(&mut self) -> Result<()> {
        if let Some(Ok(ended)) = self.threads.as_ref().map(|(_, ended)| ended.try_recv()) {
            ended?;
        }
        let bytes = self.shared.bytes.load(Ordering::Relaxed);
        if self.last_progress.0 != bytes {
            self.last_progress = (bytes, Instant::now());
        }
        ensure!(!self.stop.load(Ordering::Relaxed), "stopped by a signal");
        if self.last_progress.1.elapsed() > TIMEOUT {
            bail!("nothing came for {} s after {bytes} bytes", TIMEOUT.as_secs());
        }
        Ok(())
    }

    fn reading(&mut self) -> Result<Reading> {
        Ok(Reading {
            at: Instant::now(),
            bytes: self.shared.bytes.load(Ordering::Relaxed),
            cpu: CpuMeter::new().read()?,
            host: self.host.counters(),
            pauses: self.pauses,
        })
    }
}

impl Reading {
    fn since(&self, before: &Self) -> Measured {
        let (now, then) = (&self.host, &before.host);
        Measured {
            bytes: self.bytes - before.bytes,
            packets: now.source.frames - then.source.frames,
            deliveries: now.deliveries - then.deliveries,
            handed_over: now.sink.packets - then.sink.packets,
            acks: now.sink.frames - then.sink.frames,
            cpu_s: self.cpu.since(&before.cpu).rest.as_secs_f64(),
            seconds: (self.at - before.at).as_secs_f64(),
            pauses: self.pauses - before.pauses,
        }
    }
}

/// The part of the transfer that is being received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Received data is compared with the sent data.
    Compared,
    /// The measured part; data is not compared.
    Measured,
}

impl Phase {
    const fn of(until: u64, all: u64) -> Self {
        if until > all / 4 && until < all { Self::Measured } else { Self::Compared }
    }
}

struct Connection {
    stream: TcpStream,
    pattern: Pattern,
    port: u16,
    bytes: u64,
    buffer: Vec<u8>,
    is_ended: bool,
}

impl Connection {
    fn new(stream: TcpStream, port: u16) -> Self {
        let (pattern, buffer) = (Pattern::of_port(port), vec![0; READ_BYTES]);
        Self { stream, pattern, port, bytes: 0, buffer, is_ended: false }
    }

    /// Reads available bytes once. Returns their number.
    fn read_some(&mut self, phase: Phase) -> Result<u64> {
        let count = match self.stream.read(&mut self.buffer) {
            Ok(count) => {
                self.is_ended = count == 0;
                count
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => 0,
            Err(error) => {
                return Err(error)
                    .with_context(|| format!("the stream from port {} broke", self.port));
            }
        };
        let came = &self.buffer[..count];
        if phase == Phase::Compared && self.pattern.check(self.bytes, came).is_err() {
            bail!("the stream from port {} has wrong bytes after {}", self.port, self.bytes);
        }
        self.bytes += count as u64;
        Ok(count as u64)
    }

    /// Sends back the `count` bytes that were read last.
    fn answer(&mut self, count: u64) -> Result<()> {
        let bytes = &self.buffer[..count as usize];
        let sent = self.stream.write_all(bytes);
        sent.with_context(|| format!("cannot answer port {}", self.port))
    }

    /// Reads all `bytes` of the stream, on its own thread.
    fn read_to_end(mut self, shared: &Shared, bytes: u64) -> Result<()> {
        self.read_until(shared, bytes / 4, bytes)?;
        counted_phase(|| self.read_until(shared, bytes / 4 * 3, bytes))?;
        self.read_until(shared, bytes, bytes)
    }

    fn read_until(&mut self, shared: &Shared, until: u64, all: u64) -> Result<()> {
        let phase = Phase::of(until, all);
        while self.bytes < until {
            let read = self.read_some(phase)?;
            ensure!(read > 0, "the stream from port {} ended after {}", self.port, self.bytes);
            shared.bytes.fetch_add(read, Ordering::Relaxed);
        }
        Ok(())
    }
}

/// Port on which the receiver listens.
pub(super) const PORT: u16 = 5_000;
/// Prefix length of the lab's IPv4 network, in bits.
const PREFIX_BITS: u8 = 24;
const BACKLOG: usize = 512;
const READ_BYTES: usize = 128 << 10;
const TIMEOUT: Duration = Duration::from_secs(20);
