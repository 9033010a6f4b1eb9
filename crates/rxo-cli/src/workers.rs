//! `--workers` and `--cpus`: the number of workers that share the devices, and the processors on which they
//! run.

use std::thread;

use anyhow::Result;
use rxo_driver::{DeviceName, Interface, KINDS, Origin, may_use_cpu};

use crate::exit::usage;
use crate::flags::WorkersFlags;

/// The number of workers and their processors, as requested by the flags.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WorkersPlan {
    /// The number of workers; `None` for `auto`.
    count: Option<u32>,
    /// The processors to which the workers are bound, in the order of the workers; empty if they are not
    /// bound.
    cpus: Vec<u16>,
}

impl Default for WorkersPlan {
    /// Returns the plan of a single worker that is not bound.
    fn default() -> Self {
        Self { count: Some(1), cpus: Vec::new() }
    }
}

/// The workers of a run, after `auto` was resolved.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Workers {
    pub(crate) count: u32,
    /// The processor of each worker; empty if the workers are not bound.
    pub(crate) cpus: Vec<u16>,
}

impl WorkersPlan {
    /// Makes the plan from the flags.
    ///
    /// # Errors
    /// If a number is invalid, or there are fewer processors than workers.
    pub(crate) fn from_flags(flags: &WorkersFlags) -> Result<Self> {
        let text = &flags.workers;
        let count = match text.parse() {
            _ if text == "auto" => None,
            Ok(count) if (1..=MOST).contains(&count) => Some(count),
            _ => {
                return Err(usage(format!(
                    "--workers {text}: give a number from 1 to {MOST}, or auto"
                )));
            }
        };
        let cpus = flags.cpus.as_deref().map(cpus).transpose()?.unwrap_or_default();
        if let (Some(count), Some(text)) = (count, &flags.cpus)
            && cpus.len() < count as usize
        {
            let found = cpus.len();
            return Err(usage(format!(
                "--cpus {text}: {found} processors for {count} workers; give one for each"
            )));
        }
        Ok(Self { count, cpus })
    }

    /// Returns `true` if the flags request several workers. Returns `false` for `auto`, although `auto` may
    /// choose several workers.
    pub(crate) fn are_several(&self) -> bool {
        self.count.is_some_and(|count| count > 1)
    }

    /// Checks that several workers can share each of `devices`, and that they may use their processors.
    ///
    /// # Errors
    /// If a device has a single queue, or this process may not use a processor. The message names the first
    /// such device or processor.
    pub(crate) fn check(&self, devices: &[&DeviceName]) -> Result<()> {
        let used = self.cpus.iter().take(self.count.unwrap_or(MOST) as usize);
        if let Some(cpu) = used.copied().find(|&cpu| !may_use_cpu(cpu)) {
            return Err(usage(format!(
                "--cpus: cannot bind a worker to processor {cpu}; `nproc` counts those that may be used"
            )));
        }
        let single = devices.iter().find(|device| !device.kind().has_queues());
        match (self.count, single) {
            (Some(count @ 2..), Some(device)) => {
                let kinds = KINDS.iter().filter(|kind| kind.has_queues());
                let kinds: Vec<_> =
                    kinds.map(|kind| format!("{}:{}", kind.prefix, kind.placeholder)).collect();
                let kinds = kinds.join(", ");
                Err(usage(format!(
                    "--workers {count}: {device} has one queue; give 1, or use {kinds}"
                )))
            }
            _ => Ok(()),
        }
    }

    /// Returns the workers of a run between `devices`; the first is the nic. For `auto`, queries the system;
    /// the number of workers is then 1 if the nic does not report its number of queues, or if another device
    /// has only one queue.
    pub(crate) fn resolve(&self, devices: &[&DeviceName]) -> Workers {
        let count = self.count.unwrap_or_else(|| {
            let queues = devices.first().and_then(|nic| queues(nic)).unwrap_or(1);
            let can = devices.iter().all(|device| device.kind().has_queues());
            let processors = match self.cpus.len() {
                0 => thread::available_parallelism().map_or(1, usize::from),
                bound => bound,
            };
            let most = if can { u32::try_from(processors).unwrap_or(MOST).min(MOST) } else { 1 };
            queues.clamp(1, most)
        });
        Workers { count, cpus: self.cpus.iter().take(count as usize).copied().collect() }
    }
}

