//! rxo as a program uses it: an `rxo_host::Host` whose `turn` is called repeatedly, and an application with
//! its streams. With shards, the device also steers each frame to its shard, inside the timed part.

use std::cell::{Cell, RefCell};
use std::io::{ErrorKind, IoSlice, Read, Write};
use std::net::SocketAddr;
use std::rc::Rc;

use rxo_device::{
    DeviceError, FrameSink, FrameSource, Look, Looked, SinkCapabilities, SinkCounters,
    SourceCapabilities, SourceCounters, Verdict,
};
use rxo_frame::{Duration, Frame, Gather, Instant, LinkKind};
use rxo_host::{
    Handle, Host, HostConfig, IpCidr, Readiness, ShardedHost, SharedBytes, TcpListener, TcpStream,
};
use rxo_wire::{parse_ip, shard_of};

use super::link::{Buffer, MTU, Port, Sent, give_back_all};
use super::rxo::Variant;
use super::stack::{
    BUFFER_BYTES, CALL_BYTES, CLIENT, Reading, Role, SERVER, SERVER_PORT, Setting, Stack,
    TURN_FRAMES, lent, look_at, next_lent,
};

/// The contender: hosts, application and device queues.
pub(crate) struct Hosted {
    port: Port,
    /// Device queues, one per shard.
    queues: Vec<Device>,
    hosts: Vec<Host<Device, Device>>,
    listener: Option<TcpListener>,
    streams: Vec<TcpStream>,
    /// Reports the streams that can be read, by number; `None` for a single stream, which is tried each time.
    readiness: Option<Readiness>,
    ready: Vec<u64>,
    connections: usize,
    role: Role,
    reading: Reading,
    application: Vec<u8>,
    /// The data that the application lends repeatedly, and its unsent rest; `None` if it copies.
    lent: Option<[SharedBytes; 2]>,
    read_bytes: u64,
}

impl Hosted {
    /// Makes the contender. With `Variant::Lent` the application lends its data. The host is split into
    /// `shards`, which run in turn on this thread.
    pub(crate) fn new(setting: Setting, variant: Variant, shards: usize) -> Self {
        let Setting { role, checksums, timestamps, connections, reading, takes_large } = setting;
        let queue = |_| {
            let port = Rc::new(RefCell::new(Port::new(checksums, takes_large)));
            Device { port, checksums, takes_large, says_queue: Rc::default() }
        };
        let queues: Vec<_> = (0..shards).map(queue).collect();
        let own = if role == Role::OpensAndWrites { CLIENT } else { SERVER };
        let network = IpCidr::new(own.into(), 24).expect("a network of 24 bits");
        let mut config = HostConfig::new(vec![network], [1, 2]);
        config.budget_frames = TURN_FRAMES;
        config.tcp.send_buffer_bytes = BUFFER_BYTES as u32;
        config.tcp.receive_buffer_bytes = BUFFER_BYTES as u32;
        config.tcp.largest_buffers = None;
        // Ten thousand such buffers exceed a host's default memory.
        config.memory_bytes = 64 << 30;
        config.tcp.timestamps = timestamps;
        config.tcp.acks = variant.acks();
        let ends = queues.iter().map(|queue| (queue.clone(), queue.clone())).collect();
        let host = ShardedHost::new(ends, &config).expect("settings that can be");
        let handle = host.handle();
        let mut hosted = Self {
            port: Port::new(checksums, takes_large),
            queues,
            hosts: host.into_shards(),
            listener: None,
            streams: Vec::new(),
            readiness: (connections > 1).then(Readiness::new),
            ready: Vec::new(),
            connections: connections.into(),
            role,
            reading,
            application: vec![0; CALL_BYTES],
            lent: (variant == Variant::Lent).then(lent),
            read_bytes: 0,
        };
        hosted.open(&handle, connections);
        hosted
    }

    /// On a device that says how much waits in its queue.
    pub(crate) fn with_queue(self) -> Self {
        self.queues.iter().for_each(|queue| queue.says_queue.set(true));
        self
    }

