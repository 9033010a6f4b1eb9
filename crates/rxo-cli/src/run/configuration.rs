//! The effective configuration of a run. `--dry-run` prints all of it; every run prints a summary as its
//! first line.

use rxo_confine::InForce;
use rxo_driver::custody::Custody;
use rxo_driver::{Holdings, Mention};
use serde::Serialize;
use serde_json::{Map, Value};

use super::card::CardPlan;
use super::guest::{Guest, GuestConfiguration, qemu_lines};
use super::plan::Plan;
use super::survey::{Survey, carries};
use crate::policies;
use crate::workers::Workers;

/// All settings of a run.
#[derive(Debug, Serialize)]
pub(super) struct Configuration {
    kind: &'static str,
    nic: String,
    host: String,
    /// The receive method of the nic, such as `AF_XDP, copy mode`; left out for a device kind that has only one
    /// method, and in a dry run.
    #[serde(skip_serializing_if = "Option::is_none")]
    nic_access: Option<&'static str>,
    /// The receive method of the host's device; left out for a device kind that has only one method, and in a
    /// dry run.
    #[serde(skip_serializing_if = "Option::is_none")]
    host_access: Option<&'static str>,
    /// The configuration of each guest, with its port of the switch; left out without guests.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    guests: Vec<GuestConfiguration>,
    carries: &'static str,
    mtu: u32,
    checksum: &'static str,
    /// The setting of `--coalesce`.
    coalesce: &'static str,
    /// Number of segments per ACK; `None` does not split the host's ACKs.
    ack_split: Option<u16>,
    /// Seconds between two statistics lines; `None` prints only the totals.
    stats_s: Option<f64>,
    /// The number of workers that share the devices; left out for a single worker that is not bound to a
    /// processor.
    #[serde(skip_serializing_if = "Option::is_none")]
    workers: Option<u32>,
    /// The processor of each worker; left out if the workers are not bound.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    cpus: Vec<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tap: Option<String>,
    /// The impairments of frames to the host; left out without any. The impairments of frames from the host are
    /// in `impair_back`.
    #[serde(skip_serializing_if = "Option::is_none")]
    impair: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    impair_back: Option<String>,
    /// The offloads and the interrupt moderation of the emulated network card; left out if the run emulates no
    /// card.
    #[serde(skip_serializing_if = "Option::is_none")]
    card: Option<CardPlan>,
    /// The socket of `rxo ctl`; left out without a socket.
    #[serde(skip_serializing_if = "Option::is_none")]
    control: Option<String>,
    /// The address of the metrics socket; left out without `--metrics`.
    #[serde(skip_serializing_if = "Option::is_none")]
    metrics: Option<String>,
    /// Mechanism that keeps the kernel's own stack off packet interfaces.
    isolation: &'static str,
    /// Nice value of the thread that carries frames; left out if the thread keeps the value of the process.
    #[serde(skip_serializing_if = "Option::is_none")]
    nice: Option<i8>,
    /// The limits of the process that carries frames; left out in a dry run.
    #[serde(skip_serializing_if = "Option::is_none")]
    sandbox: Option<String>,
    /// The items that move from the nic to the TAP for the run; left out without `--take-over`.
    #[serde(skip_serializing_if = "Option::is_none")]
    take_over: Option<TakeOver>,
    policy: &'static str,
    paper: &'static str,
    settings: Map<String, Value>,
}

/// The items that `--take-over` moves.
#[derive(Debug, Serialize)]
struct TakeOver {
    mac: String,
    addresses: Vec<String>,
    routes: Vec<String>,
    neighbours: usize,
    /// The rules of the host's firewall that name the nic. During the run they match the TAP, which then has
    /// that name.
    rules: Vec<String>,
}

impl TakeOver {
    fn of(holdings: &Holdings, rules: &[Mention]) -> Self {
        Self {
            rules: rules.iter().map(ToString::to_string).collect(),
            mac: holdings.hardware_address(),
            addresses: holdings.addresses().collect(),
            routes: holdings.routes().collect(),
            neighbours: holdings.neighbours(),
        }
    }

    fn lines(&self) -> Vec<String> {
        let mut lines = vec![pair("takes over", &format!("hardware address {}", self.mac))];
        lines.extend(self.addresses.iter().map(|address| pair("", address)));
        lines.extend(self.routes.iter().map(|route| pair("", &format!("route {route}"))));
        if self.neighbours > 0 {
            lines.push(pair("", &format!("{} set neighbours", self.neighbours)));
        }
        lines.extend(self.rules.iter().map(|rule| pair("", &format!("the name in {rule}"))));
        lines
    }
}

