//! `rxo card`: a run that emulates a network card and coalesces nothing.

use std::fmt;
use std::time::Duration;

use anyhow::Result;
use rxo_driver::GuestOptions;
use serde::Serialize;

use super::checks::{can_wait_for, takes_all};
use super::plan::Plan;
use super::values::device;
use crate::exit::usage;
use crate::flags::CardFlags;
use crate::numbers::parse_time;

/// The offloads and the interrupt moderation that the card provides to its host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(super) struct CardPlan {
    /// `true` if the card validates and fills checksums.
    checksum: bool,
    /// `true` if the card segments GSO frames.
    tso: bool,
    /// `true` if the card expands ACK templates.
    expand: bool,
    /// Delay from a frame to the host's notification, in seconds.
    moderate_s: f64,
}

/// Makes the plan of `rxo card`.
///
/// # Errors
/// If a name, a time or an offload is invalid; the message describes valid values.
pub(super) fn plan(flags: &CardFlags) -> Result<Plan> {
    let nic = device("--wire", &flags.wire)?;
    can_wait_for(flags.wait_for_nic, "--wire", &nic)?;
    let host = device("--guest", &flags.guest)?;
    if host.kind().prefix != "vhost" {
        return Err(usage(format!(
            "--guest {host} is no socket on which a host connects; give vhost:PATH"
        )));
    }
    let moderate_s = moderation(&flags.moderate)?.as_secs_f64();
    Ok(Plan {
        card: Some(CardPlan { moderate_s, ..offloads(&flags.offload)? }),
        wait_for_nic: flags.wait_for_nic,
        isolates: !flags.no_isolation && takes_all([&nic, &host]),
        ..Plan::between([("--wire", nic), ("--guest", host)], &flags.live)?
    })
}

impl CardPlan {
    /// Returns the features that the card's device offers to the host.
    pub(super) fn guest(self) -> GuestOptions {
        GuestOptions {
            checksums: self.checksum,
            segmentation: self.tso,
            aggregates: false,
            ack_templates: self.expand,
            moderation: Duration::from_secs_f64(self.moderate_s),
            ..GuestOptions::default()
        }
    }

    /// Returns `true` if the card validates the checksums of frames for the host.
    pub(super) const fn validates(self) -> bool {
        self.checksum
    }

    /// Returns `true` if the card expands ACK templates of the host.
    pub(super) const fn expands(self) -> bool {
        self.expand
    }
}

impl fmt::Display for CardPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = [(self.checksum, "checksum"), (self.tso, "tso"), (self.expand, "expand")];
        let offloads: Vec<_> = names.iter().filter_map(|(is, name)| is.then_some(*name)).collect();
        let offloads = if offloads.is_empty() { "none".to_owned() } else { offloads.join(",") };
        let micros = self.moderate_s * 1e6;
        write!(f, "offload {offloads}, notifications after {micros:.0} us")
    }
}

fn moderation(text: &str) -> Result<Duration> {
    let time = parse_time(text).filter(|time| time.is_zero() || (LEAST..=MOST).contains(time));
    time.ok_or_else(|| {
        usage(format!("--moderate {text}: give a time from 1us to 100ms, or 0us for none"))
    })
}

fn offloads(text: &str) -> Result<CardPlan> {
    let mut card = CardPlan::default();
    for item in text.split(',').filter(|_| text != "none") {
        match item {
            "checksum" => card.checksum = true,
            "tso" => card.tso = true,
            "expand" => card.expand = true,
            _ => {
                return Err(usage(format!(
                    "--offload {text}: `{item}` is no offload; give some of checksum, tso and expand with \
                     commas, or none"
                )));
            }
        }
    }
    if (card.tso || card.expand) && !card.checksum {
        return Err(usage(format!(
            "--offload {text}: the frames that it makes need checksums; add checksum"
        )));
    }
    Ok(card)
}

const LEAST: Duration = Duration::from_micros(1);
const MOST: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::flags::{Cli, Command};

    fn planned(line: &str) -> Result<Plan> {
        let wire = if line.contains("--wire") { "" } else { "--wire packet:eth1" };
        let line = format!("rxo card {wire} {line}");
        match Cli::try_parse_from(line.split_whitespace())?.command {
            Command::Card(flags) => plan(&flags),
            other => panic!("{other:?}"),
        }
    }

    fn card(line: &str) -> CardPlan {
        planned(&format!("--guest vhost:/run/card.sock {line}")).unwrap().card.unwrap()
    }

    #[test]
    fn a_card_does_what_is_asked_and_never_aggregates() {
        let expanding = card("--offload checksum,expand");
        assert!(expanding.expands() && expanding.guest().ack_templates);
        assert!(expanding.to_string().starts_with("offload checksum,expand,"));
        let rows = [
            ("", (true, true, 0), "offload checksum,tso, notifications after 0 us"),
            ("--offload none", (false, false, 0), "offload none, notifications after 0 us"),
            (
                "--offload checksum --moderate 50us",
                (true, false, 50),
                "offload checksum, notifications after 50 us",
            ),
            (
                "--moderate 1ms",
                (true, true, 1_000),
                "offload checksum,tso, notifications after 1000 us",
            ),
        ];
        for (line, (checksums, segmentation, micros), text) in rows {
            let card = card(line);
            let moderation = Duration::from_micros(micros);
            let card_only = GuestOptions { aggregates: false, ..GuestOptions::default() };
            let guest = GuestOptions { checksums, segmentation, moderation, ..card_only };
            assert_eq!((card.guest(), card.to_string()), (guest, text.to_owned()));
            assert_eq!(card.validates(), checksums);
        }
        let plan = planned("--guest vhost:/run/card.sock").unwrap();
        assert!(!plan.policy.coalesce && plan.isolates && !plan.wait_for_nic);
        assert!(planned("--guest vhost:/run/card.sock --wait-for-nic").unwrap().wait_for_nic);
    }

    #[test]
    fn an_invalid_value_is_named_with_valid_ones() {
        let rows = [
            ("--guest tap:rxo0", "--guest tap:rxo0 is no socket"),
            ("--guest vhost:/s --moderate 1s", "--moderate 1s: give a time from 1us to 100ms"),
            ("--guest vhost:/s --offload lro", "--offload lro: `lro` is no offload; give some of"),
            (
                "--guest vhost:/s --offload tso",
                "--offload tso: the frames that it makes need checksums",
            ),
            ("--guest vhost:/s --offload expand", "--offload expand: the frames that it makes"),
            ("--guest vhost:/s --stats 1d", "--stats 1d: give a time from 100ms"),
            ("--guest vm.sock", "--guest"),
            (
                "--wire tap:a --guest vhost:/s --wait-for-nic",
                "--wait-for-nic waits for a nic, which --wire tap:a makes by itself; give --wire packet:",
            ),
        ];
        for (line, message) in rows {
            let error = planned(line).unwrap_err();
            assert!(error.to_string().starts_with(message), "{error:#}");
        }
    }
}
