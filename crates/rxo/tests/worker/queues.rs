//! Tests of the order of flows across queues: 16 workers between the queues of two devices, in virtual time.
//!
//! Each worker runs its own loop on its own thread, but only the worker that holds the baton runs. At each
//! reading of the clock and at each wait it gives the baton to a worker that a seed chooses. So any two
//! workers overtake each other in every way, and each run is the same. All queues of a device end in one
//! link, which has the packets in the order in which they left. The oracle shares no code with the workers:
//! it reads sequence numbers.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard};
use std::thread;
use std::time::Duration;

use rxo::coalesce::{Hold, TunnelRule};
use rxo::device::Sent;
use rxo::wire::{FlowKey, parse, shard_of};
use rxo::worker::{Awake, Imbalance, Reading, Waiter, Wanted};
use rxo::{
    DeviceError, Duplex, Frame, Instant, MemoryLink, MemoryOptions, Policy, Worker, WorkerConfig,
};
use rxo_testkit::{Random, seg};

const WORKERS: usize = 16;
const FLOWS: u32 = 300;
const FRAMES: u32 = 12_000;

/// The rule by which a device chooses the queue of a frame, the number of which is the second argument.
type Steering = fn(&[u8], usize) -> usize;

/// The rule by which the devices of `rxo-driver` choose the queue of a frame: by its flow.
fn by_flow(frame: &[u8], _: usize) -> usize {
    shard_of(&key(frame), WORKERS as u32) as usize
}

/// A rule that no device may use: it spreads the frames of a flow over all queues.
fn in_turn(_: &[u8], number: usize) -> usize {
    number % WORKERS
}

fn key(frame: &[u8]) -> FlowKey {
    parse(frame).unwrap().key
}

/// The queues of both devices, and the packets that arrive there.
struct Network {
    from_nic: Vec<MemoryLink>,
    from_host: Vec<MemoryLink>,
    to_nic: MemoryLink,
    to_host: MemoryLink,
    baton: Mutex<Baton>,
    passed: Condvar,
    stop: AtomicBool,
}

/// The right to run, and the time, which passes with it.
struct Baton {
    /// The worker that runs; `None` before the start and after the end.
    holder: Option<usize>,
    runs: Vec<bool>,
    random: Random,
    now: Instant,
    /// Frames that will arrive: for each the time, `true` if the nic receives it, the queue, and the frame.
    events: VecDeque<(Instant, bool, usize, Frame<Vec<u8>>)>,
}

/// The clock of one worker.
struct Clock<'n> {
    network: &'n Network,
    n: usize,
}

impl Network {
    fn new(seed: u64, steering: Steering) -> Self {
        let options = MemoryOptions { most_packets: 1 << 16, ..MemoryOptions::default() };
        let links = || (0..WORKERS).map(|_| MemoryLink::new(options)).collect();
        let baton = Baton {
            holder: None,
            runs: vec![true; WORKERS],
            random: Random::new(seed),
            now: Instant::from_micros(1),
            events: traffic(seed, steering),
        };
        Self {
            from_nic: links(),
            from_host: links(),
            to_nic: MemoryLink::new(options),
            to_host: MemoryLink::new(options),
            baton: Mutex::new(baton),
            passed: Condvar::new(),
            stop: AtomicBool::new(false),
        }
    }

    /// Runs all workers until everything has arrived and nothing is held. Returns their counters.
    fn run(&self, policy: Policy) -> Vec<Reading> {
        thread::scope(|scope| {
            let work = |n| scope.spawn(move || self.work(n, policy));
            let running: Vec<_> = (0..WORKERS).map(work).collect();
            self.pass(&mut self.baton.lock().unwrap());
            running.into_iter().map(|worker| worker.join().unwrap()).collect()
        })
    }

