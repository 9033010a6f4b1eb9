//! Tests of guests on their own threads, on links in memory and in real time. The tests wait for conditions,
//! not for times.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

use rxo::desk::Desk;
use rxo::device::{Descriptors, MemorySink, MemorySource, SinkCapabilities, SinkCounters};
use rxo::switch::{MacAddress, Switch, SwitchOptions};
use rxo::wire::queue_of;
use rxo::worker::{Awake, Bell, Budget, Guests, Question, Readings, Threads, Waiter, Wanted};
use rxo::{
    DeviceError, Duplex, Frame, FrameSink, Gather, Instant, MemoryLink, MemoryOptions, Policy,
    WorkerConfig,
};

use crate::world::{PEER, TRUNK, fixed, mac, plain};

const TIMEOUT: Duration = Duration::from_secs(60);
const FRAMES: u32 = 5_000;

/// A gate at which a device makes its thread wait while it is closed.
#[derive(Default)]
struct Gate {
    is_closed: Mutex<bool>,
    opened: Condvar,
    /// The number of threads that came to the gate while it was closed.
    waiting: AtomicU64,
}

impl Gate {
    fn set(&self, is_closed: bool) {
        *self.is_closed.lock().unwrap() = is_closed;
        self.opened.notify_all();
    }

    fn pass(&self) {
        let is_closed = self.is_closed.lock().unwrap();
        if *is_closed {
            self.waiting.fetch_add(1, Ordering::Relaxed);
        }
        drop(self.opened.wait_while(is_closed, |is_closed| *is_closed).unwrap());
    }
}

/// A guest's device that blocks every thread that sends to it while its gate is closed, as a hostile front
/// end may.
struct Hostile {
    sink: MemorySink,
    gate: Arc<Gate>,
}

impl FrameSink for Hostile {
    fn capabilities(&self) -> SinkCapabilities {
        self.sink.capabilities()
    }

    fn transmit<'a, G: Gather<'a>>(
        &mut self,
        batch: impl ExactSizeIterator<Item = G>,
    ) -> Result<(), DeviceError> {
        self.gate.pass();
        self.sink.transmit(batch)
    }

    fn counters(&self) -> SinkCounters {
        self.sink.counters()
    }
}

/// A waiter that reports everything as ready at each call.
struct Restless(std::time::Instant);

impl<NI, NO, HI, HO> Waiter<NI, NO, HI, HO> for Restless {
    fn now(&mut self) -> Instant {
        Instant::ZERO + self.0.elapsed()
    }

    fn cpu_time(&mut self) -> Duration {
        Duration::ZERO
    }

    fn pause(&mut self, time: Duration) {
        thread::sleep(time);
    }

    fn wait(
        &mut self,
        _wanted: Wanted<'_, NI, NO, HI, HO>,
        timeout: Duration,
    ) -> Result<Awake, DeviceError> {
        thread::sleep(timeout.min(Duration::from_micros(100)));
        Ok(Awake::ALL)
    }
}

fn restless() -> Restless {
    Restless(std::time::Instant::now())
}

/// A bell whose notifications nobody waits for.
struct Mute;

impl Descriptors for Mute {
    fn visit_descriptors<'f>(&'f self, _: &mut dyn FnMut(BorrowedFd<'f>)) {}
}

impl Bell for Mute {
    fn ring(&self) {}

    fn clear(&self) {}
}

const THREADS: Threads<Restless, Hostile> = Threads {
    waiter: restless,
    bind: |_| Ok(()),
    bell: || io::Result::Ok(Arc::new(Mute)),
    notice: |_| None,
};

/// A run of three guests on a thread; the test is at the other ends of its links.
struct Run {
    from_nic: MemoryLink,
    to_nic: MemoryLink,
    /// The links of the nic's queues beyond the first: from the nic, and to it.
    further: Vec<[MemoryLink; 2]>,
    from_guests: Vec<MemoryLink>,
    to_guests: Vec<MemoryLink>,
    gates: Vec<Arc<Gate>>,
    desk: Desk<Question>,
    lines: Arc<Mutex<Vec<String>>>,
    stop: Arc<AtomicBool>,
    thread: thread::JoinHandle<(Result<(), DeviceError>, Readings)>,
}

impl Run {
    fn start() -> Self {
        Self::on_queues(1)
    }

