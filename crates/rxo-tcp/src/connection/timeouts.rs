//! The timers of a connection: the times at which they fire, and the actions when they fire.

use rxo_frame::{Duration, Instant};

use super::{Connection, Persist};
use crate::state::Failure;
use crate::timer::Timer;
use crate::{AckPolicy, Events, State};

impl<B: AsRef<[u8]>> Connection<B> {
    /// Returns the time at which [`Connection::on_timeout`] must be called; `None` if no timer runs.
    #[must_use]
    pub fn poll_at(&self) -> Option<Instant> {
        self.timers.next()
    }

    /// Fires all timers of the connection that are due at `now`, possibly none.
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
                // The retransmission timer restarts after the probe (RFC 8985, section 7.3).
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
                    self.acknowledge_all(false);
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
            self.apply_waiting_report(now);
        }
        if self.recovery.rtt.backed_off() == R1 {
            self.events |= Events::STALLED;
        }
    }

    /// Reports a reduction of the congestion window to the ECN state, which informs the peer by CWR (RFC 3168,
    /// section 6.1.2).
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
            // Outstanding data itself probes the peer (RFC 9293, section 3.8.4, MUST-26).
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

    /// Arms the timer that releases paced data.
    pub(super) fn pace(&mut self) {
        if let Some(at) = self.congestion.release_at() {
            self.timers.arm(Timer::Pace, at);
        }
    }

    /// Restarts keep-alive after an acceptable segment, which shows that the peer still responds.
    pub(crate) fn restart_keep_alive(&mut self, now: Instant) {
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

    /// Arms the tail loss probe timer when new data is sent or acknowledged (RFC 8985, section 7.2). The probe
    /// is never later than the retransmission timeout, because it must prevent this timeout.
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

    /// Starts and stops the timers that the current state needs or no longer needs. Call this method after
    /// every change that may affect the timers.
    pub(crate) fn update_timers(&mut self, now: Instant) {
        if self.state.is_synchronized() {
            self.update_send_timers(now);
        }
        if let Some(abandoned) = self.abandoned {
            self.update_orphan_timers(now, abandoned);
        }
        self.set(Timer::Reorder, self.recovery.reorder_check_at());
        if self.acks.take_has_queued() {
            self.timers.stop(Timer::DelayedAck);
        }
        let delays = self.acks.is_delaying() && self.state.is_synchronized();
        self.keep(Timer::DelayedAck, delays, |tcp| now + tcp.config.delayed_ack);
        if delays && self.acks.is_delaying_a_whole(self.rcv.full_segment()) {
            self.hasten_delayed_ack(now);
        }
    }

    /// Shortens the delayed-ACK timer to two round trips after a full segment that no other segment follows.
    /// Such a segment may be a tail loss probe: a peer whose only ACK was lost waits, then probes with a single
    /// full segment (RFC 8985, section 7.3).
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
        // The owner's new data may be waiting for another peer, so it does not show that this peer is
        // unresponsive.
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

    /// Stops the timers that run only while data is outstanding or waits to be sent.
    fn stop_send_timers(&mut self) {
        for timer in [Timer::Retransmit, Timer::Persist, Timer::GiveUp, Timer::TailLoss] {
            self.timers.stop(timer);
        }
    }

    /// Returns `true` if the peer's window is closed, or was closed until this segment. Then timers must be
    /// updated after each segment of an arrival, not only after the last: a segment that opens the window
    /// ends the probes and restarts retransmission.
    #[inline]
    pub(crate) fn is_window_closed(&self) -> bool {
        self.snd.wnd == 0 || self.persist.probes != 0 || self.timers.when(Timer::Persist).is_some()
    }

    /// Returns the time until the next window probe: a retransmission timeout for the first, then with
    /// backoff (RFC 9293, section 3.8.6.1, SHLD-29, 30).
    fn persist_timeout(&self) -> Duration {
        let base = self.recovery.rtt.timeout();
        base.saturating_mul(1 << self.persist.probes.min(8)).min(MOST_BETWEEN_PROBES)
    }

    /// Starts `timer` if `runs` is `true` and the timer is not running; `at` computes the time at which it
    /// fires. Stops the timer if `runs` is `false`.
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

    /// Returns `true` if the connection is over, so that its owner may drop it.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        matches!(self.state, State::Closed(_))
    }
}

/// The number of retransmissions before [`Events::STALLED`]: at least three (RFC 9293, section 3.8.3).
const R1: u32 = 3;
/// Minimum delay of an ACK: long enough for the second segment of a pair, or an answer of the
/// application, to come first.
const LEAST_ACK_DELAY: Duration = Duration::from_millis(1);
const MOST_BETWEEN_PROBES: Duration = Duration::from_secs(60);