    fn work(&self, n: usize, policy: Policy) -> Reading {
        let nic = Duplex { source: self.from_nic[n].source(), sink: self.to_nic.sink() };
        let host = Duplex { source: self.from_host[n].source(), sink: self.to_host.sink() };
        let mut config = WorkerConfig { overload: None, ..WorkerConfig::new(policy) };
        config.engine.seed = n as u64;
        let mut worker = Worker::new(nic, host, config).unwrap();
        let mut clock = Clock { network: self, n };
        drop(clock.await_baton(self.baton.lock().unwrap()));
        let result = worker.run(&mut clock, &self.stop, |_| {});
        let mut baton = self.baton.lock().unwrap();
        baton.runs[n] = false;
        self.pass(&mut baton);
        result.unwrap();
        worker.reading()
    }

    /// Lets some time pass, and gives the baton to an arbitrary worker.
    fn pass(&self, baton: &mut Baton) {
        baton.now = baton.now + Duration::from_nanos(500 + baton.random.below(2_500));
        while let Some((_, is_from_nic, queue, frame)) =
            baton.events.pop_front_if(|(at, ..)| *at <= baton.now)
        {
            let queues = if is_from_nic { &self.from_nic } else { &self.from_host };
            queues[queue].push(&frame);
        }
        let is_silent = |links: &[MemoryLink]| links.iter().all(MemoryLink::is_silent);
        if baton.events.is_empty() && is_silent(&self.from_nic) && is_silent(&self.from_host) {
            self.stop.store(true, Ordering::Relaxed);
        }
        let run: Vec<_> = (0..WORKERS).filter(|&n| baton.runs[n]).collect();
        let chosen = (!run.is_empty()).then(|| baton.random.below(run.len() as u64) as usize);
        baton.holder = chosen.map(|chosen| run[chosen]);
        self.passed.notify_all();
    }
}

impl<'n> Clock<'n> {
    fn await_baton(&self, baton: MutexGuard<'n, Baton>) -> MutexGuard<'n, Baton> {
        self.network.passed.wait_while(baton, |baton| baton.holder != Some(self.n)).unwrap()
    }

    /// Lets other workers run. Returns the time at which this worker runs again.
    fn pass(&self) -> Instant {
        let mut baton = self.network.baton.lock().unwrap();
        self.network.pass(&mut baton);
        self.await_baton(baton).now
    }
}

impl<NI, NO, HI, HO> Waiter<NI, NO, HI, HO> for Clock<'_> {
    fn now(&mut self) -> Instant {
        self.pass()
    }

    fn cpu_time(&mut self) -> Duration {
        Duration::ZERO
    }

    fn pause(&mut self, _: Duration) {
        self.pass();
    }

    fn wait(&mut self, _: Wanted<'_, NI, NO, HI, HO>, _: Duration) -> Result<Awake, DeviceError> {
        self.pass();
        Ok(Awake::ALL)
    }
}

/// Creates a segment of the flow with this number, at the sequence number `seq`, as it comes from the nic or
/// goes to it.
fn frame(flow: u32, seq: u32, bytes: usize, is_from_nic: bool, at: Instant) -> Frame<Vec<u8>> {
    let packet = seg().ports(40_000 + flow as u16, 443).seq(seq).len(bytes);
    let packet = if flow.is_multiple_of(3) { packet.v6() } else { packet };
    let mut frame = packet.frame_at(at);
    if !is_from_nic {
        let (addresses, half) = if flow.is_multiple_of(3) { (22, 16) } else { (26, 4) };
        frame.bytes[addresses..addresses + 2 * half].rotate_left(half);
        let ports = addresses + 2 * half;
        frame.bytes[ports..ports + 4].rotate_left(2);
    }
    frame
}