    /// Starts a run on a nic with this number of queues.
    fn on_queues(queues: usize) -> Self {
        Self::with_budgets(queues, Vec::new())
    }

    /// Starts a run on a nic with this number of queues. The first guests have `budgets`.
    fn with_budgets(queues: usize, budgets: Vec<Budget>) -> Self {
        let options = MemoryOptions { most_packets: 1 << 16, ..MemoryOptions::default() };
        let links = |count| (0..count).map(|_| MemoryLink::new(options)).collect::<Vec<_>>();
        let (mut nic, from_guests, to_guests) = (links(2), links(3), links(3));
        let gates: Vec<_> = (0..3).map(|_| Arc::new(Gate::default())).collect();
        let desk = Desk::new();
        let (lines, stop) = (Arc::<Mutex<Vec<String>>>::default(), Arc::<AtomicBool>::default());
        let devices: Vec<Duplex<MemorySource, Hostile>> = (0..3)
            .map(|n| Duplex {
                source: from_guests[n].source(),
                sink: Hostile { sink: to_guests[n].sink(), gate: Arc::clone(&gates[n]) },
            })
            .collect();
        let (to_nic, from_nic) = (nic.remove(1), nic.remove(0));
        let further: Vec<_> = (1..queues).map(|_| [options; 2].map(MemoryLink::new)).collect();
        let ends =
            |from: &MemoryLink, to: &MemoryLink| Duplex { source: from.source(), sink: to.sink() };
        let more = further.iter().map(|[from, to]| ends(from, to)).collect();
        let ends = (ends(&from_nic, &to_nic), more);
        let config = WorkerConfig {
            overload: None,
            look_every: Some(Duration::from_millis(20)),
            desk: Some(desk.clone()),
            ..WorkerConfig::new(Policy::linux_gro())
        };
        let (told, stopped) = (Arc::clone(&lines), Arc::clone(&stop));
        let thread = thread::spawn(move || {
            let ports = [&[TRUNK], &fixed(3)[..]].concat();
            let switch = Switch::new(ports, SwitchOptions::default()).unwrap();
            let guests = Guests::on_queues(ends, devices, switch, config).unwrap();
            let mut guests = guests.limited(&budgets);
            let note = |lines: Vec<String>| told.lock().unwrap().extend(lines);
            let result = guests
                .run_on_threads(&mut restless(), &stopped, &THREADS, |report| note(report.lines));
            let totals = guests.reading();
            guests.report(false, &mut |report| note(report.lines));
            (result, totals)
        });
        Self { from_nic, to_nic, further, from_guests, to_guests, gates, desk, lines, stop, thread }
    }

    /// Sends from the nic and from guest 2 to guest 1, and from guest 1 to the nic. Waits until everything
    /// has arrived.
    fn others_go_on(&self) {
        for n in 0..FRAMES {
            let text = n.to_be_bytes();
            self.from_nic.push(&plain(mac(1), PEER, &text));
            self.from_guests[2].push(&plain(mac(1), mac(2), &text));
            self.from_guests[1].push(&plain(PEER, mac(1), &text));
            if n % 64 == 0 {
                // Sends no faster than the lane has room.
                wait_until("some are there", || self.to_guests[1].packets() as u32 + 512 > 2 * n);
            }
        }
        wait_until("guest 1 has all", || self.to_guests[1].packets() as u32 == 2 * FRAMES);
        wait_until("the nic has all", || self.to_nic.packets() as u32 == FRAMES);
    }

