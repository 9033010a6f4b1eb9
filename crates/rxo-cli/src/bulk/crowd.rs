//! Crowd: opens or accepts all connections of one worker, on one thread, and continues the work of each
//! connection when its stream is ready.
//!
//! This module is separate from the [`session`](super::session), which does the work of one connection. A turn
//! costs time only for the connections that are ready, not for all of them.

use std::mem;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Error, Result};
use hdrhistogram::Histogram;
use rxo::live::host::Listeners;
use rxo_host::{Handle, Readiness};

use super::meter::Meter;
use super::places::Places;
use super::plan::Plan;
use super::session::{Done, Session, Shared, Step};
use crate::endpoint::Endpoint;

/// The connections of one worker of a run, each with its work (a session).
pub(super) struct Crowd<'a> {
    endpoint: &'a Endpoint,
    /// The handle to the worker that owns all these connections.
    handle: &'a Handle,
    shared: Shared,
    /// The sessions, one for each connection. The index of a session is its token in `readiness`; `None` once
    /// the session has ended.
    sessions: Vec<Option<Session>>,
    /// The number of sessions that have not ended.
    living: usize,
    /// The number of sessions that have not ended and whose connections are not open yet.
    opening: usize,
    /// The number of connections that this worker must still open or, if this side accepts, that any worker
    /// must still accept.
    to_come: Arc<Places>,
    /// The listeners, until all connections have been accepted; `None` if this side connects.
    listeners: Option<Listeners>,
    readiness: Readiness,
    ready: Vec<u64>,
    /// The tokens of sessions that can continue without waiting for their streams.
    paused: Vec<u64>,
    /// The time of the next check of sessions that wait for a point in time, which no stream reports. There
    /// may be such sessions only if `is_watching` is `true`.
    look_at: Instant,
    is_watching: bool,
    pub(super) done: Vec<Done>,
    pub(super) failures: Vec<Error>,
}

impl<'a> Crowd<'a> {
    /// Creates the crowd of the worker with `handle`. Listens if this side accepts connections.
    ///
    /// # Errors
    /// If the port is in use.
    pub(super) fn new(
        plan: &Plan,
        (endpoint, handle): (&'a Endpoint, &'a Handle),
        (meter, to_come): (Arc<Meter>, Arc<Places>),
    ) -> Result<Self> {
        let (readiness, listeners) = (Readiness::new(), endpoint.listen(handle)?);
        listeners.iter().try_for_each(|listeners| listeners.watch(&readiness, LISTENER_TOKEN))?;
        Ok(Self {
            endpoint,
            handle,
            shared: Shared::new(plan, meter)?,
            sessions: Vec::new(),
            living: 0,
            opening: 0,
            to_come,
            listeners,
            readiness,
            ready: Vec::new(),
            paused: vec![LISTENER_TOKEN],
            look_at: Instant::now(),
            is_watching: false,
            done: Vec::new(),
            failures: Vec::new(),
        })
    }

    /// Takes the round-trip times of all requests; `None` if this command sends none.
    pub(super) fn take_round_trips(&mut self) -> Option<Histogram<u64>> {
        self.shared.round_trips.take()
    }

    /// Continues the work of all connections that are ready. If no connection is ready, waits for one, at most
    /// for `most`. Returns `false` once all sessions have ended.
    pub(super) fn turn(&mut self, most: Duration) -> bool {
        if self.endpoint.should_stop() {
            self.interrupt();
        }
        self.connect();
        if self.to_come.is_none() {
            // Another worker may have accepted the last connection.
            self.listeners = None;
            if self.living == 0 {
                return false;
            }
        }
        self.ready.append(&mut self.paused);
        let pause = self.pause(most);
        self.readiness.wait(&mut self.ready, Some(pause));
        self.mark_due(Instant::now());
        let mut ready = mem::take(&mut self.ready);
        for token in ready.drain(..) {
            match token {
                LISTENER_TOKEN => self.accept(),
                token => self.visit(token),
            }
        }
        self.ready = ready;
        true
    }

    /// Returns the maximum time to wait for a session to become ready.
    fn pause(&self, most: Duration) -> Duration {
        match self.is_watching {
            _ if !self.ready.is_empty() => Duration::ZERO,
            true => self.look_at.saturating_duration_since(Instant::now()).min(most),
            false => most,
        }
    }