    fn open(&mut self, handle: &Handle, connections: u16) {
        let server = SocketAddr::from((SERVER, SERVER_PORT));
        if self.role == Role::Reads {
            let listener = handle.listen(server, connections.into()).expect("a free port");
            listener.set_nonblocking(true).expect("a listener that lives");
            self.listener = Some(listener);
            return;
        }
        for _ in 0..connections {
            self.join(handle.connect_nonblocking(server).expect("a free port"));
        }
    }

    /// Takes in a stream that was opened or accepted.
    fn join(&mut self, stream: TcpStream) {
        stream.set_nonblocking(true).expect("a stream that lives");
        if let Some(readiness) = &self.readiness {
            let number = self.streams.len() as u64;
            readiness.watch(&stream, number).expect("a stream of its own");
            // What has come already says nothing any more.
            readiness.notify(number);
        }
        self.streams.push(stream);
    }

    fn turn_all(&mut self, now: Instant) {
        for host in &mut self.hosts {
            host.turn(now).expect("a device that is there");
        }
    }

    /// Steers received frames to the queues. A single queue owns the port while the host runs.
    fn steer(&mut self) {
        if let [queue] = &self.queues[..] {
            std::mem::swap(&mut *queue.port.borrow_mut(), &mut self.port);
            return;
        }
        for frame in self.port.received.drain(..) {
            let parsed = parse_ip(frame.bytes());
            let shard = parsed.map_or(0, |it| shard_of(&it.key, self.queues.len() as u32));
            self.queues[shard as usize].port.borrow_mut().received.push_back(frame);
        }
    }

    /// Collects the frames that the queues have sent.
    fn collect(&mut self) {
        if let [queue] = &self.queues[..] {
            std::mem::swap(&mut *queue.port.borrow_mut(), &mut self.port);
            return;
        }
        for queue in &self.queues {
            self.port.sent.append(&mut queue.port.borrow_mut().sent);
        }
    }

    fn accept(&mut self) {
        while let Some(Ok((stream, _))) = self.listener.as_ref().map(TcpListener::accept) {
            self.join(stream);
        }
    }

    /// Which streams to use.
    fn wait(&mut self) {
        self.ready.clear();
        match &self.readiness {
            Some(readiness) => readiness.wait(&mut self.ready, Some(Duration::ZERO)),
            None => self.ready.extend(0..self.streams.len() as u64),
        }
    }

    fn read(&mut self) {
        self.wait();
        for number in &self.ready {
            let stream = &mut self.streams[*number as usize];
            loop {
                let read = match self.reading {
                    Reading::Copied => stream.read(&mut self.application),
                    Reading::InPlace => stream.read_in_place(look_at_all),
                };
                let Ok(read) = read else { break };
                self.read_bytes += read as u64;
            }
        }
    }

    fn write(&mut self) {
        self.wait();
        for number in &self.ready {
            let stream = &mut self.streams[*number as usize];
            let failure = loop {
                let written = match &mut self.lent {
                    Some(lent) => stream.write_shared(next_lent(lent)),
                    None => stream.write(&self.application),
                };
                if let Err(failure) = written {
                    break failure.kind();
                }
            };
            assert!(matches!(failure, ErrorKind::WouldBlock | ErrorKind::NotConnected));
        }
    }
}