    fn said(&self, part: &str) -> bool {
        self.lines.lock().unwrap().iter().any(|line| line.contains(part))
    }

    fn end(self) -> (Result<(), DeviceError>, Readings) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap()
    }
}

fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = std::time::Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < TIMEOUT, "{what}: not within a minute");
        thread::sleep(Duration::from_micros(200));
    }
}

#[test]
fn guests_on_threads_lose_nothing_and_count_all() {
    let run = Run::start();
    run.others_go_on();
    let counters = run.desk.ask(Question::Counters, || {}, TIMEOUT).unwrap();
    assert_eq!(counters.guests[1].host_out.frames, u64::from(2 * FRAMES));
    let policies = run.desk.ask(Question::Policies, || {}, TIMEOUT).unwrap();
    assert_eq!(policies.len(), 3);
    let (result, totals) = run.end();
    result.unwrap();
    assert_eq!(totals.all.imbalance.total(), 0, "{totals:?}");
    assert_eq!(totals.all.nic_out.frames, u64::from(FRAMES));
    let lost = |guest: &rxo::Reading| guest.nic_in.ring_drops + guest.nic_out.dropped_frames;
    assert_eq!(totals.guests.iter().map(lost).sum::<u64>(), 0);
}

#[test]
fn a_guest_whose_thread_is_blocked_delays_nobody_and_goes_on() {
    let run = Run::start();
    run.gates[0].set(true);
    run.from_nic.push(&plain(mac(0), PEER, b"blocks"));
    wait_until("guest 0 blocks", || run.gates[0].waiting.load(Ordering::Relaxed) == 1);
    run.from_nic.push(&plain(mac(0), PEER, b"waits"));
    run.others_go_on();
    wait_until("it is named", || {
        run.said("guest 1 of 3 hangs: its thread has made no turn for 1s")
    });
    // A question is answered, with what guest 0 told last, and a change reaches guest 0 later.
    let counters = run.desk.ask(Question::Counters, || {}, TIMEOUT).unwrap();
    assert_eq!(counters.guests[1].host_out.frames, u64::from(2 * FRAMES));
    assert!(counters.guests[0].stalls > 0);
    let change = |reply| Question::ChangePolicy(Policy::none(), reply);
    let moment = run.desk.ask(change, || {}, TIMEOUT).unwrap().unwrap();
    assert_eq!(moment, rxo::worker::Moment::WhenThereIsRoom(1));
    run.gates[0].set(false);
    wait_until("it goes on", || run.said("guest 1 of 3 goes on"));
    run.from_nic.push(&plain(mac(0), PEER, b"again"));
    wait_until("it gets its frames", || run.to_guests[0].packets() == 3);
    wait_until("it has the policy", || {
        let policies = run.desk.ask(Question::Policies, || {}, TIMEOUT).unwrap();
        policies.iter().all(|it| it.policy.name == Policy::none().name && it.next.is_none())
    });
    let (result, totals) = run.end();
    result.unwrap();
    assert_eq!(totals.all.imbalance.total(), 0, "{totals:?}");
}

/// The end of the run does not wait for the guest either.
#[test]
fn a_guest_that_hangs_does_not_keep_a_run_from_ending() {
    let run = Run::start();
    run.gates[0].set(true);
    run.from_nic.push(&plain(mac(0), PEER, b"blocks"));
    wait_until("guest 0 blocks", || run.gates[0].waiting.load(Ordering::Relaxed) == 1);
    run.others_go_on();
    let (gate, lines) = (Arc::clone(&run.gates[0]), Arc::clone(&run.lines));
    let (result, totals) = run.end();
    gate.set(false);
    result.unwrap();
    assert_eq!(totals.guests[1].host_out.frames, u64::from(2 * FRAMES));
    assert!(
        lines.lock().unwrap().iter().any(|line| line == "guest 1 of 3 hangs; rxo ends without it")
    );
}

