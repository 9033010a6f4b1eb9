//! The receiving host of a measurement: rxo's stack on a thread in the lab's host namespace, and the threads that
//! read or echo its connections, all on the receiver's core.

use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rxo::DeviceError;
use rxo::live::host::{self, RunningHost};
use rxo::live::{Device, DeviceOptions};
use rxo::tcp::AckPolicy;
use rxo_coalesce::Config as EngineConfig;
use rxo_driver::{DeviceName, clock};
use rxo_host::{HostConfig, HostCounters, IpCidr, StageTimer, TcpListener, TcpStream};
use rxo_testbed::Lab;
use rxo_testbed::traffic::{OutgoingReport, Pattern};

use super::{Case, Place, Stack};

/// A running host whose connections are served. Dropping this stops it.
pub(super) struct Station {
    host: RunningHost,
    /// Kernel thread id of the worker, to read its processor time.
    pub(super) worker_thread: u32,
    shared: Arc<Shared>,
    address: SocketAddr,
}

/// The work of a connection's thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Service {
    /// Reads everything, and compares it with the sent data.
    Read,
    /// Sends each byte back.
    Echo,
}

/// State that the reading threads share.
#[derive(Debug, Default)]
struct Shared {
    received_bytes: AtomicU64,
    /// Set during the measured time, in which only a part of the reads is compared.
    is_measured: AtomicBool,
    core: Option<usize>,
    threads: Mutex<Vec<u32>>,
    /// Port and byte count of each stream that has ended, or its error.
    ended: Mutex<Vec<Result<(u16, u64), String>>>,
}

impl Station {
    /// Starts the host, which starts a thread for each incoming connection. Some turns of a host that reads are
    /// timed.
    pub(super) fn start(
        lab: &Lab,
        case: Case,
        service: Service,
        core: Option<usize>,
    ) -> Result<Self> {
        let stage_timer = (service == Service::Read).then_some(TIMER);
        let config = HostConfig { stage_timer, ..config(case.stack, lab.host_address())? };
        let device = match case.place {
            Place::Wire => format!("packet:{}", Lab::WIRE_INTERFACE),
            Place::Guest => format!("tap:{TAP}"),
        };
        let (device, (tell, told)): (DeviceName, _) = (device.parse()?, channel());
        let open = move || open(&device, core, &tell);
        let start = || host::start_with(Lab::WIRE_INTERFACE.to_owned(), open, config);
        let host = lab.host().run(start)??;
        if case.place == Place::Guest {
            bridge(lab)?;
        }
        let worker_thread = told.recv().context("the host's thread has no number")?;
        let address = SocketAddr::new(lab.host_address(), PORT);
        let listener = host.handle().listen(address, BACKLOG)?;
        let shared = Arc::new(Shared { core, ..Shared::default() });
        let accepting = Arc::clone(&shared);
        // The thread ends with the host, so nothing joins it.
        let accept = move || accept_all(&listener, &accepting, service);
        thread::Builder::new().name("accept".to_owned()).spawn(accept)?;
        Ok(Self { host, worker_thread, shared, address })
    }

    pub(super) const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Waits for `connections` connections. Returns the ids of their threads.
    pub(super) fn threads(&self, connections: usize) -> Result<Vec<u32>> {
        wait_until(|| locked(&self.shared.threads).len() >= connections)?;
        Ok(locked(&self.shared.threads).clone())
    }

    /// Returns the host's current counters.
    pub(super) fn counters(&self) -> Result<HostCounters> {
        self.host.counters().context("the host has ended before its time")
    }

    pub(super) fn received_bytes(&self) -> u64 {
        self.shared.received_bytes.load(Ordering::Relaxed)
    }

    /// Sets whether reads are part of a measurement now.
    pub(super) fn set_measured(&self, is_measured: bool) {
        self.shared.is_measured.store(is_measured, Ordering::Relaxed);
    }

    /// Waits until all sent streams have ended, compares their byte counts, and stops the host.
    ///
    /// # Errors
    /// If data was lost or wrong, or the host had ended before.
    pub(super) fn finish(self, sent: &OutgoingReport) -> Result<()> {
        wait_until(|| locked(&self.shared.ended).len() >= sent.connections.len())?;
        let ended = std::mem::take(&mut *locked(&self.shared.ended));
        for outcome in ended {
            let (port, bytes) = outcome.map_err(anyhow::Error::msg)?;
            if !sent.connections.contains(&(port, bytes)) {
                bail!(
                    "the stream from port {port} ended after {bytes} bytes, not where it was ended"
                );
            }
        }
        self.stop()
    }

    /// Stops the host.
    ///
    /// # Errors
    /// The error that ended the host before it was stopped.
    pub(super) fn stop(self) -> Result<()> {
        Ok(self.host.stop().result?)
    }
}

