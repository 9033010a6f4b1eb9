//! The plan of `rxo run`, made from its flags alone, without system calls.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Result;
use rxo::worker::Coalesce;
use rxo_coalesce::{Hold, Policy};
use rxo_console::log::Form;
use rxo_device::middleware::ImpairmentSettings;
use rxo_driver::custody::Claim;
use rxo_driver::{DeviceName, GuestMemory, Origin};

use super::acks;
use super::card::CardPlan;
use super::checks::{can_take_over, can_upgrade, can_wait_for, takes_all};
use super::guest::Guest;
use super::survey::Survey;
use super::values::{self, device};
use crate::control::ControlAddresses;
use crate::defaults::POLICY;
use crate::exit::usage;
use crate::flags::{ChecksumFlag, GuestFlags, LiveFlags, PolicyFlags, RunFlags, WayFlags};
use crate::rules;
use crate::sandbox::Sandbox;
use crate::workers::WorkersPlan;

/// The plan of a run: its devices, its policy and its output.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    /// The flags by which the user named the nic and the host's device.
    pub(super) flags: [&'static str; 2],
    pub(super) nic: DeviceName,
    /// The host's device, or the device of the first guest.
    pub(super) host: DeviceName,
    /// The offloads and the interrupt moderation of the emulated network card; `None` for other runs.
    pub(super) card: Option<CardPlan>,
    /// The guests of `rxo guest`; empty for `rxo run`.
    pub(super) guests: Vec<Guest>,
    /// The limits of the memory that a guest may share, if the nic or the host's device belongs to a guest.
    pub(super) memory: GuestMemory,
    pub(super) policy: Policy,
    /// The setting of `--coalesce`.
    pub(super) coalesce: Coalesce,
    /// The number of segments per ACK; `None` leaves the host's ACKs unchanged.
    pub(super) ack_split: Option<u16>,
    /// `true` if a checksum that the device has not verified counts as correct.
    pub(super) trust_checksums: bool,
    /// Time between two statistics lines; `None` prints only the totals.
    pub(super) stats: Option<Duration>,
    /// The workers that share the devices.
    pub(super) workers: WorkersPlan,
    /// The capture file for all traffic; `None` without `--tap`.
    pub(super) tap: Option<PathBuf>,
    /// The impairments of frames to the host, and of frames from the host.
    pub(super) impair: [Option<ImpairmentSettings>; 2],
    /// `true` if the nic's configuration moves to the host's TAP for the run.
    pub(super) take_over: bool,
    /// `true` if the run waits for a nic that is deleted.
    pub(super) wait_for_nic: bool,
    /// `true` if the kernel's own stack is kept off packet interfaces.
    pub(super) isolates: bool,
    /// The time within which the user must confirm the run; `None` needs no confirmation.
    pub(super) confirm: Option<Duration>,
    /// The addresses of the sockets for requests (`--control`) and for metrics (`--metrics`).
    pub(super) addresses: ControlAddresses,
    /// The socket by which a later rxo takes over; `None` without `--upgrade`.
    pub(super) upgrade: Option<PathBuf>,
    pub(super) json: bool,
    /// The form of the log.
    pub(super) log: Form,
    /// Maximum time for which the worker may do nothing; `None` for no limit.
    pub(super) watchdog: Option<Duration>,
    /// The nice value of the thread that carries frames; `None` keeps that of the process.
    pub(super) nice: Option<i8>,
    /// The privileges that the processes of the run give up.
    pub(super) sandbox: Sandbox,
}

impl Plan {
    /// Makes the plan of `rxo guest` from its flags.
    ///
    /// # Errors
    /// If a name, a number or a time is invalid; the message describes valid values.
    pub(super) fn of_guests(flags: &GuestFlags) -> Result<Self> {
        let nic = device("--nic", &flags.nic)?;
        can_wait_for(flags.wait_for_nic, "--nic", &nic)?;
        can_upgrade(flags.upgrade.is_some(), "--nic", &nic)?;
        let guests = Guest::all(&flags.vhost)?;
        let Some(first) = guests.first() else {
            return Err(usage(
                "--vhost: give at least one guest, such as \
                 web=/run/web.sock,mac=52:54:00:00:00:02"
                    .to_owned(),
            ));
        };
        let workers = WorkersPlan::from_flags(&flags.workers)?;
        workers.check(&[&nic])?;
        let devices = [("--nic", nic), ("--vhost", first.device.clone())];
        Ok(Self {
            guests,
            workers,
            policy: policy_for_guests(&flags.policy)?,
            tap: flags.tap.clone(),
            wait_for_nic: flags.wait_for_nic,
            isolates: !flags.no_isolation && takes_all([&devices[0].1, &devices[1].1]),
            upgrade: flags.upgrade.clone(),
            ..Self::between(devices, &flags.live)?.with_way(&flags.way)?
        })
    }