#[test]
fn a_nic_that_fails_ends_all_threads() {
    let run = Run::start();
    run.others_go_on();
    run.from_nic.vanish();
    run.to_nic.vanish();
    let (result, totals) = run.thread.join().unwrap();
    assert!(result.is_err());
    assert_eq!(totals.guests[1].host_out.frames, u64::from(2 * FRAMES));
}

const QUEUES: usize = 3;

/// Creates frame `number` of the TCP connection `flow` from one address to another.
fn segment(to: MacAddress, from: MacAddress, (flow, number): (u8, u32)) -> Frame<Vec<u8>> {
    let mut bytes = [&to.0[..], &from.0, &[8, 0]].concat();
    bytes.extend([
        0x45, 0, 0, 45, 0, 0, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, from.0[5], 10, 0, 0, to.0[5],
    ]);
    bytes.extend([0x9c, flow, 1, 0xbb, 0, 0, 0, 0, 0, 0, 0, 0, 0x50, 0x10, 0xff, 0xff, 0, 0, 0, 0]);
    bytes.push(flow);
    bytes.extend(number.to_be_bytes());
    Frame::new(bytes, Instant::ZERO)
}

/// Asserts that the packets of each flow from `from` in `sent` are numbered from 0 to `count`, in order.
fn assert_in_order(sent: &[rxo::device::Sent], from: MacAddress, count: u32) {
    for flow in 0..FLOWS {
        let own = sent.iter().filter(|it| it.bytes[6..12] == from.0 && it.bytes[54] == flow);
        let numbers = own.map(|it| u32::from_be_bytes(it.bytes[55..59].try_into().unwrap()));
        assert_eq!(numbers.collect::<Vec<_>>(), (0..count).collect::<Vec<_>>(), "{flow} of {from}");
    }
}

const FLOWS: u8 = 16;

#[test]
fn hubs_on_threads_keep_each_flow_in_order_and_count_all() {
    let run = Run::on_queues(QUEUES);
    let per_flow = FRAMES / u32::from(FLOWS);
    for number in 0..per_flow {
        for flow in 0..FLOWS {
            let frame = |to, from| segment(to, from, (flow, number));
            let from_peer = frame(mac(1), PEER);
            match queue_of(&from_peer.bytes, QUEUES as u32) as usize {
                0 => run.from_nic.push(&from_peer),
                queue => run.further[queue - 1][0].push(&from_peer),
            }
            run.from_guests[2].push(&frame(mac(1), mac(2)));
            run.from_guests[1].push(&frame(PEER, mac(1)));
        }
        let sent = 2 * (number as usize + 1) * usize::from(FLOWS);
        // Sends no faster than the lanes have room.
        wait_until("some are there", || run.to_guests[1].packets() + 400 > sent);
    }
    let total = per_flow as usize * usize::from(FLOWS);
    wait_until("guest 1 has all", || run.to_guests[1].packets() == 2 * total);
    let further = || run.further.iter().map(|[_, to]| to.packets()).sum::<usize>();
    wait_until("the nic has all", || run.to_nic.packets() + further() == total);
    let counters = run.desk.ask(Question::Counters, || {}, TIMEOUT).unwrap();
    assert_eq!(counters.workers.len(), QUEUES);
    assert_eq!(counters.all.nic_in.frames, total as u64);
    let at_guest = run.to_guests[1].take_all();
    assert_in_order(&at_guest, PEER, per_flow);
    assert_in_order(&at_guest, mac(2), per_flow);
    let queues = run.further.iter().map(|[_, to]| to).chain([&run.to_nic]);
    let at_nic: Vec<_> = queues.flat_map(MemoryLink::take_all).collect();
    assert_in_order(&at_nic, mac(1), per_flow);
    let (result, totals) = run.end();
    result.unwrap();
    assert_eq!(totals.all.imbalance.total(), 0, "{totals:?}");
    assert_eq!((totals.all.nic_out.frames, totals.all.unsent), (total as u64, 0));
    assert!(totals.workers.iter().all(|it| it.nic_in.frames > 0 && it.nic_out.frames > 0));
    let of_workers = totals.workers.iter().map(|it| it.nic_in.frames + it.nic_out.frames);
    assert_eq!(of_workers.sum::<u64>(), 2 * total as u64);
}