impl Configuration {
    /// Makes the configuration of `plan` on this system, whose devices `survey` describes. `custody` lists
    /// the items that move from the nic to the TAP, if any do. The sink must support the plan's policy.
    pub(super) fn new(plan: &Plan, survey: &Survey, custody: Option<&Custody>) -> Self {
        Self {
            kind: "configuration",
            nic: plan.nic.to_string(),
            host: plan.host.to_string(),
            nic_access: None,
            host_access: None,
            guests: plan.guests.iter().map(Guest::configuration).collect(),
            carries: carries(survey.link),
            mtu: survey.mtu,
            checksum: if plan.trust_checksums { "trust" } else { "verify" },
            coalesce: plan.coalesce.name(),
            ack_split: plan.ack_split,
            stats_s: plan.stats.map(|time| time.as_secs_f64()),
            workers: shown_workers(&survey.workers),
            cpus: survey.workers.cpus.clone(),
            tap: plan.tap.as_ref().map(|path| path.display().to_string()),
            impair: plan.impair[0].as_ref().map(ToString::to_string),
            impair_back: plan.impair[1].as_ref().map(ToString::to_string),
            card: plan.card,
            control: plan.addresses.control.as_ref().map(|path| path.display().to_string()),
            metrics: plan.addresses.metrics.as_ref().map(ToString::to_string),
            isolation: if plan.isolates { "nftables" } else { "none" },
            nice: plan.nice,
            sandbox: None,
            take_over: custody
                .and_then(|custody| Some(TakeOver::of(custody.taken_over()?, custody.mentions()))),
            policy: plan.policy.name,
            paper: plan.policy.paper,
            settings: policies::settings(&plan.policy),
        }
    }

    /// Removes the nice value after the system has refused it.
    pub(super) fn remove_nice(&mut self) {
        self.nice = None;
    }

