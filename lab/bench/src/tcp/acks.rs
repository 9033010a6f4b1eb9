//! Measures a sending host's cost of an ACK: the receiving part of its turn, per ACK.
//!
//! Equal ACKs take three ways: each separately through the engine (*stack*), aggregated with a record of each
//! (*records*), or through the fast path, which consumes them inside the device's ring. In each round all
//! data is sent and acknowledged, so the counted turn has nothing to send. The count covers `Host::receive`:
//! device, engine or fast path, demultiplexing, and TCP.

use std::io::{ErrorKind, Read, Write};
use std::net::SocketAddr;

use rxo_coalesce::PureAckRule;
use rxo_frame::{Duration, Instant};
use rxo_host::{FastModules, Host, HostConfig, IpCidr, TcpListener, TcpStream};
use rxo_tcp::AckPolicy;

use super::host::Device;
use super::stack::{CLIENT, SERVER, SERVER_PORT};

/// A counted case.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AckCase {
    pub(crate) name: &'static str,
    way: Way,
    connections: usize,
    /// Number of ACKs of each connection per batch.
    each: usize,
    /// `true` if the host verifies checksums.
    checksums: bool,
}

/// The path of an ACK through the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Stack,
    Records,
    Fast,
}

impl AckCase {
    pub(crate) const ALL: [Self; 10] = [
        Self::new("host-acks-stack", Way::Stack, 1, 32),
        Self::new("host-acks-records", Way::Records, 1, 32),
        Self::new("host-acks-fast", Way::Fast, 1, 32),
        Self::new("host-acks-4-stack", Way::Stack, 16, 4),
        Self::new("host-acks-4-records", Way::Records, 16, 4),
        Self::new("host-acks-4-fast", Way::Fast, 16, 4),
        Self::new("host-acks-1-stack", Way::Stack, 64, 1),
        Self::new("host-acks-1-records", Way::Records, 64, 1),
        Self::new("host-acks-1-fast", Way::Fast, 64, 1),
        Self { checksums: true, ..Self::new("host-acks-fast-checksums", Way::Fast, 1, 32) },
    ];

    const fn new(name: &'static str, way: Way, connections: usize, each: usize) -> Self {
        Self { name, way, connections, each, checksums: false }
    }

    /// Runs the turns of `passes` passes inside `count`. Returns the number of ACKs.
    pub(crate) fn run(self, passes: u32, mut count: impl FnMut(&mut dyn FnMut())) -> usize {
        let mut scene = Scene::open(self);
        for _ in 0..WARM_ROUNDS {
            scene.warm();
        }
        (0..passes * ROUNDS).map(|_| scene.round(&mut count)).sum()
    }
}

/// A sending host and its peers.
struct Scene {
    devices: [Device; 2],
    sender: Host<Device, Device>,
    receiver: Host<Device, Device>,
    listener: TcpListener,
    streams: Vec<TcpStream>,
    accepted: Vec<TcpStream>,
    text: Vec<u8>,
    now: Instant,
}

impl Scene {
    fn open(case: AckCase) -> Self {
        let devices = [(); 2].map(|()| Device::new(case.checksums));
        let host = |device: &Device, address: [u8; 4], config: HostConfig| {
            let network = IpCidr::new(address.into(), 24).expect("a network of 24 bits");
            let config = HostConfig { addresses: vec![network], ..config };
            Host::new(device.clone(), device.clone(), config).expect("settings that can be")
        };
        let [sends, receives] = &devices;
        let receiver = host(receives, SERVER, config());
        let sender = host(sends, CLIENT, case.config());
        let server = SocketAddr::from((SERVER, SERVER_PORT));
        let listener = receiver.handle().listen(server, 2 * case.connections).expect("a free port");
        listener.set_nonblocking(true).expect("a listener that lives");
        let connect = |_| {
            let stream = sender.handle().connect_nonblocking(server).expect("a free port");
            stream.set_nonblocking(true).expect("a stream that lives");
            stream
        };
        let streams = (0..case.connections).map(connect).collect();
        let (accepted, text) = (Vec::new(), vec![0; case.each * 2 * SEGMENT_BYTES]);
        let now = Instant::from_micros(1_000_000);
        Self { devices, sender, receiver, listener, streams, accepted, text, now }
    }

