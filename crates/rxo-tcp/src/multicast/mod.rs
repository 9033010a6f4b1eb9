//! One stream for a group of receivers: new data is sent once, and each receiver acknowledges it by a
//! connection of its own (TCP-SMO; Chan and Cheriton 2013, section 4).
//!
//! A [`Group`] does not own the connections. The owner of the connections reports each input and its result
//! ([`Group::before`], [`Group::after`]), and sends the output: new data and common repairs to the group
//! ([`Group::poll_transmit`], [`Group::poll_repair`]), everything else by the connections. The group is sans-IO
//! like a connection. All receivers share the data. Each receiver adds a few hundred bytes of memory.
//!
//! * `acks.rs`: the fast path of ACKs, for dormant members.
//! * `tree.rs`: the send limit and the acknowledged position of all receivers, O(log n) for an
//!   ACK.
//! * `sends.rs`: the times of the last sends. A connection is informed of the times at its next event, so that
//!   the cost of a send does not grow with the number of receivers.
//! * `member.rs`: one receiver: the calls before and after each event. `join.rs`: who may join; `given.rs`: the data that
//!   a receiver's connection gets.
//! * `outcome.rs`: the events for the owner.
//! * `text.rs`: the data that not all receivers have acknowledged.
//! * `emit.rs`: the next segment to the group.
//! * `repair.rs`: repairs to the group of data that several receivers miss.
//! * `blocks.rs`: parity packets to the group; one packet repairs a different loss at each receiver;
//!   `parity.rs` has their form, and `restore.rs` is a receiver's side.
//! * `control.rs`: the congestion control of the group, led by its worst receiver.
//! * `silent.rs`: releases the group from receivers that do not answer.
//! * `slow.rs`: ejects receivers that delay the others for too long.
//! * `late.rs`: limits the time that late receivers may add.
//!
//! Contract: no input of a receiver causes a panic. Only a host that knows the group's initial sequence number
//! can influence the group; every receiver that asks to join in time gets that number. With [`Slow::Eject`], a
//! receiver can slow the others down to one segment in each interval of the given time, and stop them for at
//! most this time. With [`Slow::EjectBelow`], a receiver cannot slow the others below the given rate. All late
//! receivers together delay the others for at most [`GroupConfig::late_time`].

mod acks;
mod blocks;
mod config;
mod control;
mod emit;
mod given;
mod join;
mod late;
mod member;
mod outcome;
mod parity;
mod repair;
mod restore;
mod sends;
mod silent;
mod slow;
mod text;
mod tree;

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use rxo_frame::Instant;
use rxo_wire::SeqNumber;

use self::blocks::Blocks;
pub use self::config::{Control, GroupConfig, Late, Repairs, Slow};
use self::control::Controller;
use self::late::Latecomers;
use self::member::Member;
pub use self::member::MemberId;
pub use self::outcome::{GroupEvent, Outcome, Progress, Refusal};
pub use self::parity::{Parity, ParityBlock};
pub use self::repair::Repair;
use self::repair::{RepairRequest, Repaired};
pub use self::restore::{IncompleteBlock, ParityCollector};
use self::sends::Sends;
use self::slow::SlowCheck;
use self::text::GroupText;
use self::tree::Tree;

/// The sender of one stream to a group of receivers.
#[derive(Debug)]
pub struct Group {
    config: GroupConfig,
    text: GroupText,
    /// The stream position of the next byte to be sent for the first time. After the FIN it is the length of
    /// the stream plus one.
    nxt: u64,
    /// The payload size of a full segment in bytes: the smallest limit of all receivers.
    mss: u32,
    /// The number of receivers that accept no larger segments than `mss`.
    smallest: usize,
    is_started: bool,
    members: Vec<Option<Member>>,
    free: Vec<MemberId>,
    tree: Tree,
    controller: Option<Controller>,
    sends: Sends,
    wanted: Vec<RepairRequest>,
    repairs: VecDeque<Repair>,
    repaired: Repaired,
    blocks: Blocks,
    slow_check: SlowCheck,
    /// The time of the next check for silent members; `None` if no data waits.
    silence_check: Option<Instant>,
    late: Latecomers,
    /// The members whose connections must be polled although nothing arrived for them.
    touched: VecDeque<MemberId>,
    events: VecDeque<GroupEvent>,
}

