//! All interfaces with their engines, made as packets of them come.
//!
//! An interface is known by its number, type and name, so captures written one after the other on
//! one machine go on where the last ended. How many there can be follows from a budget of memory;
//! beyond it packets reach no engine, and are counted.

use rxo_device::capture::Interface;
use rxo_frame::{Frame, Instant, LinkKind};

use super::chosen::Chosen;
use super::lane::Lane;
use super::point::{FlowBytes, Point, Runner};
use super::{ChecksumMode, Settings, StudyError};

/// What all engines together may need, in bytes.
const BUDGET_BYTES: usize = 128 << 20;

#[derive(Debug)]
pub(super) struct Lanes {
    points: Vec<Point>,
    trust_checksums: bool,
    seed: u64,
    all: Vec<Named>,
    /// The lane of each interface of the capture being read, by number.
    current: Vec<Place>,
    most: usize,
}

#[derive(Debug)]
struct Named {
    number: u32,
    interface: Option<Interface>,
    lane: Lane,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Unknown,
    Lane(u32),
    /// There is no memory for it.
    Nowhere,
}

impl Lanes {
    /// No interfaces yet, engines for all `points` on each.
    pub(super) fn new(points: &[Point], settings: &Settings) -> Result<Self, StudyError> {
        let trust_checksums = settings.checksums == ChecksumMode::Trust;
        let mut needed_bytes = 0;
        for point in points {
            let config = point.config(LinkKind::Ethernet, trust_checksums, settings.seed);
            needed_bytes += memory_bytes(point);
            // The only thing that can be wrong with a lane later.
            Runner::new(0, config).map_err(StudyError::Config)?;
        }
        if needed_bytes > BUDGET_BYTES {
            return Err(StudyError::Memory { needed_bytes, most_bytes: BUDGET_BYTES });
        }
        Ok(Self {
            points: points.to_vec(),
            trust_checksums,
            seed: settings.seed,
            all: Vec::new(),
            current: Vec::new(),
            most: BUDGET_BYTES / needed_bytes.max(1),
        })
    }

    /// Another capture begins, with interfaces of its own.
    pub(super) fn forget_interfaces(&mut self) {
        self.current.clear();
    }

    /// A packet came on an interface, known by number and description. `false` when there is no
    /// memory for engines on it.
    #[inline]
    pub(super) fn push(
        &mut self,
        interface: (u32, Option<&Interface>),
        link: LinkKind,
        frame: Frame<FlowBytes>,
        chosen: &mut Chosen,
    ) -> bool {
        let place = match self.current.get(interface.0 as usize) {
            Some(place) if *place != Place::Unknown => *place,
            _ => self.find_or_make(interface, link),
        };
        let Place::Lane(index) = place else { return false };
        let Some(Named { lane, .. }) = self.all.get_mut(index as usize) else { return false };
        lane.push(frame, chosen);
        true
    }

    #[cold]
    fn find_or_make(
        &mut self,
        (number, interface): (u32, Option<&Interface>),
        link: LinkKind,
    ) -> Place {
        let is_known =
            |known: &Named| known.number == number && known.interface.as_ref() == interface;
        let place = match self.all.iter().position(is_known) {
            Some(index) => Place::Lane(index as u32),
            None => self.make(number, interface, link),
        };
        let index = number as usize;
        if self.current.len() <= index {
            self.current.resize(index + 1, Place::Unknown);
        }
        self.current[index] = place;
        place
    }

    fn make(&mut self, number: u32, interface: Option<&Interface>, link: LinkKind) -> Place {
        if self.all.len() >= self.most {
            return Place::Nowhere;
        }
        let Ok(lane) = Lane::new(&self.points, link, self.trust_checksums, self.seed) else {
            return Place::Nowhere;
        };
        self.all.push(Named { number, interface: interface.cloned(), lane });
        Place::Lane(self.all.len() as u32 - 1)
    }

    /// It is `now` on all interfaces.
    pub(super) fn advance(&mut self, now: Instant, chosen: &mut Chosen) {
        self.all.iter_mut().for_each(|named| named.lane.advance(now, chosen));
    }

    /// Nothing more comes.
    pub(super) fn finish(&mut self, now: Instant, chosen: &mut Chosen) {
        self.all.iter_mut().for_each(|named| named.lane.finish(now, chosen));
    }

    /// All of them.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Lane> {
        self.all.iter().map(|named| &named.lane)
    }
}

/// About what the engine of `point` allocates, and what is counted beside it, in bytes.
fn memory_bytes(point: &Point) -> usize {
    use rxo_coalesce::Hold;
    /// A frame, its chain, and its place in the queue for the sink.
    const SLOT: usize = 96;
    /// An aggregate in the making, its header, its places in table and lists.
    const PLACE: usize = 320;
    /// Histograms.
    const FIXED: usize = 32 << 10;
    let batch = point.poll.most_packets().max(256) as usize;
    let held = match point.policy.hold {
        Hold::EndOfPoll => 0,
        Hold::EveryNthPoll(polls) => batch.saturating_mul(polls as usize),
        Hold::EveryNPackets(packets) => packets as usize,
        Hold::Within(_) => batch.saturating_mul(4),
    };
    let slots = batch + held.min(65_536);
    FIXED + slots * SLOT + (usize::from(point.policy.flows) + slots / 2) * PLACE
}

#[cfg(test)]
mod tests {
    use rxo_coalesce::Policy;

    use super::*;

    fn settings(point: Point) -> Settings {
        Settings { advise: false, ..Settings::new(point) }
    }

    fn point() -> Point {
        Point { policy: Policy::linux_gro(), poll: "packets:64".parse().unwrap() }
    }

    #[test]
    fn beyond_the_budget_there_is_no_lane() {
        let mut lanes = Lanes::new(&[point()], &settings(point())).unwrap();
        let mut chosen = Chosen::new(1, 1);
        let mut push =
            |number| lanes.push((number, None), LinkKind::Ethernet, Frame::default(), &mut chosen);
        let served = (0..10_000).filter(|number| push(*number)).count();
        assert!((16..5_000).contains(&served), "{served}");
        assert!(push(0) && !push(9_999));
    }

    #[test]
    fn engines_that_are_too_large_together_are_refused() {
        let mut policy = Policy::linux_gro();
        policy.set("hold", "packets:65536").unwrap();
        let points = vec![Point { policy, ..point() }; 16];
        let error = Lanes::new(&points, &settings(point())).unwrap_err();
        assert!(error.to_string().starts_with("the engines of this sweep need "), "{error}");
    }

    #[test]
    fn the_next_capture_goes_on_with_the_same_interface() {
        let mut lanes = Lanes::new(&[point()], &settings(point())).unwrap();
        let mut chosen = Chosen::new(1, 1);
        for _ in 0..3 {
            lanes.push((0, None), LinkKind::Ethernet, Frame::default(), &mut chosen);
            lanes.forget_interfaces();
        }
        assert_eq!(lanes.all.len(), 1);
    }
}
