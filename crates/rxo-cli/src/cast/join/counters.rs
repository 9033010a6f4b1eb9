//! The counters of `rxo cast join` as JSON, in the form of `rxo run`'s totals.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use rxo::Reading;
use rxo::desk::{Desk, Reply};
use rxo::figures::Figures;
use rxo_device::{FrameSink, FrameSource};
use serde_json::{Value, to_value};

use super::Bridge;
use crate::control::Counters;

/// Returns a function that reads the counters of the bridge between two devices, by a question on its `desk`.
pub(super) fn asked_at(desk: Desk<Reply<Value>>) -> Counters {
    Arc::new(move || {
        let answer = desk.ask(|reply| reply, || {}, REQUEST_TIMEOUT);
        Ok(answer.ok_or("the join does not answer; it is ending")?)
    })
}

impl Bridge {
    /// Returns all counters. There is no engine between the two devices.
    pub(super) fn counters(&mut self) -> Value {
        let reading = Reading {
            nic_in: self.nic.counters(),
            host_out: self.host_sink.counters(),
            host_in: self.host.counters(),
            nic_out: self.nic_sink.counters(),
            ..Reading::default()
        };
        let Figures { nic_in, host_out, host_in, nic_out, .. } =
            Figures::totals(&reading.into(), &[]);
        let group: BTreeMap<_, _> = self.join.counters().named().collect();
        let parts = [
            ("nic_in", to_value(nic_in)),
            ("host_out", to_value(host_out)),
            ("host_in", to_value(host_in)),
            ("nic_out", to_value(nic_out)),
            ("group", to_value(group)),
        ];
        // Counters are numbers, which always have a JSON form.
        parts.into_iter().map(|(name, part)| (name.to_owned(), part.unwrap_or_default())).collect()
    }
}

/// Timeout of a request. The bridge runs its loop at least twenty times per second.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(1);