impl Group {
    /// Creates a group without receivers. Allocates all memory for the largest number of receivers, except
    /// for data.
    ///
    /// # Examples
    /// ```
    /// use rxo_frame::{Instant, SharedBytes};
    /// use rxo_tcp::{Control, Group, GroupConfig, GroupSeed, Late, Repairs, Secret, Slow};
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
    ///     control: Control::Leader,
    /// });
    /// let mut text = SharedBytes::from(b"to all".to_vec());
    /// assert_eq!(group.write(&mut text), 6);
    /// // It is sent when receivers have joined (`Group::join`) and the owner starts (`Group::start`).
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
            controller: Controller::of(&config),
            sends: Sends::default(),
            wanted: Vec::new(),
            repairs: VecDeque::new(),
            repaired: Repaired::default(),
            blocks: Blocks::default(),
            slow_check: SlowCheck::default(),
            silence_check: None,
            late: Latecomers::default(),
            touched: VecDeque::new(),
            events: VecDeque::new(),
            config,
        }
    }

    /// Returns the settings of the group.
    #[must_use]
    pub const fn config(&self) -> &GroupConfig {
        &self.config
    }

    /// Begins to send. Before this call, receivers may join and nothing is sent.
    pub fn start(&mut self) {
        self.is_started = true;
    }

    /// Returns the number of receivers, including those in catch-up.
    #[must_use]
    pub fn receivers(&self) -> usize {
        self.members.len() - self.free.len()
    }

    /// Returns the sequence number at `position` of the stream.
    fn seq(&self, position: u64) -> SeqNumber {
        self.config.seed.iss + (position as u32).wrapping_add(1)
    }

    /// Returns the stream position of `seq`, which must be less than 2³¹ away from `near`. `None` if it is
    /// before the stream.
    fn position(&self, seq: SeqNumber, near: u64) -> Option<u64> {
        near.checked_add_signed(i64::from(seq - self.seq(near)))
    }

    /// Returns the next event for the owner, or `None` if there is none.
    pub fn poll_event(&mut self) -> Option<GroupEvent> {
        self.events.pop_front()
    }

    /// Returns the next member whose connection must be polled: call [`Group::wake`], the connection's
    /// [`poll_transmit`](crate::Connection::poll_transmit), then [`Group::after`]. `None` if there is no such
    /// member.
    pub fn poll_touched(&mut self) -> Option<MemberId> {
        self.touched.pop_front()
    }

    /// Returns the time at which [`Group::on_timeout`] must be called; `None` if no timer runs.
    #[must_use]
    pub fn poll_at(&self) -> Option<Instant> {
        let release = self.controller.as_ref().and_then(Controller::release_at);
        let parity = self.blocks.next_at(self.has_sent_all());
        let checks = [self.sends.check_at(), self.silence_check, self.slow_check.next()];
        checks.into_iter().chain([release, parity]).flatten().min()
    }

    /// Runs the timers that are due at `now`, possibly none.
    pub fn on_timeout(&mut self, now: Instant) {
        if let Some(controller) = &mut self.controller {
            controller.release(now);
        }
        if self.sends.take_check(now) {
            self.touch_behind();
            self.wake_overdue(now);
        }
        if self.silence_check.take_if(|at| *at <= now).is_some() {
            self.release_from_silent(now);
        }
        if self.slow_check.take_due(now) {
            self.eject_slow(now);
            self.end_late_time(now);
        }
    }

    /// Marks the members whose connections do not know of all sends. When such a connection is polled, it
    /// starts its timers.
    fn touch_behind(&mut self) {
        let last = self.sends.next();
        for (id, member) in self.members.iter().enumerate() {
            if member.as_ref().is_some_and(|member| member.is_behind(last)) {
                self.touched.push_back(id as MemberId);
            }
        }
    }
}
