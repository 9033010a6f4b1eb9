//! Processes of this program that experiments start, most of them under valgrind: `rxo-lab step JSON`.

use std::sync::atomic::AtomicBool;

use anyhow::Result;
use serde::{Deserialize, Serialize};

use crate::menon::card::linux::domain;
use crate::menon::card::receiver;
use crate::paro::server;
use crate::smo::cost;
use crate::smo::real::rack;
use crate::xen::driver;

/// A step of an experiment, with its parameters.
#[derive(Clone, Debug, Deserialize, Serialize)]
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

impl Step {
    /// Returns the arguments of the process.
    ///
    /// # Errors
    /// If a path is no text.
    pub(crate) fn arguments(&self) -> Result<[String; 2]> {
        Ok(["step".to_owned(), serde_json::to_string(self)?])
    }

    /// Returns the step of an argument.
    pub(crate) fn parse(text: &str) -> serde_json::Result<Self> {
        serde_json::from_str(text)
    }

    /// Runs the step, which prints its measurements as JSON.
    ///
    /// # Errors
    /// If a device cannot be opened, or the other end fails.
    pub(crate) fn run(&self, stop: &AtomicBool) -> Result<()> {
        match self {
            Self::Domain(parameters) => domain::run(parameters),
            Self::Driver(parameters) => driver::run(parameters),
            Self::Rack(parameters) => rack::run(parameters, stop),
            Self::Receiver(parameters) => receiver::run(parameters, stop),
            Self::Sender(parameters) => cost::run(parameters),
            Self::Server(parameters) => server::run(parameters),
        }
    }
}