/// Opens the device on the host's thread, and reports that thread's id to `tell`.
fn open(
    device: &DeviceName,
    core: Option<usize>,
    tell: &Sender<u32>,
) -> Result<Device, DeviceError> {
    if let Some(core) = core {
        rxo_testbed::pin_to_core(core).map_err(|error| DeviceError::Usage(error.to_string()))?;
    }
    // The thread that started the host waits for this id.
    _ = tell.send(rxo_testbed::thread_id());
    Device::open(device, DeviceOptions { bring_up: true, ..DeviceOptions::default() })
}

/// Bridges the wire and the guest's TAP, as a driver domain would.
fn bridge(lab: &Lab) -> Result<()> {
    let bridge = lab.host().interface("br0");
    bridge.create_bridge()?;
    for port in [Lab::WIRE_INTERFACE, TAP] {
        lab.host().interface(port).join_bridge(&bridge)?;
    }
    Ok(bridge.up()?)
}

fn config(stack: Stack, address: IpAddr) -> Result<HostConfig> {
    let address = IpCidr::new(address, PREFIX_BITS)?;
    let mut config = HostConfig {
        engine: EngineConfig::new(stack.policy(), rxo::random_seed()),
        ack_templates: stack.ack_offload,
        ..host::config(vec![address])
    };
    config.tcp.acks = AckPolicy::EverySecondSegment;
    Ok(config)
}

fn accept_all(listener: &TcpListener, shared: &Arc<Shared>, service: Service) {
    while let Ok((stream, peer)) = listener.accept() {
        let own = Arc::clone(shared);
        let work = move || own.serve(stream, peer.port(), service);
        let thread = thread::Builder::new().name("application".into()).stack_size(STACK_BYTES);
        if let Err(error) = thread.spawn(work) {
            locked(&shared.ended).push(Err(format!("a thread for a connection: {error}")));
        }
    }
}

impl Shared {
    fn serve(&self, stream: TcpStream, port: u16, service: Service) {
        let pinned = self.core.map_or(Ok(()), rxo_testbed::pin_to_core);
        locked(&self.threads).push(rxo_testbed::thread_id());
        let outcome = pinned.map_err(|error| error.to_string()).and_then(|()| match service {
            Service::Read => self.read_all(stream, port),
            Service::Echo => echo(stream).map(|bytes| (port, bytes)),
        });
        locked(&self.ended).push(outcome);
    }

    fn read_all(&self, mut stream: TcpStream, port: u16) -> Result<(u16, u64), String> {
        let pattern = Pattern::of_port(port);
        let mut buffer = vec![0; READ_BYTES];
        let (mut bytes, mut reads) = (0, 0_u32);
        loop {
            let count = match stream.read(&mut buffer) {
                Ok(0) => return Ok((port, bytes)),
                Ok(count) => count,
                Err(error) => return Err(format!("the stream from port {port} broke: {error}")),
            };
            reads = reads.wrapping_add(1);
            let compares = !self.is_measured.load(Ordering::Relaxed) || reads % COMPARED == 0;
            if compares && pattern.check(bytes, &buffer[..count]).is_err() {
                return Err(format!("the stream from port {port} has wrong bytes after {bytes}"));
            }
            bytes += count as u64;
            self.received_bytes.fetch_add(count as u64, Ordering::Relaxed);
        }
    }
}

fn echo(mut stream: TcpStream) -> Result<u64, String> {
    let wrong = |error: std::io::Error| format!("the exchange broke: {error}");
    stream.set_nodelay(true).map_err(wrong)?;
    let (mut buffer, mut bytes) = ([0; 64], 0);
    loop {
        match stream.read(&mut buffer) {
            Ok(0) => return Ok(bytes),
            Ok(count) => {
                stream.write_all(&buffer[..count]).map_err(wrong)?;
                bytes += count as u64;
            }
            // The client resets its connection when its time is over.
            Err(error) if error.kind() == ErrorKind::ConnectionReset => return Ok(bytes),
            Err(error) => return Err(wrong(error)),
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    // A panicking thread can only have pushed complete entries, so the list stays valid.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn wait_until(is_so: impl Fn() -> bool) -> Result<()> {
    let begin = Instant::now();
    while !is_so() {
        if begin.elapsed() > TIMEOUT {
            bail!("connections did not come or end within {} s", TIMEOUT.as_secs());
        }
        thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}

const PORT: u16 = 5_000;
const BACKLOG: usize = 512;
/// Size of one read, the same as that of the lab's own receivers.
const READ_BYTES: usize = 128 * 1024;
const STACK_BYTES: usize = 256 << 10;
/// During measurement every 16th read is compared; comparing all would dominate the cost of a byte. Before
/// and after, all reads are compared.
const COMPARED: u32 = 16;
const TIMEOUT: Duration = Duration::from_secs(20);
/// Name of the guest's interface.
const TAP: &str = "guest0";
/// Prefix length of the lab's IPv4 network, in bits.
const PREFIX_BITS: u8 = 24;
/// Times every 7th turn. A turn of a bulk transfer has many frames, so reading the clock between stages costs
/// little per frame. The interval is prime, so that it does not align with periodic work.
const TIMER: StageTimer = StageTimer { clock: clock::thread_cpu_ns, every_turns: 7 };