    /// Sends everything, in as many turns as needed. Uncounted.
    fn warm(&mut self) {
        for _ in 0..MOST_TURNS {
            self.send();
            self.answer();
            self.sender.turn(self.now).expect("a device that is there");
            if self.accepted.len() == self.streams.len() && self.is_quiet() {
                self.write();
                return;
            }
        }
        panic!("it does not end");
    }

    /// Sends everything at once, and counts the turn that receives the ACKs. Returns the number of ACKs.
    fn round(&mut self, count: &mut impl FnMut(&mut dyn FnMut())) -> usize {
        self.send();
        let acks = self.answer();
        let (sender, now) = (&mut self.sender, self.now);
        count(&mut || {
            sender.turn(now).expect("a device that is there");
        });
        assert!(self.is_quiet(), "all was sent at once");
        self.write();
        acks
    }

    fn write(&mut self) {
        for stream in &mut self.streams {
            assert_eq!(stream.write(&self.text).expect("room"), self.text.len());
        }
    }

    /// Runs the sender, and carries its frames to the receiver. With many connections each turn serves a part
    /// of them.
    fn send(&mut self) {
        self.now = self.now + TURN;
        while self.sender.turn(self.now).expect("a device that is there").served > 0 {}
        self.carry(0, 1);
    }

    /// Makes the receivers answer. Returns the number of frames.
    fn answer(&mut self) -> usize {
        while self.receiver.turn(self.now).expect("a device that is there").served > 0 {
            while let Ok((stream, _)) = self.listener.accept() {
                stream.set_nonblocking(true).expect("a stream that lives");
                self.accepted.push(stream);
            }
            self.accepted.iter_mut().for_each(read_all);
        }
        self.carry(1, 0)
    }

    fn carry(&mut self, from: usize, to: usize) -> usize {
        let sent = self.devices[from].take_sent();
        let count = sent.len();
        sent.into_iter().for_each(|frame| self.devices[to].arrive(frame, self.now));
        count
    }

    fn is_quiet(&self) -> bool {
        let is_quiet = |stream: &TcpStream| {
            let seen = stream.statistics();
            seen.snd_una == seen.snd_nxt && seen.unsent == 0
        };
        self.streams.iter().all(is_quiet)
    }
}

impl AckCase {
    fn config(self) -> HostConfig {
        let mut config = config();
        if self.way == Way::Stack {
            config.engine.policy.pure_acks = PureAckRule::Bypass;
        }
        if self.way == Way::Fast {
            config.fast_path.modules = FastModules::PURE_ACK;
        }
        config
    }
}

fn config() -> HostConfig {
    let mut config = HostConfig::new(Vec::new(), [1, 2]);
    config.tcp.acks = AckPolicy::EverySecondSegment;
    config.tcp.send_buffer_bytes = 256 << 10;
    config.tcp.receive_buffer_bytes = 256 << 10;
    config.tcp.largest_buffers = None;
    config
}

fn read_all(stream: &mut TcpStream) {
    let mut buffer = [0; 65_536];
    loop {
        match stream.read(&mut buffer) {
            Ok(0) => return,
            Ok(_) => {}
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::WouldBlock);
                return;
            }
        }
    }
}

/// Payload bytes of a full segment with timestamps, for an MTU of 1,500.
const SEGMENT_BYTES: usize = 1_448;
const TURN: Duration = Duration::from_micros(20);
const WARM_ROUNDS: u32 = 40;
const ROUNDS: u32 = 64;
const MOST_TURNS: u32 = 1_000;

#[cfg(test)]
mod tests {
    use super::AckCase;

    #[test]
    fn every_batch_has_all_acks() {
        for case in AckCase::ALL {
            let acks = case.run(1, |turn| turn());
            assert!(acks >= 64 * case.connections * case.each, "{}", case.name);
        }
    }
}
