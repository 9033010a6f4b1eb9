//! A cast on virtual time: a sender and receivers, all of them hosts, and a switch between them. `forged`
//! adds packets that none of them sent.

mod forged;

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use rxo_device::{MemoryLink, MemoryOptions};
use rxo_frame::{Frame, Instant};
use rxo_host::{
    Cast, CastConfig, CastEvent, CastProgress, FastModules, Host, HostConfig, SharedBytes,
    TcpStream,
};
use rxo_tcp::{Control, Late, Outcome, Refusal, Repairs, Slow};
use rxo_wire::parse_ip;

use crate::world::{MemoryHost, drain, options, pattern};

const SENDER: &str = "10.0.0.9:7000";
const GROUP: &str = "232.1.1.1:7001";

fn address(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

fn cast_config() -> CastConfig {
    CastConfig {
        local: address(SENDER),
        group: address(GROUP),
        receivers: 50,
        slow: Slow::Eject(Duration::from_secs(10)),
        late: Late::Refuse,
        late_time: Some(Duration::from_secs(60)),
        repairs: Repairs::Group { least: 2 },
        control: Control::default(),
        buffer_bytes: 1 << 20,
    }
}

fn host_config(address: &str) -> HostConfig {
    let mut config = HostConfig::new(vec![address.parse().unwrap()], [address.len() as u64, 3]);
    config.tcp.ecn = false;
    config
}

/// Returns a host's address with the prefix length of its network.
fn network(ip: IpAddr) -> String {
    format!("{ip}/{}", if ip.is_ipv4() { 16 } else { 64 })
}

struct Receiver {
    host: MemoryHost,
    ip: IpAddr,
    there: MemoryLink,
    stream: TcpStream,
    got: Vec<u8>,
    is_done: bool,
    /// The time before which the host does not run.
    absent_until: Instant,
}

/// All hosts on the switch.
struct Rack {
    sender: MemoryHost,
    /// The address that the cast listens on, and the group that it sends to.
    local: SocketAddr,
    group: SocketAddr,
    cast: Cast,
    out: MemoryLink,
    back: MemoryLink,
    receivers: Vec<Receiver>,
    now: Instant,
    /// The loss rate: one segment in this many to a receiver is lost.
    lost: Option<u32>,
    random: u32,
    text: SharedBytes,
    rest: SharedBytes,
    joined: usize,
    refused: Vec<Refusal>,
    ended: Vec<(SocketAddr, Outcome)>,
    progress: CastProgress,
    /// Number of packets with data to the group.
    to_group: usize,
}

impl Rack {
    fn new(receivers: u8, config: CastConfig, bytes: usize) -> Self {
        Self::with(receivers, config, bytes, |_| {})
    }

    fn with(
        receivers: u8,
        config: CastConfig,
        bytes: usize,
        change: impl Fn(&mut HostConfig),
    ) -> Self {
        let plain = MemoryOptions { gso_bytes: 0, ..options() };
        let (out, back) = (MemoryLink::new(plain), MemoryLink::new(plain));
        let mut sender = host_config(&network(config.local.ip()));
        change(&mut sender);
        let sender = Host::new(back.source(), out.sink(), sender).unwrap();
        let cast = sender.handle().cast(config).unwrap();
        let CastConfig { local, group, .. } = config;
        let text = SharedBytes::from(pattern(bytes));
        let mut rack = Self {
            sender,
            local,
            group,
            cast,
            out,
            back,
            receivers: Vec::new(),
            now: Instant::from_micros(1_000_000),
            lost: None,
            random: 7,
            rest: text.clone(),
            text,
            joined: 0,
            refused: Vec::new(),
            ended: Vec::new(),
            progress: CastProgress::default(),
            to_group: 0,
        };
        (0..receivers).for_each(|_| rack.come());
        rack
    }

    fn come(&mut self) {
        let number = self.receivers.len();
        let ip: IpAddr = match self.local.is_ipv4() {
            true => format!("10.0.1.{number}").parse().unwrap(),
            false => format!("fd00::1:{number}").parse().unwrap(),
        };
        let there = MemoryLink::new(MemoryOptions { gso_bytes: 0, ..options() });
        let config = host_config(&network(ip));
        let host = Host::new(there.source(), self.back.sink(), config).unwrap();
        let stream = host.handle().join_nonblocking(self.local, self.group).unwrap();
        stream.set_nonblocking(true).unwrap();
        self.receivers.push(Receiver {
            host,
            ip,
            there,
            stream,
            got: Vec::new(),
            is_done: false,
            absent_until: Instant::ZERO,
        });
    }

    /// Advances the time by a millisecond, and runs all hosts.
    fn step(&mut self) {
        self.back.set_now(self.now);
        for receiver in self.receivers.iter_mut().filter(|it| it.absent_until <= self.now) {
            receiver.there.set_now(self.now);
            while !receiver.host.turn(self.now).unwrap().is_idle() {}
            if let Ok((bytes, is_done)) = drain(&receiver.stream) {
                receiver.got.extend(bytes);
                if is_done && !receiver.is_done {
                    receiver.is_done = true;
                    let _ = receiver.stream.shutdown(std::net::Shutdown::Write);
                }
            }
        }
        while !self.sender.turn(self.now).unwrap().is_idle() {}
        self.hear();
        self.switch();
        self.now = self.now + Duration::from_millis(1);
    }

    /// Carries packets to the hosts that they are addressed to.
    fn switch(&mut self) {
        for sent in self.out.take_all() {
            let parsed = parse_ip(&sent.bytes).unwrap();
            let to = parsed.key.destination();
            let has_text = sent.bytes.len() > 100;
            self.to_group += usize::from(to.is_multicast() && has_text);
            for receiver in &self.receivers {
                if receiver.absent_until > self.now || !to.is_multicast() && to != receiver.ip {
                    continue;
                }
                self.random = self.random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                if has_text && self.lost.is_some_and(|of| (self.random >> 8).is_multiple_of(of)) {
                    continue;
                }
                let checksum = sent.offload.checksum;
                let frame = Frame::new(sent.bytes.clone(), self.now);
                receiver.there.push(&Frame { checksum, ..frame });
            }
        }
    }

    fn hear(&mut self) {
        while let Ok(Some(event)) = self.cast.event(Duration::ZERO) {
            match event {
                CastEvent::Joined { .. } => self.joined += 1,
                CastEvent::Refused { why, .. } => self.refused.push(why),
                CastEvent::Ended { peer, outcome, .. } => self.ended.push((peer, outcome)),
                CastEvent::WantsText { id, from, bytes } => {
                    let mut text = self.text.clone();
                    text.advance(from as usize);
                    self.cast.provide(id, text.first(bytes as usize));
                }
                CastEvent::Progress(progress) => self.progress = progress,
            }
        }
    }

    fn begin(&mut self) {
        while self.joined < self.receivers.len() - self.refused.len() {
            self.step();
            assert!(self.now < Instant::from_micros(60_000_000), "they do not come");
        }
        self.cast.start();
    }

    /// Writes as much as the cast accepts.
    fn feed(&mut self) {
        if self.rest.is_empty() {
            return;
        }
        while self.cast.write(&mut self.rest) > 0 {}
        if self.rest.is_empty() {
            self.cast.finish();
        }
    }

    fn finish(&mut self) {
        if self.text.is_empty() {
            self.cast.finish();
        }
        let end = self.now + Duration::from_secs(600);
        while self.ended.len() < self.joined {
            self.feed();
            self.step();
            assert!(self.now < end, "{} of {} have ended", self.ended.len(), self.joined);
        }
    }

    fn done(&self) -> usize {
        let ended = self.ended.iter().filter(|(_, outcome)| *outcome == Outcome::Done).count();
        let whole =
            self.receivers.iter().filter(|it| it.is_done && it.got[..] == self.text[..]).count();
        assert!(whole >= ended, "{whole} are whole, {ended} are done");
        ended
    }
}

#[test]
fn each_byte_leaves_once_for_all_receivers() {
    let mut rack = Rack::new(10, cast_config(), 2_000_000);
    rack.begin();
    rack.finish();
    assert_eq!((rack.done(), rack.to_group), (10, 2_000_000_usize.div_ceil(1_448)));
    assert_eq!(rack.sender.counters().connections, 0, "nothing is left");
}

/// A cast over IPv6 repairs segments to one receiver and to all, and consumes ACKs on the fast path.
#[test]
fn a_cast_over_ipv6_does_the_same() {
    let config = CastConfig {
        local: address("[fd00::9]:7000"),
        group: address("[ff3e::8000:1]:7001"),
        ..cast_config()
    };
    let mut rack = Rack::new(10, config, 2_000_000);
    rack.begin();
    rack.finish();
    assert_eq!((rack.done(), rack.to_group), (10, 2_000_000_usize.div_ceil(1_428)));
    let mut rack = Rack::with(10, config, 600_000, |config| {
        config.fast_path.modules = FastModules::PURE_ACK;
    });
    rack.lost = Some(50);
    rack.begin();
    rack.finish();
    assert_eq!(rack.done(), 10, "{:?}", rack.ended);
    assert!(rack.sender.counters().fast.consumed > 0);
}

/// Some segments are lost, one receiver dies, and another pauses for 3 s.
#[test]
fn all_that_live_get_the_stream() {
    for fast in [false, true] {
        let mut rack = Rack::with(20, cast_config(), 600_000, |config| {
            config.fast_path.modules = if fast { FastModules::PURE_ACK } else { FastModules::OFF };
        });
        rack.lost = Some(50);
        rack.begin();
        (0..20).for_each(|_| {
            rack.feed();
            rack.step();
        });
        rack.receivers[3].absent_until = Instant::from_nanos(u64::MAX);
        rack.receivers[4].absent_until = rack.now + Duration::from_secs(3);
        rack.finish();
        assert_eq!(rack.done(), 19, "{:?}", rack.ended);
        let killed = rack.ended.iter().find(|(peer, _)| peer.ip() == rack.receivers[3].ip);
        let ejected = Some(Outcome::Ejected(Duration::from_secs(10)));
        assert_eq!(killed.map(|(_, outcome)| *outcome), ejected);
    }
}

/// The erasure code at work: parity packets repair all losses, over IPv4 and IPv6.
#[cfg(feature = "parity")]
#[test]
fn parity_packets_mend_what_is_lost() {
    let v6 = CastConfig {
        local: address("[fd00::9]:7000"),
        group: address("[ff3e::8000:1]:7001"),
        ..cast_config()
    };
    for config in [cast_config(), v6] {
        let config = CastConfig { repairs: Repairs::Parity, ..config };
        let mut rack = Rack::new(10, config, 1_000_000);
        rack.lost = Some(50);
        rack.begin();
        rack.finish();
        assert_eq!(rack.done(), 10, "{:?}", rack.ended);
        let CastProgress { parity_packets, group_repairs, .. } = rack.progress;
        // 2 % of 690 segments are lost at each of 10 receivers: repeated one by one they are more than a hundred.
        assert!((15..90).contains(&parity_packets), "{:?}", rack.progress);
        assert!(group_repairs < 20, "{:?}", rack.progress);
    }
}

#[cfg(not(feature = "parity"))]
#[test]
fn a_build_without_the_erasure_code_refuses_parity() {
    let rack = Rack::new(0, cast_config(), 0);
    let config = CastConfig { repairs: Repairs::Parity, ..cast_config() };
    let said = rack.sender.handle().cast(config).unwrap_err().to_string();
    assert!(said.contains("needs the feature parity"), "{said}");
}

#[test]
fn late_receivers_are_refused_or_catch_up() {
    for (late, done) in [(Late::Refuse, 5), (Late::CatchUp, 6)] {
        let mut rack = Rack::new(5, CastConfig { late, ..cast_config() }, 8_000_000);
        rack.begin();
        (0..40).for_each(|_| {
            rack.feed();
            rack.step();
        });
        rack.come();
        rack.finish();
        (0..20).for_each(|_| rack.step());
        rack.finish();
        assert_eq!(rack.done(), done, "{:?}", rack.ended);
        assert_eq!(rack.refused.is_empty(), late == Late::CatchUp);
    }
}

/// Dropping a cast leaves no receiver waiting.
#[test]
fn dropping_the_cast_resets_its_receivers() {
    let mut rack = Rack::new(3, cast_config(), 4_000_000);
    rack.begin();
    (0..10).for_each(|_| {
        rack.feed();
        rack.step();
    });
    let other = Rack::new(0, cast_config(), 0);
    rack.cast = other.cast;
    (0..10).for_each(|_| rack.step());
    for receiver in &rack.receivers {
        assert!(receiver.stream.take_error().unwrap().is_some(), "it is told");
    }
    assert_eq!(rack.sender.counters().connections, 0);
}

/// Opening a second cast resets the receivers of the first, whose handle has no effect any more.
#[test]
fn a_new_cast_replaces_the_first_and_outlives_its_handle() {
    let mut rack = Rack::new(3, cast_config(), 4_000_000);
    rack.begin();
    (0..10).for_each(|_| {
        rack.feed();
        rack.step();
    });
    rack.local = address("10.0.0.9:7002");
    let config = CastConfig { local: rack.local, ..cast_config() };
    let second = rack.sender.handle().cast(config).unwrap();
    let mut first = std::mem::replace(&mut rack.cast, second);
    (0..10).for_each(|_| rack.step());
    for receiver in std::mem::take(&mut rack.receivers) {
        assert!(receiver.stream.take_error().unwrap().is_some(), "it is told");
    }
    assert_eq!(rack.sender.counters().connections, 0);
    (rack.joined, rack.rest) = (0, rack.text.clone());
    (0..3).for_each(|_| rack.come());
    rack.begin();
    first.write(&mut SharedBytes::from(b"not of this cast".to_vec()));
    first.finish();
    drop(first);
    rack.finish();
    assert_eq!(rack.done(), 3, "{:?}", rack.ended);
}

#[test]
fn settings_that_cannot_be_are_named() {
    let rack = Rack::new(0, cast_config(), 0);
    let handle = rack.sender.handle();
    let refused = |config| handle.cast(config).unwrap_err().to_string();
    let no_group = CastConfig { group: address("10.0.0.1:7001"), ..cast_config() };
    assert!(refused(no_group).contains("10.0.0.1:7001 is no group"));
    let other = CastConfig { local: address("10.0.0.8:7000"), ..cast_config() };
    assert!(refused(other).contains("10.0.0.8 is not an address"));
    let none = CastConfig { receivers: 0, ..cast_config() };
    assert!(refused(none).contains("0 receivers; choose 1 to"));
    assert!(refused(cast_config()).contains("7000"), "the port is taken");
}
