//! The lanes of all interfaces. The engines of a lane are created when the first packet of its interface
//! arrives.
//!
//! An interface is identified by number, link type and name, so the lanes continue across consecutive captures
//! of one machine. The number of lanes is limited by a memory budget. Packets of further interfaces reach no
//! engine, and are counted.

use rxo_capture::Interface;
use rxo_frame::{Frame, Instant, LinkKind};

use super::chosen::Chosen;
use super::lane::Lane;
use super::part::Mark;
use super::point::{Point, Runner};
use super::{ChecksumMode, Settings, StudyError};
use crate::numbered::Numbered;

/// The maximum memory of all engines together, in bytes.
const BUDGET_BYTES: usize = 128 << 20;

#[derive(Debug)]
pub(super) struct Lanes {
    points: Vec<Point>,
    trust_checksums: bool,
    seed: u64,
    all: Vec<Named>,
    /// The lane of each interface in the current capture, by the interface's number.
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
    /// The interface has no lane, because the memory budget does not suffice for its engines.
    Nowhere,
}

impl Lanes {
    /// Creates an empty set of lanes; each will have engines for all `points`.
    pub(super) fn new(points: &[Point], settings: &Settings) -> Result<Self, StudyError> {
        let trust_checksums = settings.checksums == ChecksumMode::Trust;
        let mut needed_bytes = 0;
        for point in points {
            let config = point.config(LinkKind::Ethernet, trust_checksums, settings.seed);
            needed_bytes += memory_bytes(point);
            // Only the configuration can be invalid, and it is checked here, so later errors are impossible.
            Runner::new(0, None, point, config).map_err(StudyError::Config)?;
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

    /// Removes the assignment of lanes to interface numbers, because another capture begins.
    pub(super) fn forget_interfaces(&mut self) {
        self.current.clear();
    }

    /// Adds a packet of the interface with this number and description. Returns `false` if there is no memory for the
    /// interface's engines.
    #[inline]
    pub(super) fn push(
        &mut self,
        interface: (u32, Option<&Interface>),
        link: LinkKind,
        frame: Frame<Numbered>,
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

    /// Runs the polls and deadlines of all interfaces that are due at `now`.
    pub(super) fn advance(&mut self, now: Instant, chosen: &mut Chosen) {
        self.all.iter_mut().for_each(|named| named.lane.advance(now, chosen));
    }

    /// Delivers all packets that are held on any interface, because no more packets will arrive.
    pub(super) fn finish(&mut self, now: Instant, chosen: &mut Chosen) {
        self.all.iter_mut().for_each(|named| named.lane.finish(now, chosen));
    }

    /// Delivers all packets that are held on any interface at `now`, because the next packets belong to another
    /// capture, whose timestamps are unrelated.
    pub(super) fn rejoin(&mut self, now: Instant, chosen: &mut Chosen) {
        self.finish(now, chosen);
        self.all.iter_mut().for_each(|named| named.lane.rejoin());
    }

    /// Returns an iterator over all lanes.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Lane> {
        self.all.iter().map(|named| &named.lane)
    }

    /// Returns an iterator over all lanes, each with the number that identifies its interface in all parts of the
    /// capture.
    pub(super) fn named(&self) -> impl Iterator<Item = (u64, &Lane)> {
        self.all.iter().map(|named| (named.mark(), &named.lane))
    }
}

impl Named {
    /// Returns a hash of the interface's number and description, which identifies the interface.
    fn mark(&self) -> u64 {
        let mut mark = Mark::default();
        mark.add(&self.number.to_le_bytes());
        if let Some(Interface { link, snap_bytes, name }) = &self.interface {
            mark.add(&link.0.to_le_bytes());
            mark.add(&snap_bytes.unwrap_or_default().to_le_bytes());
            mark.add(name.as_deref().unwrap_or_default().as_bytes());
        }
        mark.0
    }
}

/// Returns the approximate memory of the engine of `point` and its counters, in bytes.
fn memory_bytes(point: &Point) -> usize {
    use rxo_coalesce::Hold;
    /// The number of bytes for a frame, its chain, and its slot in the sink's queue.
    const SLOT: usize = 96;
    /// The number of bytes for an aggregate, its header, and its slots in tables and lists.
    const PLACE: usize = 320;
    /// The number of bytes for histograms.
    const FIXED: usize = 32 << 10;
    let batch = point.poll.most_packets().max(256) as usize;
    let held = match point.policy.hold {
        Hold::EndOfPoll => 0,
        Hold::EveryNthPoll(polls) | Hold::Auto { most_polls: polls, .. } => {
            batch.saturating_mul(polls as usize)
        }
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
        let mut chosen = Chosen::new(1);
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
        let mut chosen = Chosen::new(1);
        for _ in 0..3 {
            lanes.push((0, None), LinkKind::Ethernet, Frame::default(), &mut chosen);
            lanes.forget_interfaces();
        }
        assert_eq!(lanes.all.len(), 1);
    }
}