    /// Returns the devices of the host, or of all guests.
    pub(super) fn hosts(&self) -> Vec<&DeviceName> {
        if self.guests.is_empty() {
            return vec![&self.host];
        }
        self.guests.iter().map(|guest| &guest.device).collect()
    }

    /// Returns the sockets that the run binds, for guests and for `rxo ctl`.
    pub(super) fn sockets(&self) -> Vec<&Path> {
        let guests =
            self.hosts().into_iter().chain([&self.nic]).filter(|it| it.kind().prefix == "vhost");
        let own = self.addresses.paths().chain(self.upgrade.as_deref());
        guests.map(|device| Path::new(device.name())).chain(own).collect()
    }

    /// Returns the interfaces that rxo uses but does not create; the run may change their settings.
    pub(super) fn existing(&self) -> Vec<DeviceName> {
        let all = std::iter::once(&self.nic).chain(self.hosts());
        all.filter(|device| device.kind().interface == Some(Origin::Existing)).cloned().collect()
    }

    /// Returns the interfaces of the run and the changes that the run makes to them.
    pub(super) const fn claim(&self, survey: &Survey) -> Claim<'_> {
        let Self { nic, host, flags: [nic_flag, host_flag], take_over, isolates, .. } = self;
        Claim {
            nic: (nic_flag, nic),
            host: (host_flag, host),
            takes_over: *take_over,
            isolates: *isolates,
            makes_host: survey.makes_host,
        }
    }

    /// Makes the plan from the flags.
    ///
    /// # Errors
    /// If a name, a number or a time is invalid; the message describes valid values.
    pub(super) fn from_flags(flags: &RunFlags) -> Result<Self> {
        let nic = device("--nic", &flags.nic)?;
        let host = device("--host", flags.host.as_deref().unwrap_or_default())?;
        let is_interface = |device: &DeviceName| device.kind().interface.is_some();
        if nic.name() == host.name() && is_interface(&nic) && is_interface(&host) {
            let name = nic.name();
            return Err(usage(format!(
                "--nic {nic} and --host {host} are one interface, `{name}`; give two"
            )));
        }
        can_wait_for(flags.wait_for_nic, "--nic", &nic)?;
        can_upgrade(flags.upgrade.is_some(), "--nic", &nic)?;
        can_upgrade(flags.upgrade.is_some(), "--host", &host)?;
        if flags.take_over {
            can_take_over(&nic, &host)?;
        }
        let workers = WorkersPlan::from_flags(&flags.workers)?;
        workers.check(&[&nic, &host])?;
        if workers.are_several() && (flags.impair.is_some() || flags.impair_back.is_some()) {
            return Err(usage(
                "--impair impairs the traffic of one worker; give --workers 1, or leave it out"
                    .to_owned(),
            ));
        }
        let policy = rules::policy(&flags.policy)?;
        Ok(Self {
            policy: if flags.ack_aggregate { acks::aggregated(policy)? } else { policy },
            workers,
            memory: values::guest_memory(flags, [&nic, &host])?,
            tap: flags.tap.clone(),
            impair: [
                values::impairment("--impair", flags.impair.as_deref())?,
                values::impairment("--impair-back", flags.impair_back.as_deref())?,
            ],
            take_over: flags.take_over,
            wait_for_nic: flags.wait_for_nic,
            isolates: !flags.no_isolation && takes_all([&nic, &host]),
            confirm: flags.confirm.as_deref().map(values::confirm).transpose()?,
            upgrade: flags.upgrade.clone(),
            ..Self::between([("--nic", nic), ("--host", host)], &flags.live)?
                .with_way(&flags.way)?
        })
    }

    /// Makes a plan that forwards frames unchanged between the devices that these flags name.
    ///
    /// # Errors
    /// If a time or a number in `live` is invalid; the message describes valid values.
    pub(super) fn between(
        [nic, host]: [(&'static str, DeviceName); 2],
        live: &LiveFlags,
    ) -> Result<Self> {
        Ok(Self {
            flags: [nic.0, host.0],
            nic: nic.1,
            host: host.1,
            card: None,
            guests: Vec::new(),
            memory: GuestMemory::default(),
            policy: Policy::none(),
            coalesce: Coalesce::On,
            ack_split: None,
            trust_checksums: false,
            stats: values::stats(&live.stats)?,
            workers: WorkersPlan::default(),
            tap: None,
            impair: [None, None],
            take_over: false,
            wait_for_nic: false,
            isolates: true,
            confirm: None,
            addresses: ControlAddresses::from_flags(&live.control)?,
            upgrade: None,
            json: live.json,
            log: live.log.log.into(),
            watchdog: values::watchdog(&live.watchdog)?,
            nice: values::nice(&live.nice)?,
            sandbox: Sandbox::from_flags(&live.sandbox),
        })
    }

    fn with_way(self, way: &WayFlags) -> Result<Self> {
        Ok(Self {
            coalesce: values::coalesce(&way.coalesce)?,
            ack_split: values::ack_split(&way.ack_split)?,
            trust_checksums: way.checksum == ChecksumFlag::Trust,
            ..self
        })
    }
}

fn policy_for_guests(flags: &PolicyFlags) -> Result<Policy> {
    let is_said = flags.hold.is_some() || flags.set.iter().any(|set| set.starts_with("hold="));
    Ok(for_guests(rules::policy(flags)?, is_said))
}

/// Returns the policy for guests: linux-gro holds adaptively unless the user has chosen a hold; every other
/// policy stays unchanged.
pub(super) fn for_guests(policy: Policy, is_hold_said: bool) -> Policy {
    let hold = if policy.name == POLICY && !is_hold_said { Hold::AUTO } else { policy.hold };
    Policy { hold, ..policy }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::flags::{Cli, Command};

    fn plan(line: &str) -> Result<Plan> {
        match Cli::try_parse_from(line.split_whitespace())?.command {
            Command::Run(flags) => Plan::from_flags(&flags),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_is_not_said_has_its_default() {
        let plan = plan("rxo run --nic packet:eth1 --host tap:rxo0").unwrap();
        assert_eq!(plan.policy.name, "linux-gro");
        assert!(!plan.trust_checksums && !plan.json && plan.ack_split.is_none());
        assert_eq!(plan.stats, Some(Duration::from_secs(1)));
    }

    #[test]
    fn pure_acks_are_aggregated_with_any_policy_when_asked() {
        for policy in ["linux-gro", "menon-2008", "gallatin-2007"] {
            let line = format!("rxo run --nic packet:a --host tap:b --policy {policy}");
            let with = plan(&format!("{line} --ack-aggregate")).unwrap().policy;
            assert_eq!(with.pure_acks, rxo_coalesce::PureAckRule::Single);
            let of = plan(&line).unwrap().policy;
            assert_eq!(Policy { pure_acks: of.pure_acks, ..with }, of);
        }
    }

    #[test]
    fn acks_are_split_when_asked() {
        for (flag, every) in [("2", Some(2)), ("64", Some(64)), ("off", None)] {
            let line = format!("rxo run --nic packet:a --host tap:b --ack-split {flag}");
            assert_eq!(plan(&line).unwrap().ack_split, every);
        }
    }

    #[test]
    fn a_time_to_confirm_needs_a_socket_and_is_bounded() {
        let line = "rxo run --nic packet:a --host tap:b --take-over --confirm";
        assert!(plan(&format!("{line} 60s")).is_err(), "nobody could confirm it");
        let with = |time| plan(&format!("{line} {time} --control /run/rxo.sock"));
        assert_eq!(with("60s").unwrap().confirm, Some(Duration::from_secs(60)));
        for time in ["0s", "10ms", "2h", "soon"] {
            let said = with(time).unwrap_err().to_string();
            assert_eq!(
                said,
                format!("--confirm {time}: give a time from 1s to 3600s, such as 60s")
            );
        }
    }

    /// The command lines in the shipped unit of systemd are valid.
    #[test]
    fn the_unit_of_systemd_says_what_rxo_understands() {
        let unit = include_str!("../../../../packaging/rxo@.service");
        let line = |key: &str| {
            let line = unit.lines().find_map(|line| line.strip_prefix(key)).unwrap();
            line.trim_start_matches('-')
                .replace("%I", "eth1")
                .replace("$RXO_OPTIONS", "--hold auto")
        };
        let plan = plan(&line("ExecStart=")).unwrap();
        assert!(plan.take_over && plan.stats.is_none() && plan.watchdog.is_some());
        assert_eq!((plan.nic.name(), plan.host.name()), ("eth1", "rxo-eth1"));
        match Cli::try_parse_from(line("ExecReload=").split_whitespace()).unwrap().command {
            Command::Ctl(flags) => {
                assert_eq!(Some(flags.socket), plan.addresses.control);
                assert_eq!(flags.words, ["reload"]);
            }
            other => panic!("{other:?}"),
        }
        match Cli::try_parse_from(line("ExecStopPost=").split_whitespace()).unwrap().command {
            Command::Run(flags) => assert!(flags.restore && flags.nic == "packet:eth1"),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn no_time_between_lines_means_no_lines() {
        let plan = plan("rxo run --nic packet:eth1 --host tap:rxo0 --stats 0s").unwrap();
        assert_eq!(plan.stats, None);
    }

    #[test]
    fn a_guest_shares_memory_without_holes_unless_they_are_allowed() {
        let plan = |flags: &str| plan(&format!("rxo run --nic packet:a --host vhost:/s {flags}"));
        let shares = |flags: &str| {
            let GuestMemory { most_bytes, may_be_sparse } = plan(flags).unwrap().memory;
            (most_bytes, may_be_sparse)
        };
        assert_eq!(shares(""), (None, false));
        assert_eq!(shares("--memory 2G"), (Some(2 << 30), false));
        assert_eq!(shares("--memory 512M --sparse"), (Some(512 << 20), true));
        let line = "rxo run --nic packet:a --host vhost:/s --sparse";
        assert!(Cli::try_parse_from(line.split_whitespace()).is_err(), "how much?");
    }

    /// A dry run must change nothing, and restoring is a change.
    #[test]
    fn giving_back_goes_with_no_other_request() {
        for flag in ["--dry-run", "--take-over", "--wait-for-nic", "--host tap:b"] {
            let line = format!("rxo run --nic packet:a --restore {flag}");
            assert!(Cli::try_parse_from(line.split_whitespace()).is_err(), "{flag}");
        }
    }

    #[test]
    fn an_invalid_value_is_named_with_valid_ones() {
        let rows = [
            ("--nic eth1 --host tap:rxo0", "--nic"),
            ("--nic packet:a --host tap:a", "--nic packet:a and --host tap:a are one interface"),
            ("--nic packet:a --host tap:b --stats 1d", "--stats 1d: give a time from 100ms"),
            ("--nic packet:a --host tap:b --impair loss=1", "--impair loss=1: give a share"),
            ("--nic packet:a --host tap:b --impair-back x", "--impair-back x: give loss=1%"),
            (
                "--nic packet:a --host tap:b --ack-aggregate --policy none",
                "--ack-aggregate does nothing with policy none",
            ),
            ("--nic packet:a --host tap:b --coalesce yes", "--coalesce yes: give auto, on or off"),
            ("--nic packet:a --host tap:b --ack-split 0", "--ack-split 0: give 2, or another"),
            ("--nic packet:a --host tap:b --ack-split on", "--ack-split on: give 2, or another"),
            ("--nic tap:a --host tap:b --take-over", "--take-over moves what a nic has to a TAP"),
            ("--nic packet:a --host packet:b --take-over", "--take-over moves what a nic has"),
            ("--nic packet:a --host tun:b --take-over", "--take-over moves what a nic has"),
            ("--nic tap:a --host tap:b --wait-for-nic", "--wait-for-nic waits for a nic, which"),
            ("--nic packet:a --host tap:b --watchdog 10ms", "--watchdog 10ms: give a time from"),
            ("--nic packet:a --host tap:b --nice -21", "--nice -21: give a number from -20 to 19"),
            ("--nic packet:a --host tap:b --policy x", "--policy x: there is no policy"),
            ("--nic packet:a --host tap:b --memory 2G", "--memory bounds what a guest shares, and"),
            (
                "--nic packet:a --host vhost:/s --memory 0",
                "--memory 0 is no size; give one such as",
            ),
            ("--nic packet:a --host vhost:/s --workers 2", "--workers 2: vhost:/s has one queue"),
            (
                "--nic packet:a --host tap:b --workers 2 --impair loss=1%",
                "--impair impairs the traffic of one worker; give --workers 1",
            ),
        ];
        for (flags, message) in rows {
            let error = plan(&format!("rxo run {flags}")).unwrap_err();
            assert!(error.to_string().starts_with(message), "{error:#}");
        }
    }
}
