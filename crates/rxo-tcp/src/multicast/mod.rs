//! One stream for a group of receivers: new text leaves once, and each receiver acknowledges it by a connection of its
//! own (TCP-SMO; Chan and Cheriton 2013, section 4).
//!
//! A [`Group`] does not own the connections. Their owner tells it of each what goes in and what came of it
//! ([`Group::before`], [`Group::after`]), and sends what comes out: new text and common repairs to the group
//! ([`Group::poll_transmit`], [`Group::poll_repair`]), everything else by the connections. It is sans-IO like a
//! connection. Text is shared by all receivers; memory grows by a few hundred bytes for each.
//!
//! * `acks.rs`: the fast path of acknowledgements, by which members are dormant.
//! * `tree.rs`: how far all receivers allow, and what all have: O(log n) for an acknowledgement.
//! * `sends.rs`: what was sent when. A connection learns of it when something happens to it, so that a send does
//!   not cost once for each receiver.
//! * `member.rs`: one receiver: joining, text, the two calls.
//! * `outcome.rs`: what the owner is told.
//! * `text.rs`: the text that not all receivers have.
//! * `emit.rs`: what leaves next, to the group.
//! * `repair.rs`: what is missing at several receivers is repaired once.
//! * `slow.rs`: who holds the others up for too long.
//! * `late.rs`: how much longer those who come late may make it.
//!
//! Contract: nothing that a receiver sends makes it panic, and nobody who does not know the group's initial sequence number,
//! which whoever asks to join in time is told, can change what it does.
//! A receiver can hold the others up for the time of [`Slow::Eject`] at most, or to a segment in each such time. With
//! [`Slow::EjectBelow`] it cannot hold them to less than was asked for. Those who come late hold them up for
//! [`GroupConfig::late_time`] at most, all together.

mod acks;
mod config;
mod emit;
mod late;
mod member;
mod outcome;
mod repair;
mod sends;
mod slow;
mod text;
mod tree;

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use rxo_frame::Instant;
use rxo_wire::SeqNumber;

pub use self::config::{GroupConfig, Late, Repairs, Slow};
use self::late::Latecomers;
use self::member::Member;
pub use self::member::MemberId;
pub use self::outcome::{GroupEvent, Outcome, Progress, Refusal};
pub use self::repair::Repair;
use self::repair::{Repaired, Wanted};
use self::sends::Sends;
use self::slow::Patience;
use self::text::GroupText;
use self::tree::Tree;

/// The sender of one stream to a group of receivers.
#[derive(Debug)]
pub struct Group {
    config: GroupConfig,
    text: GroupText,
    /// The position of the next byte to be sent for the first time; after the FIN one more than the length.
    nxt: u64,
    /// Payload of a full segment, in bytes: the least of all receivers.
    mss: u32,
    /// How many receivers take no more.
    smallest: usize,
    is_started: bool,
    members: Vec<Option<Member>>,
    free: Vec<MemberId>,
    tree: Tree,
    sends: Sends,
    wanted: Vec<Wanted>,
    repairs: VecDeque<Repair>,
    repaired: Repaired,
    patience: Patience,
    late: Latecomers,
    /// Members to whose connections something is to happen though nothing arrived.
    touched: VecDeque<MemberId>,
    events: VecDeque<GroupEvent>,
}

impl Group {
    /// A group without receivers. Allocates what it needs for all that may come, except text.
    ///
    /// # Examples
    /// ```
    /// use rxo_frame::{Instant, SharedBytes};
    /// use rxo_tcp::{Group, GroupConfig, GroupSeed, Late, Repairs, Secret, Slow};
    /// use rxo_wire::FlowKey;
    ///
    /// let to_group = FlowKey::v4(0x0a00_0001, 0xe000_0102, 5000 << 16 | 5001, 0);
    /// let mut group = Group::new(GroupConfig {
    ///     seed: GroupSeed::new(Secret([1, 2]), &to_group, Instant::ZERO),
    ///     buffer_bytes: 1 << 20,
    ///     largest_segment_bytes: 1_448,
    ///     large_send_bytes: 64_000,
    ///     most_receivers: 100,
    ///     slow: Slow::Wait,
    ///     late: Late::Refuse,
    ///     late_time: None,
    ///     repairs: Repairs::Each,
    /// });
    /// let mut text = SharedBytes::from(b"to all".to_vec());
    /// assert_eq!(group.write(&mut text), 6);
    /// // It leaves when receivers have joined (`Group::join`) and the owner starts (`Group::start`).
    /// assert_eq!(group.receivers(), 0);
    /// ```
    #[must_use]
    pub fn new(config: GroupConfig) -> Self {
        Self {
            text: GroupText::with_capacity(config.buffer_bytes),
            nxt: 0,
            mss: config.largest_segment_bytes,
            smallest: 0,
            is_started: false,
            members: Vec::new(),
            free: Vec::new(),
            tree: Tree::new(config.most_receivers),
            sends: Sends::default(),
            wanted: Vec::new(),
            repairs: VecDeque::new(),
            repaired: Repaired::default(),
            patience: Patience::default(),
            late: Latecomers::default(),
            touched: VecDeque::new(),
            events: VecDeque::new(),
            config,
        }
    }

    /// The settings.
    #[must_use]
    pub const fn config(&self) -> &GroupConfig {
        &self.config
    }

    /// Begins to send. Until then receivers gather.
    pub fn start(&mut self) {
        self.is_started = true;
    }

    /// How many receivers there are, those included that catch up.
    #[must_use]
    pub fn receivers(&self) -> usize {
        self.members.len() - self.free.len()
    }

    /// The sequence number at `position` of the stream.
    fn seq(&self, position: u64) -> SeqNumber {
        self.config.seed.iss + (position as u32).wrapping_add(1)
    }

    /// The position of `seq`, which is less than 2³¹ away from `near`. `None` if it is before the stream.
    fn position(&self, seq: SeqNumber, near: u64) -> Option<u64> {
        near.checked_add_signed(i64::from(seq - self.seq(near)))
    }

    /// The next thing that the owner should know of.
    pub fn poll_event(&mut self) -> Option<GroupEvent> {
        self.events.pop_front()
    }

    /// The next member for whose connection the owner is to call [`Group::wake`], and the connection's
    /// [`poll_transmit`](crate::Connection::poll_transmit), and [`Group::after`].
    pub fn poll_touched(&mut self) -> Option<MemberId> {
        self.touched.pop_front()
    }

    /// When [`Group::on_timeout`] is to be called; `None` if no timer runs.
    #[must_use]
    pub fn poll_at(&self) -> Option<Instant> {
        [self.sends.check_at(), self.patience.next()].into_iter().flatten().min()
    }

    /// Does what is due at `now`, which may be nothing.
    pub fn on_timeout(&mut self, now: Instant) {
        if self.sends.take_check(now) {
            self.touch_behind();
            self.wake_overdue(now);
        }
        if self.patience.take_due(now) {
            self.eject_slow(now);
            self.end_late_time(now);
        }
    }

    /// Connections that have not learned of sends start their timers.
    fn touch_behind(&mut self) {
        let last = self.sends.next();
        for (id, member) in self.members.iter().enumerate() {
            if member.as_ref().is_some_and(|member| member.is_behind(last)) {
                self.touched.push_back(id as MemberId);
            }
        }
    }
}