/// Creates flows in both directions, in mixed runs of a few segments; each segment goes to the queue that
/// `steering` chooses.
fn traffic(seed: u64, steering: Steering) -> VecDeque<(Instant, bool, usize, Frame<Vec<u8>>)> {
    let mut random = Random::new(seed ^ 0x5eed);
    let mut next: HashMap<(u32, bool), u32> = HashMap::new();
    let (mut events, mut at) = (VecDeque::new(), Instant::from_micros(10));
    while events.len() < FRAMES as usize {
        // A few flows have most of the segments.
        let flow = random.below(u64::from(FLOWS)).min(random.below(u64::from(FLOWS))) as u32;
        let is_from_nic = random.percent(70);
        let seq = next.entry((flow, is_from_nic)).or_insert(1_000);
        for _ in 0..=random.below(6) {
            at = at + Duration::from_nanos(random.below(1_200));
            let bytes = if random.percent(80) { 1_448 } else { 1 + random.below(1_448) as usize };
            let frame = frame(flow, *seq, bytes, is_from_nic, at);
            *seq += bytes as u32;
            let queue = steering(&frame.bytes, events.len());
            events.push_back((at, is_from_nic, queue, frame));
        }
    }
    events
}

/// Checks that each flow of `sent` is whole and in order. Returns the number of payload bytes.
///
/// # Errors
/// The first packet that is not the next of its flow.
fn in_order(sent: &[Sent]) -> Result<usize, String> {
    let (mut next, mut total) = (HashMap::new(), 0);
    for (n, packet) in sent.iter().enumerate() {
        let bytes = &packet.bytes;
        let tcp = if bytes[12..14] == [0x08, 0x00] { 34 } else { 54 };
        let seq = u32::from_be_bytes(bytes[tcp + 4..tcp + 8].try_into().unwrap());
        let payload = bytes.len() - tcp - usize::from(bytes[tcp + 12] >> 4) * 4;
        let flow = bytes[22..tcp].to_vec();
        let flow = (flow, bytes[tcp..tcp + 4].to_vec());
        // The part of an IPv4 header before the addresses differs from packet to packet.
        let flow = if tcp == 34 { (bytes[26..34].to_vec(), flow.1) } else { flow };
        let expected = next.entry(flow).or_insert(1_000_u32);
        if seq != *expected {
            return Err(format!("packet {n} begins at {seq} and not at {expected}"));
        }
        *expected += payload as u32;
        total += payload;
    }
    Ok(total)
}

fn policy(hold: Hold) -> Policy {
    // A link in memory segments no tunnels.
    Policy { hold, tunnels: TunnelRule::Off, ..Policy::linux_gro().with_udp_if(false) }
}

/// Returns the number of payload bytes in `traffic`, from the nic and from the host.
fn offered(seed: u64) -> [usize; 2] {
    let mut bytes = [0; 2];
    for (_, is_from_nic, _, frame) in traffic(seed, by_flow) {
        let headers = if frame.bytes[12..14] == [0x08, 0x00] { 54 } else { 74 };
        bytes[usize::from(!is_from_nic)] += frame.bytes.len() - headers;
    }
    bytes
}

#[test]
fn each_flow_keeps_its_order_across_sixteen_queues() {
    let holds = [Hold::EndOfPoll, Hold::Within(Duration::from_micros(200)), Hold::AUTO];
    for (seed, hold) in (1..7).zip(holds.into_iter().cycle()) {
        let network = Network::new(seed, by_flow);
        let readings = network.run(policy(hold));
        let [to_host, to_nic] = [network.to_host.take_all(), network.to_nic.take_all()];
        let carried = [in_order(&to_host).unwrap(), in_order(&to_nic).unwrap()];
        assert_eq!(carried, offered(seed), "seed {seed}");
        assert!(to_host.iter().any(|packet| packet.frames > 1), "something was coalesced");
        // Every worker carried some of the traffic, and lost none of it.
        for reading in readings {
            assert!(reading.nic_in.frames > 100 && reading.host_in.frames > 30, "{reading:?}");
            // The counters of the links are those of all workers.
            let Imbalance { nic_in, engine, .. } = reading.imbalance;
            assert_eq!((nic_in, engine), (0, 0));
        }
    }
}

/// Shows that the check can fail: with a rule that spreads a flow, workers overtake each other.
#[test]
fn a_flow_that_is_spread_over_queues_is_out_of_order() {
    let network = Network::new(1, in_turn);
    network.run(policy(Hold::EndOfPoll));
    assert!(in_order(&network.to_host.take_all()).is_err());
    assert!(in_order(&network.to_nic.take_all()).is_err());
}
