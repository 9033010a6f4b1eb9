//! The plan of `rxo cast send`, from its flags.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Result, bail};
use rxo::live::host::{CAST_BUFFER_BYTES, cast_sender};
use rxo::tcp::{Control, Late, Repairs, Slow};
use rxo_host::{CastConfig, HostConfig};

use super::addresses;
use crate::exit::usage;
use crate::flags::CastSendFlags;
use crate::hosting::HostPlan;
use crate::numbers::{parse_bytes, parse_time};

/// The work of `rxo cast send`, and the settings of its host and cast.
pub(super) struct Plan {
    pub(super) host: HostPlan,
    pub(super) config: CastConfig,
    /// Number of receivers for which the sender waits before it begins.
    pub(super) receivers: usize,
    pub(super) wait: Duration,
    pub(super) json: bool,
}

impl Plan {
    /// Makes the plan from the flags.
    ///
    /// # Errors
    /// If a flag is invalid.
    pub(super) fn from_flags(flags: &CastSendFlags) -> Result<Self> {
        let host = HostPlan::from_flags(&flags.host)?;
        let Some(ip) = host.addresses().next() else { bail!("there is no --ip") };
        let source = SocketAddr::new(ip, flags.port).to_string();
        let (local, group) = addresses::channel(&source, &flags.group)?;
        if flags.port == u16::MAX && !flags.raw {
            let message = "the sender answers on the next port, too; choose 1 to 65534";
            return Err(usage(format!("--port {}: {message}", flags.port)));
        }
        let wait = parse_time(&flags.wait)
            .ok_or_else(|| usage(format!("--wait {}: give a time such as 30s", flags.wait)))?;
        let receivers = receivers(flags.receivers)?;
        let (late, late_time) = late(&flags.late, flags.raw)?;
        // A restarted receiver joins again before its old connection has failed, so it occupies two slots.
        let at_a_time = (2 * receivers).min(MOST_RECEIVERS);
        let config = CastConfig {
            local,
            group,
            receivers: at_a_time,
            slow: slow(&flags.slow)?,
            late,
            late_time,
            repairs: repairs(&flags.repair, flags)?,
            control: pace(&flags.pace)?,
            buffer_bytes: CAST_BUFFER_BYTES,
        };
        Ok(Self { host, config, receivers, wait, json: flags.json })
    }

    /// Sets the time limit of late receivers for a file of `bytes` bytes, unless the flags set a limit.
    pub(super) fn set_file_bytes(&mut self, bytes: u64) {
        self.config.late_time.get_or_insert(late_time(bytes));
    }

    /// Adapts the settings of the sender's host to a cast, with a socket for each receiver.
    pub(super) fn configure(&self, config: &mut HostConfig) {
        cast_sender(config);
        config.sockets = config.sockets.max(self.config.receivers + MORE_SOCKETS);
    }
}

fn receivers(number: usize) -> Result<usize> {
    let is_valid = (1..=MOST_RECEIVERS).contains(&number);
    let wrong = || usage(format!("--receivers {number}: choose 1 to {MOST_RECEIVERS}"));
    is_valid.then_some(number).ok_or_else(wrong)
}

fn slow(text: &str) -> Result<Slow> {
    let (eject, least) =
        text.split_once(',').map_or((text, None), |(eject, least)| (eject, Some(least)));
    let time = eject.strip_prefix("eject:").and_then(parse_time).filter(|time| !time.is_zero());
    let rate = least.map(|least| least.strip_prefix("least:").and_then(parse_bytes));
    match (time, rate) {
        (None, None) if text == "wait" => Ok(Slow::Wait),
        (Some(time), None) => Ok(Slow::Eject(time)),
        (Some(time), Some(Some(rate))) => {
            Ok(Slow::EjectBelow { time, bytes: (rate as f64 * time.as_secs_f64()) as u64 })
        }
        _ => Err(usage(format!(
            "--slow {text}: choose wait, or eject:TIME such as eject:10s, or eject:10s,least:100k"
        ))),
    }
}

/// Parses `--late`. Returns the treatment of late receivers, and the time limit that all late receivers share;
/// `None` if the user has given no limit.
fn late(text: &str, is_raw: bool) -> Result<(Late, Option<Duration>)> {
    let (how, time) =
        text.split_once(':').map_or((text, None), |(how, time)| (how, Some(parse_time(time))));
    match (how, time) {
        ("from-now", None | Some(Some(_))) if !is_raw => {
            Err(usage(format!("--late {text}: a part is no file; use it with --raw")))
        }
        ("refuse", None) => Ok((Late::Refuse, None)),
        ("catch-up", None) => Ok((Late::CatchUp, None)),
        ("catch-up", Some(Some(time))) => Ok((Late::CatchUp, Some(time))),
        ("from-now", None) => Ok((Late::FromNow, None)),
        ("from-now", Some(Some(time))) => Ok((Late::FromNow, Some(time))),
        _ => Err(usage(format!(
            "--late {text}: choose refuse, catch-up or from-now, or catch-up:TIME such as catch-up:600s"
        ))),
    }
}

/// Returns the default time limit of late receivers: enough for one late receiver to fetch `bytes` bytes over a
/// slow link.
fn late_time(bytes: u64) -> Duration {
    Duration::from_secs(60 + bytes / LATE_BYTES_A_SECOND)
}

