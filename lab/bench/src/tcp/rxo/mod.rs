//! rxo's stack: passes frames through the engine to the connections, and their segments back to the link.

mod emit;

use rxo_coalesce::{Config as EngineConfig, Delivery, Engine, Policy, Taken};
use rxo_frame::{Frame, Instant, LinkKind, SharedBytes};
use rxo_tcp::{AckPolicy, Arrival, Config, Connection, GsoSegment, PlainSegments, Secret, Segment};
use rxo_wire::checksum::{Summer, verify_tcp};
use rxo_wire::{FlowKey, Offsets};

use self::emit::Emitter;
use super::link::{Buffer, Port};
use super::stack::{
    BUFFER_BYTES, CALL_BYTES, CLIENT, FIRST_PORT, Reading, Role, SERVER, SERVER_PORT, Setting,
    Stack, TURN_FRAMES, lent, look_at, next_lent,
};
use crate::contender::SEED;

/// The enabled features (Menon 2008, section 5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Variant {
    /// Single frames, with each ACK built separately.
    Original,
    /// `Offload` with aggregates of at most one segment.
    LimitOne,
    /// Aggregates, with each ACK built separately.
    Aggregation,
    /// Aggregates, with ACKs expanded from templates.
    Offload,
    /// Aggregates, with one ACK for each.
    Stretch,
    /// `Offload`, with an application that lends its data.
    Lent,
}

impl Variant {
    fn policy(self) -> Policy {
        match self {
            Self::Original => Policy::none(),
            Self::LimitOne => Policy { max_segments: 1, ..Policy::remember() },
            Self::Aggregation | Self::Offload | Self::Stretch | Self::Lent => {
                Policy::remember().for_records()
            }
        }
    }

    /// Returns the variant's ACK policy.
    pub(crate) fn acks(self) -> AckPolicy {
        match self {
            Self::Stretch => AckPolicy::OneForATurn,
            _ => AckPolicy::EverySecondSegment,
        }
    }

    fn has_templates(self) -> bool {
        matches!(self, Self::LimitOne | Self::Offload | Self::Lent)
    }
}

/// The contender: engine and endpoints.
pub(crate) struct Rxo {
    port: Port,
    engine: Engine<Buffer>,
    tcp: Endpoints,
}

/// The connections with their application.
struct Endpoints {
    role: Role,
    reading: Reading,
    connections: Vec<Connection<Buffer>>,
    /// Connections that have received data; the next field marks membership in this list.
    dirty: Vec<usize>,
    is_dirty: Vec<bool>,
    emitter: Emitter,
    summer: Summer,
    application: Vec<u8>,
    /// The data that the application lends repeatedly, and its unsent rest; `None` if it copies.
    lent: Option<[SharedBytes; 2]>,
    read_bytes: u64,
}

impl Rxo {
    pub(crate) fn new(setting: Setting, variant: Variant) -> Self {
        let mut config = EngineConfig::new(variant.policy(), SEED);
        config.link = LinkKind::RawIp;
        config.batch_frames = TURN_FRAMES;
        Self {
            port: Port::new(setting.checksums, setting.takes_large),
            engine: Engine::new(config).expect("the policy is valid"),
            tcp: Endpoints::new(setting, variant),
        }
    }
}

impl Stack for Rxo {
    fn port(&mut self) -> &mut Port {
        &mut self.port
    }

    fn turn(&mut self, now: Instant) {
        let Self { port, engine, tcp } = self;
        // The queue's memory becomes the batch, and after it is emptied the queue again.
        let mut batch = Vec::from(std::mem::take(&mut port.received));
        engine.poll(&mut batch, now, |mut deliveries| {
            while let Some(taken) = deliveries.take_next() {
                tcp.take(taken, now);
            }
        });
        port.received = batch.into();
        tcp.serve(now, port);
    }

    fn idle(&mut self, now: Instant) {
        let Self { port, tcp, .. } = self;
        for number in 0..tcp.connections.len() {
            tcp.connections[number].on_timeout(now);
            tcp.touch(number);
        }
        tcp.serve(now, port);
    }

    fn read_bytes(&self) -> u64 {
        self.tcp.read_bytes
    }
}

impl Endpoints {
    fn new(setting: Setting, variant: Variant) -> Self {
        let count = usize::from(setting.connections);
        let mut endpoints = Self {
            role: setting.role,
            reading: setting.reading,
            connections: (0..setting.connections)
                .map(|at| connection(setting, variant, at))
                .collect(),
            dirty: Vec::with_capacity(count),
            is_dirty: vec![false; count],
            emitter: Emitter::new(setting.checksums, variant.has_templates()),
            summer: Summer::detect(),
            application: vec![0; CALL_BYTES],
            lent: (variant == Variant::Lent).then(lent),
            read_bytes: 0,
        };
        (0..count).for_each(|number| endpoints.touch(number));
        endpoints
    }

