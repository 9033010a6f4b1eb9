//! Devices in memory, and a clock that advances when the worker reads it or waits.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rxo::device::{MemorySink, MemorySource, Sent};
use rxo::switch::{MacAddress, PortSettings, Switch, SwitchOptions, Vlans};
use rxo::worker::{Awake, Budget, Guests, Readings, Waiter, Wanted};
use rxo::{DeviceError, Duplex, Frame, Instant, MemoryLink, MemoryOptions, Policy, WorkerConfig};

/// The time by which a reading of the clock advances the clock.
pub(crate) const READ: Duration = Duration::from_micros(1);

/// The time that a run continues after its last event if a device stays blocked. No policy holds as long.
const TIMEOUT: Duration = Duration::from_secs(1);

pub(crate) const BROADCAST: MacAddress = MacAddress([0xff; 6]);
/// The address of the peer behind the nic.
pub(crate) const PEER: MacAddress = mac(99);

/// Returns the address of a guest, counted from 0.
pub(crate) const fn mac(guest: u8) -> MacAddress {
    MacAddress([0x52, 0x54, 0, 0, 0, guest])
}

/// Creates the settings of an access port.
pub(crate) fn access(vlan: u16, fixed: Option<u8>) -> PortSettings {
    PortSettings { vlans: Vlans::Only(vlan), fixed: fixed.map(mac) }
}

pub(crate) const TRUNK: PortSettings = PortSettings { vlans: Vlans::All, fixed: None };

/// Creates ports whose guests each have the address that belongs to their number.
pub(crate) fn fixed(guests: u8) -> Vec<PortSettings> {
    (0..guests).map(|guest| access(0, Some(guest))).collect()
}

/// Returns `frame` with these addresses.
pub(crate) fn addressed(
    mut frame: Frame<Vec<u8>>,
    to: MacAddress,
    from: MacAddress,
) -> Frame<Vec<u8>> {
    frame.bytes[..6].copy_from_slice(&to.0);
    frame.bytes[6..12].copy_from_slice(&from.0);
    frame
}

/// Creates a frame of an EtherType that no policy coalesces, with `text` after its header.
pub(crate) fn plain(to: MacAddress, from: MacAddress, text: &[u8]) -> Frame<Vec<u8>> {
    let bytes = [&[0; 12], &[0x88, 0xb5][..], text].concat();
    addressed(Frame::new(bytes, Instant::ZERO), to, from)
}

/// An event that happens at a given time.
pub(crate) enum Event {
    FromNic(Frame<Vec<u8>>),
    FromGuest(usize, Frame<Vec<u8>>),
    NicRoom(Option<usize>),
    GuestRoom(usize, Option<usize>),
    NicGone,
    GuestGone(usize),
    Stop,
}

/// Both links of a device.
#[derive(Clone)]
pub(crate) struct Links {
    /// The link from which the worker receives.
    pub(crate) from: MemoryLink,
    /// The link to which the worker sends.
    pub(crate) to: MemoryLink,
}

impl Links {
    fn new() -> Self {
        let options = MemoryOptions { most_packets: 8_192, ..MemoryOptions::default() };
        Self { from: MemoryLink::new(options), to: MemoryLink::new(options) }
    }

    fn ends(&self) -> Duplex<MemorySource, MemorySink> {
        Duplex { source: self.from.source(), sink: self.to.sink() }
    }
}

/// The current time, and the future events.
type Time = (Instant, VecDeque<(Instant, Event)>);

#[derive(Clone)]
pub(crate) struct World {
    pub(crate) nic: Links,
    pub(crate) guests: Vec<Links>,
    settings: Vec<PortSettings>,
    time: Rc<RefCell<Time>>,
    stop: Rc<AtomicBool>,
    turns: Rc<RefCell<usize>>,
    /// The time of the last event.
    end: Rc<Cell<Instant>>,
}

/// The result of a run.
pub(crate) struct Ended {
    pub(crate) result: Result<(), DeviceError>,
    pub(crate) totals: Readings,
    pub(crate) reports: Vec<Readings>,
    pub(crate) to_nic: Vec<Sent>,
    pub(crate) to_guests: Vec<Vec<Sent>>,
    pub(crate) waits: usize,
}

impl World {
    /// Creates guests with these ports, and a nic whose port is a trunk.
    pub(crate) fn new(settings: &[PortSettings]) -> Self {
        Self {
            nic: Links::new(),
            guests: settings.iter().map(|_| Links::new()).collect(),
            settings: settings.to_vec(),
            time: Rc::default(),
            stop: Rc::default(),
            turns: Rc::default(),
            end: Rc::default(),
        }
    }