    /// Begins to open connections, at most [`MOST_OPENING`] at a time: the backlog of a peer does not hold
    /// 10,000 SYNs.
    fn connect(&mut self) {
        while self.listeners.is_none() && self.opening < MOST_OPENING && self.to_come.take() {
            let begun = self.endpoint.begin_to_connect(self.handle);
            self.join(
                begun.and_then(|(stream, opening)| Session::open(stream, opening, &self.shared)),
            );
        }
    }

    /// Accepts the waiting connections, and closes the listeners once all have been accepted.
    fn accept(&mut self) {
        while !self.to_come.is_none()
            && let Some(listeners) = &self.listeners
        {
            let accepted = listeners.accept().transpose();
            let Some(accepted) = accepted else { return };
            if !self.to_come.take() {
                // All connections have been accepted. The next one is dropped, which resets it, as if it
                // still waited when the listeners close.
                break;
            }
            let session = accepted.map_err(Error::from);
            self.join(session.and_then(|(stream, _)| Session::accept(stream, &self.shared)));
        }
        self.listeners = None;
    }

    /// Adds a session, whose work begins in the next turn.
    fn join(&mut self, session: Result<Session>) {
        let token = self.sessions.len() as u64;
        let watched = session.and_then(|session| {
            self.readiness.watch(session.stream(), token)?;
            Ok(session)
        });
        match watched {
            Err(error) => self.failures.push(error),
            Ok(session) => {
                self.living += 1;
                self.opening += usize::from(session.is_opening());
                self.sessions.push(Some(session));
                self.paused.push(token);
            }
        }
    }

    /// Marks the sessions that wait for a point in time as ready if that time may have come. The more
    /// sessions there are, the longer the time between two checks.
    fn mark_due(&mut self, now: Instant) {
        if now < self.look_at {
            return;
        }
        self.look_at = now + CHECK_INTERVAL * (1 + self.living / MOST_CHECKED_OFTEN) as u32;
        self.is_watching = false;
        for (token, session) in (0..).zip(&self.sessions) {
            let Some(session) = session.as_ref().filter(|session| session.is_due(now)) else {
                continue;
            };
            self.is_watching |= session.is_watched();
            self.ready.push(token);
        }
    }

    /// Continues the session with `token`, unless it has ended.
    fn visit(&mut self, token: u64) {
        let Some(place) = self.sessions.get_mut(token as usize) else { return };
        let Some(session) = place else { return };
        let was_opening = session.is_opening();
        let ended = match session.proceed(&mut self.shared) {
            Ok(Step::Ends) => Some(Ok(session.done())),
            Err(error) => Some(Err(error)),
            Ok(Step::Waits) => None,
            Ok(Step::Pauses) => {
                self.paused.push(token);
                None
            }
        };
        let is_opening = session.is_opening() && ended.is_none();
        self.opening -= usize::from(was_opening && !is_opening);
        self.is_watching |= session.is_watched();
        if let Some(ended) = ended {
            *place = None;
            self.record(ended);
        }
    }

    /// Records the result of a session that has ended, which may be an error.
    fn record(&mut self, ended: Result<Done>) {
        self.living -= 1;
        match ended {
            Ok(done) => self.done.push(done),
            Err(error) => self.failures.push(error),
        }
    }

    /// Ends all sessions, and opens or accepts no further connections.
    fn interrupt(&mut self) {
        self.to_come.take_all();
        (self.opening, self.listeners) = (0, None);
        for mut session in mem::take(&mut self.sessions).into_iter().flatten() {
            self.record(session.interrupt());
        }
    }
}

/// The token of the listeners in `readiness`.
const LISTENER_TOKEN: u64 = u64::MAX;
/// Maximum number of connections that are being opened at a time.
const MOST_OPENING: usize = 256;
/// The time between two checks of the sessions that wait for a point in time, for at most
/// [`MOST_CHECKED_OFTEN`] such sessions.
const CHECK_INTERVAL: Duration = Duration::from_millis(1);
/// The largest number of sessions for which [`CHECK_INTERVAL`] applies; with more sessions, the time between
/// two checks grows in proportion.
const MOST_CHECKED_OFTEN: usize = 64;
