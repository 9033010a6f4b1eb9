//! Which timers run, and what each does when it fires.

use rxo_frame::{Duration, Instant};

use super::{Connection, Persist};
use crate::state::Failure;
use crate::timer::Timer;
use crate::{AckPolicy, Events, State};

impl<B: AsRef<[u8]>> Connection<B> {
    /// When [`Connection::on_timeout`] is to be called; `None` if no timer runs.
    #[must_use]
    pub fn poll_at(&self) -> Option<Instant> {
        self.timers.next()
    }

    /// Fires the timers that are due at `now`, which may be none.
    pub fn on_timeout(&mut self, now: Instant) {
        while let Some(timer) = self.timers.take_due(now) {
            self.fire(timer, now);
        }
        self.update_timers(now);
    }

    fn fire(&mut self, timer: Timer, now: Instant) {
        match timer {
            Timer::Retransmit => self.retransmit_timeout(now),
            Timer::Persist => self.persist = Persist { is_due: true, ..self.persist },
            Timer::TailLoss => {
                self.recovery.probe_is_due();
                // It restarts after the probe (RFC 8985, section 7.3).
                self.timers.stop(Timer::Retransmit);
            }
            Timer::Reorder => {
                self.recovery.on_reorder_timeout(now, self.snd.nxt, &mut self.congestion);
                self.note_reduction();
            }
            Timer::Pace => {
                self.congestion.release(now);
                self.pace();
            }
            Timer::DelayedAck => {
                if self.acks.is_delaying() {
                    self.owe_all(false);
                }
            }
            Timer::KeepAlive => self.keep_alive_timeout(now),
            Timer::GiveUp => self.fail(Failure::TimedOut),
            Timer::Orphan => self.orphan_timeout(now),
            Timer::TimeWait => self.time_wait_is_over(),
        }
    }

    fn retransmit_timeout(&mut self, now: Instant) {
        if let Some(syn) = self.state.syn() {
            syn.is_due = true;
            syn.retransmissions += 1;
            self.recovery.rtt.back_off();
        } else {
            self.recovery.on_timeout(self.snd.nxt, &mut self.congestion);
            self.note_reduction();
            self.doubt_path(now);
        }
        if self.recovery.rtt.backed_off() == R1 {
            self.events |= Events::STALLED;
        }
    }

    /// RFC 3168, section 6.1.2: the peer is told of every reduction of the window.
    pub(crate) fn note_reduction(&mut self) {
        if self.recovery.take_reduction() && self.ecn.is_agreed {
            self.ecn.has_reduced = true;
        }
    }

    fn keep_alive_timeout(&mut self, now: Instant) {
        let Some(settings) = self.config.keep_alive else { return };
        if self.keep_alive.unanswered == settings.probes {
            self.fail(Failure::TimedOut);
            return;
        }
        if self.snd.outstanding() > 0 {
            // Outstanding data probes the peer by itself (RFC 9293, section 3.8.4, MUST-26).
            self.timers.arm(Timer::KeepAlive, now + settings.idle);
            return;
        }
        self.keep_alive.unanswered += 1;
        self.keep_alive.is_due = true;
        self.timers.arm(Timer::KeepAlive, now + settings.interval);
    }

    /// Restarts timers after the peer has acknowledged new data (RFC 6298, section 5.3).
    pub(crate) fn made_progress(&mut self, now: Instant) {
        self.persist = Persist::default();
        self.timers.stop(Timer::GiveUp);
        if !self.recovery.keeps_timer() {
            self.timers.stop(Timer::Retransmit);
        }
        self.restart_tail_probe(now);
        self.pace();
    }

    /// Starts the timer that lets more leave.
    pub(super) fn pace(&mut self) {
        if let Some(at) = self.congestion.release_at() {
            self.timers.arm(Timer::Pace, at);
        }
    }

    /// Restarts keep-alive after an acceptable segment: the peer is there.
    pub(crate) fn heard_of_peer(&mut self, now: Instant) {
        self.keep_alive.unanswered = 0;
        if let Some(settings) = self.config.keep_alive.filter(|_| self.state != State::TimeWait) {
            self.timers.arm(Timer::KeepAlive, now + settings.idle);
        }
        if self.persist.probes > 0 {
            // A peer that answers probes may keep its window closed for ever (RFC 9293, section 3.8.6.1,
            // MUST-37).
            self.timers.stop(Timer::GiveUp);
        }
    }

    /// RFC 8985, section 7.2: arms the probe timer when new data is sent or acknowledged. A probe is never
    /// later than the retransmission timeout that it is to avoid.
    pub(crate) fn restart_tail_probe(&mut self, now: Instant) {
        self.timers.stop(Timer::TailLoss);
        if self.snd.outstanding() == 0 {
            return;
        }
        if let Some(timeout_ns) = self.recovery.probe_timeout_ns() {
            let least = self.terms.least_probe_wait();
            let timeout_ns = timeout_ns.max(least.as_nanos() as u64);
            let expiry = self.timers.when(Timer::Retransmit);
            let expiry = expiry.unwrap_or(now.plus_nanos(self.recovery.rtt.timeout_ns()));
            self.timers.arm(Timer::TailLoss, expiry.min(now.plus_nanos(timeout_ns)));
        }
    }