    fn take(&mut self, taken: Taken<'_, Buffer>, now: Instant) {
        match taken.view() {
            Delivery::Frame(single) => {
                let Some(at) = single.offsets() else { return };
                let is_intact = taken.is_intact();
                taken.into_frames().for_each(|frame| self.take_frame(frame, at, is_intact, now));
            }
            Delivery::Aggregate(aggregate) => {
                let number = self.number(&aggregate.flow_key());
                let (transport, payload) = (aggregate.transport_at(), aggregate.header().len());
                let (transport, payload) = (transport as u32, payload as u32);
                let at = Offsets { network: 0, transport, payload, end: payload };
                let alike = aggregate.alike_segments();
                let segments = PlainSegments::new(taken.into_frames(), at, alike);
                self.connections[number].on_arrival(now, Arrival::run(segments));
                self.touch(number);
            }
            Delivery::Acks(acks) => {
                let number = self.number(&acks.flow_key());
                self.connections[number].on_arrival(now, Arrival::acks(acks.records()));
                self.touch(number);
            }
        }
    }

    fn take_frame(&mut self, frame: Frame<Buffer>, at: Offsets, is_intact: bool, now: Instant) {
        let Some(key) = FlowKey::read(frame.bytes(), at) else { return };
        let is_trusted = is_intact || frame.checksum.is_trusted();
        if !is_trusted && !verify_tcp(&key, at, frame.bytes(), self.summer) {
            return;
        }
        let number = self.number(&key);
        let gso = frame.gso;
        let Some(segment) = Segment::read(frame.bytes, at, frame.arrived_at) else { return };
        let connection = &mut self.connections[number];
        match gso {
            None => connection.on_arrival(now, segment.into()),
            Some(gso) => {
                let segment = GsoSegment::new(segment, gso.size, Buffer::share);
                connection.on_arrival(now, Arrival::gso(segment));
            }
        }
        self.touch(number);
    }

    /// Returns the index of the connection that a received flow belongs to.
    fn number(&self, key: &FlowKey) -> usize {
        let port = if self.role == Role::OpensAndWrites {
            key.destination_port()
        } else {
            key.source_port()
        };
        usize::from(port - FIRST_PORT)
    }

    fn touch(&mut self, number: usize) {
        if !std::mem::replace(&mut self.is_dirty[number], true) {
            self.dirty.push(number);
        }
    }

    /// Runs the application's reads and writes, and sends what is due.
    fn serve(&mut self, now: Instant, port: &mut Port) {
        let Self { connections, dirty, is_dirty, emitter, application, lent, read_bytes, .. } =
            self;
        let (role, reading) = (self.role, self.reading);
        for number in dirty.drain(..) {
            is_dirty[number] = false;
            let connection = &mut connections[number];
            if role == Role::Reads {
                *read_bytes += read_all(connection, reading, application);
            } else {
                write_all(connection, application, lent.as_mut());
            }
            if connection.poll_at().is_some_and(|at| at <= now) {
                connection.on_timeout(now);
            }
            let pair = connection.pair();
            while let Some(transmit) = connection.poll_transmit(now) {
                emitter.emit(&pair, &transmit, port);
            }
        }
    }
}

/// Writes until the send buffer is full: copies of `text`, or lent data.
fn write_all(
    connection: &mut Connection<Buffer>,
    text: &[u8],
    mut lent: Option<&mut [SharedBytes; 2]>,
) {
    while connection.send_room() > 0 {
        let written = match &mut lent {
            Some(lent) => connection.send_shared(next_lent(lent)),
            None => connection.send(text),
        };
        if written.is_err() {
            return;
        }
    }
}

/// Reads everything available. Returns the number of bytes.
fn read_all(connection: &mut Connection<Buffer>, reading: Reading, to: &mut [u8]) -> u64 {
    let mut all = 0;
    if reading == Reading::InPlace {
        connection.readable().for_each(look_at);
        return connection.consume(connection.readable_bytes()) as u64;
    }
    while let Ok(read) = connection.receive(to) {
        all += read as u64;
    }
    all
}

fn connection(setting: Setting, variant: Variant, number: u16) -> Connection<Buffer> {
    let config = Config {
        acks: variant.acks(),
        send_buffer_bytes: BUFFER_BYTES as u32,
        receive_buffer_bytes: BUFFER_BYTES as u32,
        timestamps: setting.timestamps,
        ..Config::default()
    };
    let (server, client) = (u32::from_be_bytes(SERVER), u32::from_be_bytes(CLIENT));
    let ports = u32::from(FIRST_PORT + number) << 16 | u32::from(SERVER_PORT);
    let to_server = FlowKey::v4(client, server, ports, 0);
    let secret = Secret([1, 2]);
    let opened = if setting.role == Role::OpensAndWrites {
        Connection::open_active(config, to_server, secret, Instant::from_micros(1_000_000))
    } else {
        Connection::open_passive(config, to_server.reversed(), secret)
    };
    opened.expect("settings that can be")
}
