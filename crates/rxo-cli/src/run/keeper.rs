//! The keeper: a process that waits beside the worker and restores the interfaces when the worker has
//! ended, for whatever reason.

use std::os::fd::AsFd;
use std::time::Duration;

use anyhow::{Error, Result};
use rxo_driver::guard::Worker;
use rxo_driver::wait;
use rxo_frame::Instant;

use super::channel::{Order, Report};
use super::custody::{Custody, TapBefore};
use super::plan::Plan;
use super::survey::Survey;
use crate::exit;
use crate::output;
use crate::stop::Requests;

/// The state of the keeper.
#[derive(Debug)]
pub(super) struct Keeper {
    custody: Custody,
    worker: Worker,
    requests: Requests,
    /// How often the user has asked for an end.
    asked: usize,
    tap: Option<TapBefore>,
    /// Whether a change was made that is not given back yet.
    owes: bool,
    /// Whether the TAP existed before the run.
    has_persistent_tap: bool,
    /// Whether the kernel is kept off the nic.
    isolates: bool,
    /// Why the run cannot begin or go on, if this process found that out.
    refused: Option<Error>,
}

/// How often names are checked: a renamed interface must be isolated again.
const BETWEEN_LOOKS: Duration = Duration::from_millis(500);

impl Keeper {
    /// Keeps `custody` for `worker`.
    ///
    /// # Errors
    /// If signals cannot be waited for.
    pub(super) fn new(
        custody: Custody,
        worker: Worker,
        (plan, survey): (&Plan, Survey),
    ) -> Result<Self> {
        Ok(Self {
            custody,
            worker,
            requests: Requests::begin()?,
            asked: 0,
            tap: None,
            owes: false,
            has_persistent_tap: !survey.makes_host,
            isolates: plan.isolates,
            refused: None,
        })
    }

    /// Waits for the end of the worker, gives back what was changed, and returns the worker's result.
    ///
    /// # Errors
    /// As the worker ended, or why the interfaces could not be prepared.
    pub(super) fn keep(mut self) -> Result<()> {
        while self.wait().is_some() {}
        self.give_back();
        let Self { worker, asked, refused, .. } = self;
        let status = worker.wait()?;
        if let Some(refused) = refused {
            return Err(refused);
        }
        if status.code().is_none() && asked < 2 {
            output::note(&format!("the worker was ended ({status}); the interfaces are put back"));
        }
        exit::as_ended(status.code())
    }

    /// Waits for a report or a signal and handles it. `None` if the worker has ended.
    fn wait(&mut self) -> Option<()> {
        let (channel, requests) = (self.worker.channel.as_fd(), self.requests.as_fd());
        let ready = wait::wait_readable(&[channel, requests], Some(BETWEEN_LOOKS)).ok()?;
        self.count_requests();
        if ready.is_none() && self.owes {
            self.custody.follow_names();
        }
        if ready.has(0) {
            let report = Report::receive(&self.worker.channel).ok()?;
            let order = self.answer(report);
            // If the worker is gone, the next receive says so.
            _ = order.send(&self.worker.channel);
        }
        Some(())
    }

    /// The first request lets the worker end by itself; the second kills it.
    fn count_requests(&mut self) {
        let new = self.requests.take();
        if new == 0 {
            return;
        }
        if self.asked == 0 {
            _ = Order::Stop.send(&self.worker.channel);
        }
        self.asked += new;
        if self.asked > 1 {
            self.worker.kill();
        }
    }

    fn answer(&mut self, report: Report) -> Order {
        match report {
            Report::Opened(tap) => {
                let begun = self.begin(tap);
                self.order(begun)
            }
            Report::NicIsBack(nic) => {
                let begun = self.begin_again(nic);
                self.order(begun)
            }
            Report::Closed => {
                self.give_back();
                Order::PutBack
            }
        }
    }

    /// The order that follows from the preparation.
    fn order(&mut self, begun: Result<Instant>) -> Order {
        match begun {
            Ok(closed_at) => Order::Begin(closed_at),
            Err(error) => {
                self.refused = Some(error);
                Order::Quit
            }
        }
    }

    fn begin(&mut self, tap: u32) -> Result<Instant> {
        if tap > 0 {
            self.tap = Some(TapBefore::read(tap, self.has_persistent_tap)?);
        }
        self.owes = true;
        let (closed_at, notices) = self.custody.begin(self.tap.as_ref())?;
        notices.iter().for_each(|notice| output::note(notice));
        Ok(closed_at)
    }

    fn begin_again(&mut self, nic: u32) -> Result<Instant> {
        self.custody.succeed(nic)?;
        self.custody.begin_again(self.tap.as_ref(), self.isolates)
    }

    fn give_back(&mut self) {
        if std::mem::take(&mut self.owes) {
            let refused = self.custody.give_back(self.tap.as_ref());
            refused.iter().for_each(|line| output::note(line));
        }
    }
}
