//! The process that waits beside the one that works, and gives everything back when that has ended,
//! however it did.

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

/// What is kept while the worker works.
#[derive(Debug)]
pub(super) struct Keeper {
    custody: Custody,
    worker: Worker,
    requests: Requests,
    /// How often the user asked for an end.
    asked: usize,
    tap: Option<TapBefore>,
    /// Whether anything was changed that is not given back yet.
    owes: bool,
    /// Whether the TAP was there before the run.
    has_persistent_tap: bool,
    /// Whether the kernel is kept off the nic.
    isolates: bool,
    /// Why it cannot be, where this process found that out.
    refused: Option<Error>,
}

/// How often names are looked at: an interface that is renamed must be closed again.
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

    /// Waits for the worker's end, and gives back what it and this process have changed. The result is
    /// the worker's.
    ///
    /// # Errors
    /// As the worker ended, or because something could not be as planned.
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

    /// Waits for what comes next and does it; `None` once the worker has ended.
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
            // A worker that is gone is seen at the next look.
            _ = order.send(&self.worker.channel);
        }
        Some(())
    }

    /// Asked once, the worker ends in its own time; asked again, at once.
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

    /// What becomes of the worker.
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
