//! Reloads the configuration file (`--config`) during a run.
//!
//! The keeper process opens the file, because this process may lack the permission. [`decide`] compares the flags; the
//! worker changes policy and interval between two turns, as for `rxo ctl`, so no frame is lost. A reload is all or
//! nothing: a flag that needs a restart, an invalid file, or a policy that does not fit the sink changes nothing.

use std::fs::File;
use std::io;
use std::sync::mpsc::{self, Receiver};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Error, Result};
use rxo_console::log::{self, Level};
use rxo_driver::custody::{Reload as Order, ReloadAsker};
use serde_json::{Value, json};

use super::plan::Plan;
use super::remote::Remote;
use super::survey::Survey;
use crate::config::{Settings, Source};
use crate::control::{Engines, NEXT_TURN, Refusal, Reload, Stats};
use crate::exit::one_line;

/// The configuration file of a run, and the flags with which the run began.
#[derive(Clone, Debug)]
pub(super) struct FileOfRun {
    pub(super) source: Source,
    pub(super) settings: Settings,
}

/// Reads the configuration file again on request, and applies the changes to the run.
#[derive(Debug)]
pub(super) struct Reloader {
    source: Source,
    survey: Survey,
    remote: Remote,
    /// The flags that apply to the run now. The lock is held while the flags change.
    follows: Mutex<Settings>,
}

impl Reloader {
    pub(super) fn new(file: FileOfRun, survey: Survey, remote: Remote) -> Self {
        let follows = Mutex::new(file.settings);
        Self { source: file.source, survey, remote, follows }
    }

    /// Starts a thread that reloads the file on each request. Returns the function that answers `rxo ctl SOCKET
    /// reload`. The result of a reload by SIGHUP is logged.
    ///
    /// # Errors
    /// If no thread can be started.
    pub(super) fn follow(self, (orders, asker): (Receiver<Order>, ReloadAsker)) -> Result<Reload> {
        let (answer, answers) = mpsc::channel();
        let follow = move || {
            for order in orders {
                let followed = self.reload(order.file);
                if order.is_asked {
                    // A client that has waited too long has already got an answer.
                    _ = answer.send(followed);
                } else if let Err(Refusal(line)) = followed {
                    log::write(Level::Warning, &line);
                }
            }
        };
        let thread = thread::Builder::new().name("rxo-reload".to_owned()).spawn(follow);
        thread.context("cannot start a thread that reads --config again")?;
        Ok(Box::new(move || ask(&asker, &answers)))
    }

    fn reload(&self, file: io::Result<File>) -> Result<Value, Refusal> {
        let mut follows = self.follows.lock().unwrap_or_else(PoisonError::into_inner);
        let loaded = self.source.read(file).map_err(refusal)?;
        let file = self.source.path().display().to_string();
        let mut changed = decide(&follows, &loaded.settings).map_err(|keys| {
            let keys = keys.join(", ");
            Refusal(format!(
                "{file}: nothing is changed, because these follow only a start: {keys}; restart the run, or take them back"
            ))
        })?;
        let locate = |error| refusal(loaded.locate(error));
        let mut plan = Plan::from_flags(&loaded.flags).map_err(locate)?;
        plan.policy = self.survey.carried(&plan).map_err(locate)?;
        let moment = self.change(&plan, &mut changed)?;
        *follows = loaded.settings;
        let what = if changed.is_empty() { "nothing".to_owned() } else { changed.join(", ") };
        log::write(Level::Notice, &format!("{file} was read again; changed: {what}"));
        Ok(json!({ "file": file, "changed": changed, "takes_effect": moment }))
    }

    /// Makes the worker follow `plan`. Returns a message for the user, which states when the change takes
    /// effect. Changes by `rxo ctl` since the last reload are undone, and their flags are added to `changed`.
    fn change(&self, plan: &Plan, changed: &mut Vec<String>) -> Result<String, Refusal> {
        let mut name = |key: &str, is_among: &[&str]| {
            if !changed.iter().any(|one| is_among.contains(&one.as_str())) {
                changed.push(key.to_owned());
            }
        };
        let before = self.remote.policy();
        let mut moment = NEXT_TURN.to_owned();
        if before != plan.policy {
            moment = Engines::change(&self.remote, plan.policy)?;
            name("policy", &POLICY);
        }
        if self.remote.stats() != plan.stats {
            let followed = Stats::change(&self.remote, plan.stats);
            // All or nothing: the policy is restored if the interval cannot change. If the worker has ended,
            // neither matters.
            followed.inspect_err(|_| _ = Engines::change(&self.remote, before))?;
            name("stats", &["stats"]);
        }
        Ok(moment)
    }
}

/// Returns the long names of the flags that differ between `before` and `now`, if all these changes can be
/// applied without a restart.
///
/// # Errors
/// The names of the changed flags that need a restart.
fn decide(before: &Settings, now: &Settings) -> Result<Vec<String>, Vec<String>> {
    let keys = before.keys().chain(now.keys().filter(|key| !before.contains_key(*key)));
    let changed = keys.filter(|key| before.get(*key) != now.get(*key)).cloned();
    let can_follow = |key: &String| key == "stats" || POLICY.contains(&key.as_str());
    let (live, others): (Vec<_>, Vec<_>) = changed.partition(can_follow);
    if others.is_empty() { Ok(live) } else { Err(others) }
}

/// Asks the keeper to open the file, and waits until the run has applied the file. Returns the answer to the
/// client.
fn ask(asker: &ReloadAsker, answers: &Receiver<Result<Value, Refusal>>) -> Result<Value, Refusal> {
    // Discards an answer that came too late for an earlier client.
    while answers.try_recv().is_ok() {}
    let late = "the file was not read in time; ask again";
    asker.ask().map_err(|_| "the run is ending")?;
    answers.recv_timeout(RELOAD_TIMEOUT).map_err(|_| late)?
}

fn refusal(error: Error) -> Refusal {
    Refusal(one_line(&error))
}

/// Timeout of a reload, longer than a worker takes to answer a question.
const RELOAD_TIMEOUT: Duration = Duration::from_secs(5);
/// Long names of the flags that determine the policy.
const POLICY: [&str; 4] = ["policy", "set", "hold", "ack-aggregate"];

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(all: &[(&str, &str)]) -> Settings {
        all.iter().map(|(key, value)| ((*key).to_owned(), vec![(*value).into()])).collect()
    }

    #[test]
    fn a_run_follows_all_that_has_changed_or_nothing() {
        let before = settings(&[("nic", "packet:a"), ("stats", "1s"), ("hold", "auto")]);
        let with = |change: &[(&str, &str)]| {
            let mut now = before.clone();
            now.extend(settings(change));
            decide(&before, &now)
        };
        let names = |all: &[&str]| all.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
        assert_eq!(with(&[]), Ok(Vec::new()));
        assert_eq!(with(&[("hold", "1us"), ("stats", "2s")]), Ok(names(&["hold", "stats"])));
        assert_eq!(with(&[("set", "flows=8"), ("policy", "none")]), Ok(names(&["policy", "set"])));
        assert_eq!(with(&[("hold", "1us"), ("nic", "packet:b")]), Err(names(&["nic"])));
        assert_eq!(with(&[("tap", "a.pcap"), ("log", "json")]), Err(names(&["log", "tap"])));
        // A flag that was removed counts as changed.
        let mut less = before.clone();
        less.remove("hold");
        assert_eq!(decide(&before, &less), Ok(names(&["hold"])));
        less.remove("nic");
        assert_eq!(decide(&before, &less), Err(names(&["nic"])));
    }
}