/// A guest that blocks is cut off by each hub that has frames for it, and named once.
#[test]
fn a_guest_that_blocks_delays_no_hub_and_is_named_once() {
    let run = Run::on_queues(QUEUES);
    run.gates[0].set(true);
    run.from_nic.push(&plain(mac(0), PEER, b"blocks"));
    wait_until("guest 0 blocks", || run.gates[0].waiting.load(Ordering::Relaxed) == 1);
    for flow in 0..FLOWS {
        run.from_guests[2].push(&segment(mac(0), mac(2), (flow, 0)));
    }
    run.others_go_on();
    let named =
        |part: &str| run.lines.lock().unwrap().iter().filter(|it| it.contains(part)).count();
    wait_until("it is named", || named("guest 1 of 3 hangs") == 1);
    run.gates[0].set(false);
    wait_until("it goes on", || named("guest 1 of 3 goes on") == 1);
    let mut had = 0_u32;
    wait_until("it gets frames of all hubs", || {
        // The other hubs may find it a little later than the one that said so.
        for flow in 0..FLOWS {
            let again = segment(mac(0), PEER, (flow, 1));
            match queue_of(&again.bytes, QUEUES as u32) as usize {
                0 => run.from_nic.push(&again),
                queue => run.further[queue - 1][0].push(&again),
            }
        }
        let new = run.to_guests[0].take_all().into_iter().filter(|it| it.bytes.get(58) == Some(&1));
        new.for_each(|it| had |= 1 << it.bytes[54]);
        had == (1 << FLOWS) - 1
    });
    let lines = Arc::clone(&run.lines);
    let (result, totals) = run.end();
    result.unwrap();
    assert_eq!(lines.lock().unwrap().len(), 2, "{lines:?}");
    assert_eq!(totals.all.imbalance.total(), 0, "{totals:?}");
}

#[test]
fn a_queue_that_fails_ends_all_hubs_and_guests() {
    for queue in [0, 1, QUEUES - 1] {
        let run = Run::on_queues(QUEUES);
        run.others_go_on();
        let links = match queue {
            0 => [&run.from_nic, &run.to_nic],
            queue => run.further[queue - 1].each_ref(),
        };
        links.into_iter().for_each(MemoryLink::vanish);
        let (result, totals) = run.thread.join().unwrap();
        assert!(matches!(result, Err(DeviceError::Gone(_))), "{result:?}");
        assert_eq!(totals.guests[1].host_out.frames, u64::from(2 * FRAMES));
        assert_eq!(totals.all.imbalance.total(), 0, "{totals:?}");
    }
}

/// A guest with a small rate has frames waiting at all hubs when the run ends. They are counted, and end nothing with an error.
#[test]
fn frames_that_a_rate_holds_back_do_not_fail_the_end() {
    let rate = Budget { rate: Some(1_000), burst: 2_000, ..Budget::default() };
    let run = Run::with_budgets(QUEUES, vec![rate]);
    for number in 0..20 {
        for flow in 0..FLOWS {
            run.from_guests[0].push(&segment(PEER, mac(0), (flow, number)));
        }
    }
    let further = || run.further.iter().map(|[_, to]| to.packets()).sum::<usize>();
    wait_until("the burst has left", || run.to_nic.packets() + further() > 20);
    let (result, totals) = run.end();
    result.unwrap();
    assert_eq!(totals.workers.len(), QUEUES, "each hub has reported");
    assert_eq!(totals.all.imbalance.total(), 0, "{totals:?}");
}