    /// Adds an event; events of one instant happen in the order in which they were added.
    pub(crate) fn at_us(&self, us: u64, event: Event) {
        let at = Instant::from_micros(us);
        let events = &mut self.time.borrow_mut().1;
        let place = events.partition_point(|(earlier, _)| *earlier <= at);
        events.insert(place, (at, event));
        self.end.set(self.end.get().max(at));
    }

    /// Runs until no event is left.
    pub(crate) fn run(&self, policy: Policy) -> Ended {
        self.run_with(WorkerConfig { overload: None, ..WorkerConfig::new(policy) })
    }

    pub(crate) fn run_with(&self, config: WorkerConfig) -> Ended {
        self.run_limited(config, &[])
    }

    /// Runs with these budgets of the first guests.
    pub(crate) fn run_limited(&self, config: WorkerConfig, budgets: &[Budget]) -> Ended {
        let ports = [&[TRUNK], &self.settings[..]].concat();
        let switch = Switch::new(ports, SwitchOptions::default()).unwrap();
        let guests = self.guests.iter().map(Links::ends).collect();
        let mut workers =
            Guests::new(self.nic.ends(), guests, switch, config).unwrap().limited(budgets);
        let mut reports = Vec::new();
        let result = workers
            .run(&mut self.clone(), &self.stop, |report| reports.push(report.reading.clone()));
        let totals = workers.reading();
        // Whatever events a test causes, all counters of the worker must be consistent.
        assert_eq!(totals.all.imbalance.total(), 0, "{totals:?}");
        Ended {
            result,
            totals,
            reports,
            to_nic: self.nic.to.take_all(),
            to_guests: self.guests.iter().map(|guest| guest.to.take_all()).collect(),
            waits: *self.turns.borrow(),
        }
    }

    fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    fn links(&self) -> impl Iterator<Item = &Links> {
        std::iter::once(&self.nic).chain(&self.guests)
    }

    fn advance(&self, time: Duration) {
        let end = self.time.borrow().0 + time;
        loop {
            let mut state = self.time.borrow_mut();
            let Some((at, event)) = state.1.pop_front_if(|(at, _)| *at <= end) else { break };
            drop(state);
            self.set_now(at);
            self.happen(event);
        }
        self.set_now(end);
    }

    fn set_now(&self, now: Instant) {
        let mut state = self.time.borrow_mut();
        state.0 = state.0.max(now);
        self.links().for_each(|links| links.to.set_now(state.0));
    }

    fn happen(&self, event: Event) {
        match event {
            Event::FromNic(frame) => self.nic.from.push(&frame),
            Event::FromGuest(guest, frame) => self.guests[guest].from.push(&frame),
            Event::NicRoom(room) => self.nic.to.set_room(room),
            Event::GuestRoom(guest, room) => self.guests[guest].to.set_room(room),
            Event::Stop => self.stop(),
            Event::GuestGone(guest) => self.guests[guest].from.replace_peer(),
            Event::NicGone => {
                [&self.nic.from, &self.nic.to].into_iter().for_each(MemoryLink::vanish);
            }
        }
    }

    fn awake<NI, NO, HI, HO>(&self, wanted: &Wanted<'_, NI, NO, HI, HO>) -> Awake {
        let has = |is_wanted: bool, links: &Links| is_wanted && !links.from.is_silent();
        let mut awake = Awake { nic: has(wanted.nic_source.is_some(), &self.nic), hosts: 0 };
        for (n, (host, links)) in wanted.hosts.iter().zip(&self.guests).enumerate() {
            awake.set_host(n, has(host.source.is_some(), links));
        }
        awake
    }
}

impl<NI, NO, HI, HO> Waiter<NI, NO, HI, HO> for World {
    fn now(&mut self) -> Instant {
        let now = self.time.borrow().0;
        self.advance(READ);
        now
    }

    fn cpu_time(&mut self) -> Duration {
        self.time.borrow().0.since(Instant::ZERO) / 2
    }

    fn pause(&mut self, time: Duration) {
        self.advance(time);
    }

    fn wait(
        &mut self,
        wanted: Wanted<'_, NI, NO, HI, HO>,
        timeout: Duration,
    ) -> Result<Awake, DeviceError> {
        *self.turns.borrow_mut() += 1;
        if self.awake(&wanted) == Awake::NONE {
            let (now, next) = {
                let state = self.time.borrow();
                (state.0, state.1.front().map(|(at, _)| *at))
            };
            match next {
                Some(at) => self.advance(at.since(now).min(timeout)),
                // All events have happened; a deadline may still come. The waits of a worker whose sink is
                // blocked stay short for ever.
                None if timeout >= Duration::from_millis(100)
                    || now >= self.end.get() + TIMEOUT =>
                {
                    self.stop()
                }
                None => self.advance(timeout),
            }
        }
        Ok(self.awake(&wanted))
    }
}
