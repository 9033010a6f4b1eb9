//! `rxo-lab step JSON`: what the processes of this program do that experiments start.

use std::sync::atomic::AtomicBool;

use anyhow::{Context, Result};
use serde::Deserialize;

use crate::menon::card::linux::domain;
use crate::menon::card::receiver;
use crate::paro::server;
use crate::smo::cost;
use crate::smo::real::rack;
use crate::xen::driver;

/// A step of an experiment, with its parameters.
#[derive(Clone, Debug, Deserialize)]
pub(crate) enum Step {
    /// The driver domain of `menon card`.
    Domain(domain::Parameters),
    /// The driver domain of `xen`.
    Driver(driver::Parameters),
    /// Receivers of `smo` on one interface.
    Rack(rack::Parameters),
    /// The receiving process of `menon card`.
    Receiver(receiver::Parameters),
    /// The sender of `smo`.
    Sender(cost::Parameters),
    /// The server of `paro`.
    Server(server::Parameters),
}

/// Runs the step that `text` describes, which prints its measurements as JSON.
pub(crate) fn run(text: &str, stop: &AtomicBool) -> Result<()> {
    match serde_json::from_str(text).context("no step of an experiment")? {
        Step::Domain(parameters) => domain::run(&parameters),
        Step::Driver(parameters) => driver::run(&parameters),
        Step::Rack(parameters) => rack::run(&parameters, stop),
        Step::Receiver(parameters) => receiver::run(&parameters, stop),
        Step::Sender(parameters) => cost::run(&parameters),
        Step::Server(parameters) => server::run(&parameters),
    }
}