/// Reads all of `pieces` in place. Returns their number of bytes.
fn look_at_all(pieces: &[IoSlice<'_>]) -> usize {
    pieces.iter().fold(0, |bytes, piece| {
        look_at(piece);
        bytes + piece.len()
    })
}

impl Stack for Hosted {
    fn port(&mut self) -> &mut Port {
        &mut self.port
    }

    fn turn(&mut self, now: Instant) {
        self.steer();
        if self.role == Role::Reads {
            self.turn_all(now);
            if self.streams.len() < self.connections {
                self.accept();
            }
            self.read();
        } else {
            self.write();
            self.turn_all(now);
        }
        self.collect();
    }

    fn idle(&mut self, now: Instant) {
        self.turn(now);
    }

    fn read_bytes(&self) -> u64 {
        self.read_bytes
    }
}

/// The link as a device.
#[derive(Clone)]
pub(super) struct Device {
    port: Rc<RefCell<Port>>,
    checksums: bool,
    takes_large: bool,
    says_queue: Rc<Cell<bool>>,
}

impl Device {
    /// Makes a device for single packets; with `checksums` the host verifies and fills checksums.
    pub(super) fn new(checksums: bool) -> Self {
        let port = Rc::new(RefCell::new(Port::new(checksums, false)));
        Self { port, checksums, takes_large: false, says_queue: Rc::default() }
    }

    /// Takes the sent frames.
    pub(super) fn take_sent(&self) -> Vec<Sent> {
        self.port.borrow_mut().sent.drain(..).collect()
    }

    /// Receives a frame that the other end has sent.
    pub(super) fn arrive(&self, sent: Sent, now: Instant) {
        self.port.borrow_mut().arrive_sent(sent, now);
    }
}

impl FrameSource for Device {
    type Buffer = Buffer;

    fn capabilities(&self) -> SourceCapabilities {
        SourceCapabilities { link: LinkKind::RawIp, mtu: MTU as u32, gives_gso: self.takes_large }
    }

    fn receive(
        &mut self,
        batch: &mut Vec<Frame<Buffer>>,
        budget: usize,
    ) -> Result<usize, DeviceError> {
        let mut port = self.port.borrow_mut();
        let count = budget.min(port.received.len());
        if batch.is_empty() && count == port.received.len() {
            // The queue's memory becomes the batch and vice versa, as with the other stacks.
            let received = Vec::from(std::mem::take(&mut port.received));
            port.received = std::mem::replace(batch, received).into();
        } else {
            batch.extend(port.received.drain(..count));
        }
        Ok(count)
    }

    /// Receives like a ring: consumed frames never leave the queue, and the memory of all is returned at
    /// once.
    fn receive_past(
        &mut self,
        batch: &mut Vec<Frame<Buffer>>,
        budget: usize,
        look: Look<'_>,
    ) -> Result<Looked, DeviceError> {
        let mut port = self.port.borrow_mut();
        // Draining a vector takes fewer instructions than draining a deque.
        let mut received = Vec::from(std::mem::take(&mut port.received));
        let (before, count) = (batch.len(), budget.min(received.len()));
        for frame in &mut received[..count] {
            if look(frame.borrowed()) == Verdict::Fallback {
                batch.push(std::mem::take(frame));
            }
        }
        let given = batch.len() - before;
        let frames = received.drain(..count);
        match given == 0 && !self.takes_large {
            true => give_back_all(frames.map(|frame| frame.bytes)),
            false => frames.for_each(drop),
        }
        port.received = received.into();
        Ok(Looked { given, consumed: count - given, in_place: count - given })
    }

    fn counters(&mut self) -> SourceCounters {
        SourceCounters::default()
    }
}

impl FrameSink for Device {
    fn capabilities(&self) -> SinkCapabilities {
        SinkCapabilities {
            link: LinkKind::RawIp,
            mtu: MTU as u32,
            gso_bytes: if self.takes_large { u16::MAX.into() } else { 0 },
            segments_udp: false,
            segments_tunnels: false,
            completes_checksums: !self.checksums,
            expands_acks: false,
        }
    }

    fn transmit<'a, G: Gather<'a>>(
        &mut self,
        batch: impl ExactSizeIterator<Item = G>,
    ) -> Result<(), DeviceError> {
        let mut port = self.port.borrow_mut();
        if !self.takes_large {
            port.send_each(batch, |packet, buffer| fill(packet, buffer.room(packet.byte_len())));
            return Ok(());
        }
        batch.for_each(|packet| {
            let write = |to: &mut [u8]| fill(packet, to);
            match packet.offload().gso {
                Some(gso) => port.send_large(packet.byte_len(), gso, write),
                None => port.send(packet.byte_len(), write),
            }
        });
        Ok(())
    }

    fn counters(&self) -> SinkCounters {
        SinkCounters::default()
    }

    fn queued_bytes(&self) -> Option<u64> {
        let says = self.says_queue.get();
        says.then(|| (self.port.borrow().sent.len() * MTU) as u64)
    }
}

/// Copies all slices of `packet` into `to`.
#[inline]
fn fill<'a>(packet: impl Gather<'a>, mut to: &mut [u8]) {
    packet.for_each_slice(|piece| {
        let (place, rest) = std::mem::take(&mut to).split_at_mut(piece.len());
        place.copy_from_slice(piece);
        to = rest;
    });
}