/// Parses `--repair`. With `auto` the other flags decide.
fn repairs(text: &str, flags: &CastSendFlags) -> Result<Repairs> {
    let least = text.strip_prefix("group:").and_then(|least| least.parse().ok());
    match (text, least.filter(|least| *least >= 2)) {
        ("auto", _) => Ok(best_repairs(flags)),
        ("parity", _) => Ok(Repairs::Parity),
        ("each", _) => Ok(Repairs::Each),
        (_, Some(least)) => Ok(Repairs::Group { least }),
        _ => Err(usage(format!(
            "--repair {text}: choose auto, parity, each, or group:N with N of at least 2"
        ))),
    }
}

/// Returns the way of repair that takes the least time. Receivers of a raw stream are mostly behind `rxo cast join`,
/// and cannot use parity packets; the paper has none.
fn best_repairs(flags: &CastSendFlags) -> Repairs {
    if flags.raw || flags.pace == "paper" {
        Repairs::Group { least: 2 }
    } else {
        Repairs::best_for(flags.receivers)
    }
}

fn pace(text: &str) -> Result<Control> {
    match text {
        "leader" => Ok(Control::Leader),
        "paper" => Ok(Control::Paper),
        _ => Err(usage(format!("--pace {text}: choose leader or paper"))),
    }
}

const MOST_RECEIVERS: usize = 65_536;
/// Number of sockets in addition to one per receiver: for connections that are opening, refused, or just ended.
const MORE_SOCKETS: usize = 1_024;
/// Assumed rate at which a late receiver receives the file, in bytes per second.
const LATE_BYTES_A_SECOND: u64 = 10_000_000;

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::flags::{CastCommand, Cli, Command};

    fn plan(rest: &str) -> Result<Plan> {
        let line = format!(
            "rxo cast send a.img --nic packet:eth0 --ip 10.0.0.1/24 --group 232.1.1.1:7000 {rest}"
        );
        match Cli::try_parse_from(line.split_whitespace())?.command {
            Command::Cast(flags) => match &flags.command {
                CastCommand::Send(flags) => Plan::from_flags(flags),
                other => panic!("{other:?}"),
            },
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn twice_as_many_can_join_as_are_waited_for() {
        let rows = [
            ("--receivers 1", 1, 2),
            ("--receivers 168 --late catch-up", 168, 336),
            ("--receivers 40000 --late catch-up", 40_000, 65_536),
            ("--receivers 65536 --raw --late from-now", 65_536, 65_536),
        ];
        for (flags, waited_for, at_a_time) in rows {
            let plan = plan(flags).unwrap();
            assert_eq!((plan.receivers, plan.config.receivers), (waited_for, at_a_time), "{flags}");
            let mut config = HostConfig::new(Vec::new(), [1, 2]);
            plan.configure(&mut config);
            assert!(config.sockets >= at_a_time, "{flags}: {} sockets", config.sockets);
        }
        for number in ["0", "65537"] {
            let said = plan(&format!("--receivers {number}")).err().unwrap().to_string();
            assert_eq!(said, format!("--receivers {number}: choose 1 to 65536"));
        }
    }

    #[test]
    fn parity_is_for_many_receivers_that_can_use_it() {
        let repairs = |rest: &str| plan(&format!("--receivers {rest}")).unwrap().config.repairs;
        let segments = Repairs::Group { least: 2 };
        for (flags, expected) in [
            ("31", segments),
            ("32", Repairs::Parity),
            ("168", Repairs::Parity),
            ("168 --raw", segments),
            ("168 --pace paper", segments),
            ("168 --repair each", Repairs::Each),
            ("168 --repair group:3", Repairs::Group { least: 3 }),
            ("2 --raw --repair parity", Repairs::Parity),
        ] {
            assert_eq!(repairs(flags), expected, "{flags}");
        }
    }

    #[test]
    fn words_are_read_and_mistakes_named() {
        assert_eq!(slow("wait").unwrap(), Slow::Wait);
        assert_eq!(slow("eject:3s").unwrap(), Slow::Eject(Duration::from_secs(3)));
        assert_eq!(late("catch-up", false).unwrap(), (Late::CatchUp, None));
        assert_eq!(late("from-now", true).unwrap(), (Late::FromNow, None));
        let said = Some(Duration::from_secs(600));
        assert_eq!(late("catch-up:600s", false).unwrap(), (Late::CatchUp, said));
        assert_eq!(late("from-now:600", true).unwrap(), (Late::FromNow, said));
        assert_eq!(late_time(10_000_000_000), Duration::from_secs(1_060));
        for wrong in ["refuse:5s", "catch-up:", "catch-up:-1s", "from-now:soon", "never"] {
            let said = late(wrong, true).unwrap_err().to_string();
            assert!(
                said.starts_with(&format!("--late {wrong}: choose refuse, catch-up")),
                "{said}"
            );
        }
        assert_eq!(pace("leader").unwrap(), Control::default());
        assert_eq!(pace("paper").unwrap(), Control::Paper);
        let said = pace("tcp").unwrap_err().to_string();
        assert_eq!(said, "--pace tcp: choose leader or paper");
        let least = Slow::EjectBelow { time: Duration::from_secs(5), bytes: 500_000 };
        assert_eq!(slow("eject:5s,least:100k").unwrap(), least);
        for wrong in ["wait,least:100k", "eject:5s,most:1", "eject:5s,least:", "least:100k"] {
            assert!(slow(wrong).is_err(), "{wrong}");
        }
        let said = slow("eject:0s").unwrap_err().to_string();
        assert!(said.starts_with("--slow eject:0s: choose wait, or eject:TIME"), "{said}");
        let said = late("from-now", false).unwrap_err().to_string();
        assert!(said.contains("use it with --raw"), "{said}");
        let said = plan("--receivers 2 --repair group:1").err().unwrap().to_string();
        assert!(said.contains("N of at least 2"), "{said}");
    }
}