impl Workers {
    /// Returns `true` if several workers share the devices.
    pub(crate) const fn are_several(&self) -> bool {
        self.count > 1
    }
}

/// Returns the number of receive queues of an interface that rxo does not create; `None` if the interface does
/// not report it.
fn queues(nic: &DeviceName) -> Option<u32> {
    let exists = nic.kind().interface == Some(Origin::Existing);
    exists.then(|| Interface::find(nic.name()).ok()?.receive_queues()).flatten()
}

/// Reads a list of processors, such as `2-5` or `1,3`.
fn cpus(text: &str) -> Result<Vec<u16>> {
    let wrong = || usage(format!("--cpus {text}: give processors such as 2-5 or 1,3, each once"));
    let mut all = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u16, u16) =
            first.parse().ok().zip(last.parse().ok()).ok_or_else(wrong)?;
        if first > last || last >= MOST_CPUS || (first..=last).any(|cpu| all.contains(&cpu)) {
            return Err(wrong());
        }
        all.extend(first..=last);
    }
    Ok(all)
}

/// Maximum number of workers; more would waste memory for rings on any current machine.
const MOST: u32 = 64;
/// Maximum number of processors of a Linux system.
const MOST_CPUS: u16 = 8_192;

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(workers: &str, cpus: Option<&str>) -> Result<WorkersPlan> {
        let (workers, cpus) = (workers.to_owned(), cpus.map(str::to_owned));
        WorkersPlan::from_flags(&WorkersFlags { workers, cpus })
    }

    #[test]
    fn each_worker_has_a_processor_if_any_has() {
        let bound = plan("2", Some("4-6,1")).unwrap();
        let devices = ["packet:eth1".parse().unwrap(), "tap:rxo0".parse().unwrap()];
        let workers = bound.resolve(&[&devices[0], &devices[1]]);
        assert_eq!(workers, Workers { count: 2, cpus: vec![4, 5] });
        assert!(bound.are_several() && workers.are_several());
        assert_eq!(plan("1", None).unwrap(), WorkersPlan::default());
    }

    #[test]
    fn an_automatic_number_is_one_where_several_cannot_be() {
        let auto = plan("auto", None).unwrap();
        let [guest, tap]: [DeviceName; 2] = ["vhost:/s", "tap:b"].map(|name| name.parse().unwrap());
        assert_eq!(auto.resolve(&[&tap, &guest]).count, 1);
        assert_eq!(auto.resolve(&[&tap, &tap]).count, 1, "a TAP has as many as are asked for");
        assert!(auto.check(&[&guest]).is_ok() && !auto.are_several());
        let said = plan("2", None).unwrap().check(&[&tap, &guest]).unwrap_err().to_string();
        assert_eq!(
            said,
            "--workers 2: vhost:/s has one queue; give 1, or use packet:IFNAME, tap:NAME, tun:NAME"
        );
    }

    #[test]
    fn a_processor_that_may_not_be_used_is_refused_in_the_order_of_the_list() {
        let nic = "packet:eth1".parse().unwrap();
        for (list, first) in [("8190-8191", 8190), ("8191,8190", 8191)] {
            let said = plan("2", Some(list)).unwrap().check(&[&nic]).unwrap_err().to_string();
            let expected = format!("--cpus: cannot bind a worker to processor {first}; `nproc`");
            assert!(said.starts_with(&expected), "{said}");
        }
    }

    #[test]
    fn an_invalid_value_is_named_with_valid_ones() {
        let rows = [
            ("0", None, "--workers 0: give a number from 1 to 64, or auto"),
            ("65", None, "--workers 65: give a number"),
            ("many", None, "--workers many: give a number"),
            ("3", Some("0-1"), "--cpus 0-1: 2 processors for 3 workers; give one for each"),
            ("1", Some("3-2"), "--cpus 3-2: give processors such as 2-5 or 1,3, each once"),
            ("1", Some("1,1"), "--cpus 1,1: give processors"),
            ("1", Some("1-9000"), "--cpus 1-9000: give processors"),
            ("1", Some(""), "--cpus : give processors"),
        ];
        for (workers, cpus, message) in rows {
            let said = plan(workers, cpus).unwrap_err().to_string();
            assert!(said.starts_with(message), "{said}");
        }
    }
}