    /// Adds the receive methods of the nic and of the host's device, which are known once the devices are open.
    pub(super) fn opened(&mut self, [nic, host]: [Option<&'static str>; 2]) {
        (self.nic_access, self.host_access) = (nic, host);
    }

    /// Adds the limits of this process (its sandbox), once these limits are in force.
    pub(super) fn confined(&mut self, in_force: &InForce) {
        self.sandbox = Some(in_force.to_string());
    }

    /// Formats the whole configuration, one setting per line.
    pub(super) fn text(&self) -> String {
        let Self { nic, host, carries, mtu, checksum, policy, paper, .. } = self;
        let stats = self.stats_s.map_or("at the end".to_owned(), |time| format!("every {time} s"));
        let split = self.ack_split.map_or("off".to_owned(), |every| format!("one for {every}"));
        let mut lines = vec![
            pair("nic", nic),
            pair("carries", &format!("{carries}, MTU {mtu}")),
            pair("checksum", checksum),
            pair("coalesce", self.coalesce),
            pair("ack-split", &split),
            pair("stats", &stats),
        ];
        if self.guests.is_empty() {
            lines.insert(1, pair("host", host));
        }
        let guests = self.guests.iter();
        lines.splice(1..1, guests.map(|guest| pair("guest", &guest.text())));
        lines.extend(self.workers_line().map(|line| pair("workers", &line)));
        let extra = [
            ("tap", &self.tap),
            ("impair", &self.impair),
            ("impair-back", &self.impair_back),
            ("control", &self.control),
            ("metrics", &self.metrics),
        ];
        let given = extra.iter().filter_map(|(name, value)| Some(pair(name, value.as_ref()?)));
        lines.extend(given);
        lines.extend(self.card.map(|card| pair("card", &card.to_string())));
        lines.push(pair("isolation", self.isolation));
        lines.extend(self.nice.map(|nice| pair("nice", &nice.to_string())));
        lines.extend(self.take_over.iter().flat_map(TakeOver::lines));
        lines.push(pair("policy", &format!("{policy} ({paper})")));
        let settings = self.settings.iter();
        lines.extend(settings.map(|(name, value)| pair(&format!("  {name}"), &shown(name, value))));
        lines.extend(qemu_lines(&self.guests));
        lines.join("\n")
    }

    /// Formats the number of workers, and the processors to which the workers are bound. `None` for a single
    /// worker that is not bound.
    fn workers_line(&self) -> Option<String> {
        let count = self.workers?;
        let cpus: Vec<_> = self.cpus.iter().map(ToString::to_string).collect();
        Some(match cpus.is_empty() {
            true => count.to_string(),
            false => format!("{count}, on processors {}", cpus.join(",")),
        })
    }

    /// Formats the first line of a run.
    pub(super) fn line(&self) -> String {
        let Self { mtu, checksum, policy, settings, .. } = self;
        let with = |name: &String, access: Option<&str>| {
            access.map_or(name.clone(), |access| format!("{name} ({access})"))
        };
        let nic = with(&self.nic, self.nic_access);
        let host = with(&self.host, self.host_access);
        let sandbox = self.sandbox.as_ref().map(|sandbox| format!("sandbox: {sandbox}; "));
        let sandbox = sandbox.unwrap_or_default();
        if let Some(card) = self.card {
            return format!("{nic} <-> {host}, MTU {mtu}, {card}; {sandbox}Ctrl-C ends");
        }
        let setting = |name| settings.get(name).map_or("-".to_owned(), Value::to_string);
        let host = match self.guests.len() {
            0 => host,
            1 => "1 guest".to_owned(),
            count => format!("{count} guests"),
        };
        let guests = qemu_lines(&self.guests).map(|line| format!("\n{line}"));
        let guests = guests.collect::<String>();
        format!(
            "{nic} <-> {host}, MTU {mtu}, {}policy {policy} (at most {} segments, {} bytes), \
             {}{}checksum {checksum}; {sandbox}Ctrl-C ends{guests}",
            self.workers_line().map_or(String::new(), |line| format!("workers: {line}; ")),
            setting("max_segments"),
            setting("max_bytes"),
            if setting("pure_acks") == "\"single\"" { "pure ACKs aggregated, " } else { "" },
            self.ack_split
                .map_or(String::new(), |every| format!("ACKs split to one for {every}, ")),
        )
    }
}

/// Returns the number of workers; `None` for a single worker that is not bound to a processor.
fn shown_workers(workers: &Workers) -> Option<u32> {
    let is_said = workers.are_several() || !workers.cpus.is_empty();
    is_said.then_some(workers.count)
}

/// Formats a setting as text. The largest possible value of a limit is shown as "no limit".
fn shown(name: &str, value: &Value) -> String {
    let most = match name {
        "max_segments" | "max_acks" => Some(u16::MAX.into()),
        "buffer_bytes" => Some(u32::MAX.into()),
        _ => None,
    };
    match value {
        Value::String(text) => text.clone(),
        number if most.is_some() && number.as_u64() == most => "no limit".to_owned(),
        other => other.to_string(),
    }
}

fn pair(name: &str, value: &str) -> String {
    format!("{name:<20}{value}")
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use rxo_coalesce::Policy;
    use rxo_frame::LinkKind;

    use super::*;
    use crate::flags::{Cli, Command};

    fn configuration() -> Configuration {
        let line = "rxo run --nic packet:eth1 --host tap:rxo0 --policy menon-2008 --stats 0s";
        let Command::Run(flags) = Cli::parse_from(line.split(' ')).command else {
            panic!("{line}")
        };
        let plan = Plan::from_flags(&flags).unwrap();
        let (link, mtu) = (LinkKind::Ethernet, 1500);
        let workers = Workers { count: 1, cpus: Vec::new() };
        let survey = Survey { link, mtu, makes_nic: false, makes_host: true, workers };
        Configuration::new(&plan, &survey, None)
    }

    #[test]
    fn every_setting_is_shown() {
        let text = configuration().text();
        for (name, value) in Policy::menon_2008().settings() {
            let value = if name == "buffer_bytes" { "no limit" } else { &*value };
            let found = text.lines().any(|line| {
                line.trim()
                    .split_once(' ')
                    .is_some_and(|(first, rest)| (first, rest.trim()) == (name, value))
            });
            assert!(found, "{name} {value} is not in\n{text}");
        }
    }

    #[test]
    fn the_first_line_says_what_matters() {
        assert_eq!(
            configuration().line(),
            "packet:eth1 <-> tap:rxo0, MTU 1500, policy menon-2008 (at most 20 segments, 65535 \
             bytes), checksum verify; Ctrl-C ends"
        );
    }
}