    /// Starts and stops timers by the present state. Called after every change that may affect them.
    pub(crate) fn update_timers(&mut self, now: Instant) {
        if self.state.is_synchronized() {
            self.update_send_timers(now);
        }
        if let Some(abandoned) = self.abandoned {
            self.update_orphan_timers(now, abandoned);
        }
        self.set(Timer::Reorder, self.recovery.look_again_at());
        if self.acks.take_news() {
            self.timers.stop(Timer::DelayedAck);
        }
        let delays = self.acks.is_delaying() && self.state.is_synchronized();
        self.keep(Timer::DelayedAck, delays, |tcp| now + tcp.config.delayed_ack);
        if delays && self.acks.is_delaying_a_whole(self.rcv.full_segment()) {
            self.hasten_delayed_ack(now);
        }
    }

    /// Where one acknowledgement for a turn is all that the peer hears, and that was lost, the peer probes with a single
    /// whole segment (RFC 8985, section 7.3) and waits: it is acknowledged after two round trips in which nothing follows.
    fn hasten_delayed_ack(&mut self, now: Instant) {
        if self.config.acks != AckPolicy::OneForATurn {
            return;
        }
        let Some(round_trip) = self.receiving_round_trip() else { return };
        let soon = now + (round_trip * 2).max(LEAST_ACK_DELAY);
        if self.timers.when(Timer::DelayedAck).is_some_and(|at| soon < at) {
            self.timers.arm(Timer::DelayedAck, soon);
        }
    }

    fn update_send_timers(&mut self, now: Instant) {
        let sends_text = self.state.sends_text();
        let is_outstanding = sends_text && self.snd.outstanding() > 0;
        let has_new = sends_text && self.snd.unsent() > 0;
        if !is_outstanding && !has_new {
            self.persist = Persist::default();
            self.stop_send_timers();
            return;
        }
        // New text that the owner sends may wait for another peer, which says nothing of this one.
        let waits_for_peer = !self.terms.owner_sends() || self.is_held_by_window();
        let is_waiting = is_outstanding || has_new && waits_for_peer;
        let persists = is_waiting && self.is_held_by_window();
        if !persists {
            self.persist = Persist::default();
        }
        let probes_window = persists && !self.persist.is_due;
        self.keep(Timer::Retransmit, is_outstanding && !persists, |tcp| {
            now.plus_nanos(tcp.recovery.rtt.timeout_ns())
        });
        self.keep(Timer::Persist, probes_window, |tcp| now + tcp.persist_timeout());
        self.keep(Timer::GiveUp, is_waiting, |tcp| now + tcp.config.user_timeout);
        if !is_outstanding || !self.recovery.may_probe() {
            self.timers.stop(Timer::TailLoss);
        }
    }

    /// Stops what only runs while something is outstanding or to be sent.
    fn stop_send_timers(&mut self) {
        for timer in [Timer::Retransmit, Timer::Persist, Timer::GiveUp, Timer::TailLoss] {
            self.timers.stop(timer);
        }
    }

    /// Whether the peer's window is closed, or has been until this segment. Then timers must be set after each segment, not
    /// only after the last of an arrival: one that opens the window ends the probes, and restarts retransmission.
    #[inline]
    pub(crate) fn is_window_closed(&self) -> bool {
        self.snd.wnd == 0 || self.persist.probes != 0 || self.timers.when(Timer::Persist).is_some()
    }

    /// RFC 9293, section 3.8.6.1: the first probe after a timeout, then with backoff (SHLD-29, 30).
    fn persist_timeout(&self) -> Duration {
        let base = self.recovery.rtt.timeout();
        base.saturating_mul(1 << self.persist.probes.min(8)).min(MOST_BETWEEN_PROBES)
    }

    /// Starts `timer` for the time that `at` computes, unless it runs, or stops it.
    fn keep(&mut self, timer: Timer, runs: bool, at: impl FnOnce(&Self) -> Instant) {
        if !runs {
            self.timers.stop(timer);
        } else if self.timers.when(timer).is_none() {
            self.timers.arm(timer, at(self));
        }
    }

    fn set(&mut self, timer: Timer, at: Option<Instant>) {
        match at {
            Some(at) => self.timers.arm(timer, at),
            None => self.timers.stop(timer),
        }
    }

    /// Whether the connection is over, so that its owner may drop it.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        matches!(self.state, State::Closed(_))
    }
}

/// RFC 9293, section 3.8.3: at least three retransmissions.
const R1: u32 = 3;
/// The second segment of a pair that leaves at once, and an answer of the application, come earlier.
const LEAST_ACK_DELAY: Duration = Duration::from_millis(1);
const MOST_BETWEEN_PROBES: Duration = Duration::from_secs(60);
