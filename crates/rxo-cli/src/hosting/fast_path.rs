//! The meaning of `--fast-path`, `--filter` and `--account-by`, and the fast path's lines in the totals.

use anyhow::Result;
use rxo_console::numbers::grouped;
use rxo_host::{Account, FallbackReason, FastCounters, FastModules, FastPath, FilterRule};
use serde::Serialize;

use crate::exit::usage;
use crate::flags::{AccountFlag, HostFlags};

/// Makes the fast path from the flags. Rules turn the filter on.
///
/// # Errors
/// If a module or a rule is invalid, or a flag would have no effect.
pub(super) fn from_flags(flags: &HostFlags) -> Result<FastPath> {
    let mut modules = flags
        .fast_path
        .parse::<FastModules>()
        .map_err(|error| usage(format!("--fast-path {}: {error}", flags.fast_path)))?;
    let rule = |text: &String| {
        text.parse::<FilterRule>().map_err(|error| usage(format!("--filter {error}")))
    };
    let filter = flags.filter.iter().map(rule).collect::<Result<Vec<_>>>()?;
    if !filter.is_empty() {
        modules = modules.with(FastModules::FILTER);
    }
    if modules.has(FastModules::FILTER) && filter.is_empty() {
        return Err(usage(format!(
            "--fast-path {}: the filter has no rule; add one, such as --filter \"drop from 10.0.0.0/8\"",
            flags.fast_path
        )));
    }
    let account_by_flow = flags.account_by == AccountFlag::Flow;
    if account_by_flow && !modules.has(FastModules::ACCOUNTING) {
        return Err(usage("--account-by flow: nothing has accounts; add --fast-path accounting"));
    }
    Ok(FastPath { modules, filter, account_by_flow, ..FastPath::default() })
}

/// The totals of the fast path, as JSON: for a command's totals and for answers of `rxo ctl`.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct FastTotals {
    /// The names of the modules that are on.
    modules: String,
    consumed: u64,
    duplicates: u64,
    /// The number of calls to connections; one call passes all consumed ACKs of a connection in a batch.
    calls: u64,
    /// The number of consumed ACKs that were read in the device's memory, without taking a buffer.
    unseen: u64,
    /// The number of frames that the fast path passed to the stack, by reason.
    fallback: serde_json::Map<String, serde_json::Value>,
    ring: Ring,
    filtered: u64,
    syn_flood: SynFlood,
    /// The accounts with the most bytes.
    accounts: Vec<OneAccount>,
}

/// Counters of the ACKs that waited in a ring while an application held a connection's lock.
#[derive(Clone, Copy, Debug, Serialize)]
struct Ring {
    pushed: u64,
    overwritten: u64,
    most: u32,
    refused: u64,
}

#[derive(Clone, Debug, Serialize)]
struct SynFlood {
    syns: u64,
    half_open: u64,
    alarms: u64,
    /// The network that has the most half-open connections now; null if no network has any.
    worst: Option<Worst>,
}

#[derive(Clone, Debug, Serialize)]
struct Worst {
    network: String,
    half_open: u64,
}

#[derive(Clone, Debug, Serialize)]
struct OneAccount {
    /// The network or flow of the account; "others" for the sum of all frames that were counted in no account
    /// because the table was full.
    of: String,
    frames: u64,
    bytes: u64,
    acks: u64,
}

impl FastTotals {
    /// Returns the totals of the fast path from its counters; `None` if no module was ever on.
    pub(crate) fn of(counters: &FastCounters) -> Option<Self> {
        let looked = counters.consumed + counters.filtered + counters.fallbacks();
        (counters.modules != FastModules::OFF || looked > 0).then(|| Self::shown(counters))
    }

    /// Returns the totals of the fast path from its counters, even if no module was ever on.
    pub(crate) fn shown(counters: &FastCounters) -> Self {
        let FastCounters { modules, consumed, duplicates, calls, unseen, filtered, .. } = *counters;
        let reason =
            |reason: FallbackReason| (reason.name().to_owned(), counters.fallback(reason).into());
        Self {
            modules: modules.to_string(),
            consumed,
            duplicates,
            calls,
            unseen,
            fallback: FallbackReason::ALL.iter().copied().map(reason).collect(),
            ring: Ring {
                pushed: counters.ring_pushed,
                overwritten: counters.ring_overwritten,
                most: counters.ring_most,
                refused: counters.ring_refused,
            },
            filtered,
            syn_flood: SynFlood::of(counters),
            accounts: counters.accounts.iter().copied().map(OneAccount::of).collect(),
        }
    }

    /// Formats the totals as lines of text.
    pub(crate) fn text(&self) -> String {
        let Self { modules, consumed, duplicates, calls, unseen, fallback, ring, .. } = self;
        let reasons: Vec<_> = fallback
            .iter()
            .filter_map(|(name, count)| count.as_u64().filter(|count| *count > 0).zip(Some(name)))
            .map(|(count, name)| format!("{} {name}", grouped(count)))
            .collect();
        let others = if reasons.is_empty() { "none".to_owned() } else { reasons.join(", ") };
        let mut text = format!(
            "fast path ({modules}): {} ACKs ({} duplicates) in {} calls, {} without a buffer; the ordinary way: {others}",
            grouped(*consumed),
            grouped(*duplicates),
            grouped(*calls),
            grouped(*unseen),
        );
        if ring.pushed + ring.refused > 0 {
            text.push_str(&format!(
                "\nring     {} ACKs waited, {} at most, {} overwritten, {} in the backlog",
                grouped(ring.pushed),
                ring.most,
                grouped(ring.overwritten),
                grouped(ring.refused),
            ));
        }
        if self.filtered > 0 {
            text.push_str(&format!("\nfilter   {} frames dropped", grouped(self.filtered)));
        }
        if self.syn_flood.syns > 0 {
            let SynFlood { syns, half_open, alarms, .. } = &self.syn_flood;
            text.push_str(&format!(
                "\nSYNs     {syns}, {half_open} half open now, {alarms} alarms"
            ));
        }
        for OneAccount { of, frames, bytes, acks } in &self.accounts {
            let (frames, bytes, acks) = (grouped(*frames), grouped(*bytes), grouped(*acks));
            text.push_str(&format!("\naccount  {of}: {frames} frames, {bytes} bytes, {acks} ACKs"));
        }
        text
    }
}

impl SynFlood {
    fn of(counters: &FastCounters) -> Self {
        let FastCounters { syns, half_open, syn_alarms: alarms, .. } = *counters;
        let worst = counters
            .worst_network
            .map(|(network, half_open)| Worst { network: network.to_string(), half_open });
        Self { syns, half_open, alarms, worst }
    }
}

impl OneAccount {
    fn of(account: Account) -> Self {
        let Account { name, frames, bytes, acks } = account;
        let of = match name {
            None => "others".to_owned(),
            Some((network, None)) => network.to_string(),
            Some((_, Some(key))) => format!("{} to {}", key.sender(), key.receiver()),
        };
        Self { of, frames, bytes, acks }
    }
}

#[cfg(test)]
mod tests {
    use rxo_host::FastModules;

    use super::*;

    /// Returns the message with which `flags` are refused.
    fn refused(flags: HostFlags) -> String {
        let fast_path = if flags.fast_path.is_empty() { "off" } else { &flags.fast_path };
        let flags = HostFlags { fast_path: fast_path.to_owned(), ..flags };
        from_flags(&flags).unwrap_err().to_string()
    }

    #[test]
    fn a_flag_without_effect_is_refused_with_its_remedy() {
        let filter = HostFlags { fast_path: "pure-ack,filter".to_owned(), ..HostFlags::default() };
        assert!(refused(filter).contains("add one, such as --filter"));
        let by_flow = HostFlags { account_by: AccountFlag::Flow, ..HostFlags::default() };
        assert!(refused(by_flow.clone()).contains("add --fast-path accounting"));
        let accounting = HostFlags { fast_path: "accounting".to_owned(), ..by_flow };
        assert!(from_flags(&accounting).unwrap().account_by_flow);
        let (fast_path, filter) = ("off".to_owned(), vec!["drop from port 53".to_owned()]);
        let rules = HostFlags { fast_path, filter, ..HostFlags::default() };
        assert!(from_flags(&rules).unwrap().modules.has(FastModules::FILTER), "rules turn it on");
    }

    #[test]
    fn what_was_never_on_is_not_mentioned() {
        assert!(FastTotals::of(&FastCounters::default()).is_none());
    }

    #[test]
    fn totals_name_what_took_the_ordinary_way_and_why() {
        let mut counters = FastCounters {
            modules: FastModules::PURE_ACK,
            consumed: 12_000,
            duplicates: 3,
            calls: 300,
            unseen: 12_000,
            ..FastCounters::default()
        };
        counters.fallbacks[FallbackReason::Order as usize] = 7;
        let totals = FastTotals::of(&counters).unwrap();
        assert_eq!(
            totals.text(),
            "fast path (pure-ack): 12,000 ACKs (3 duplicates) in 300 calls, 12,000 without a buffer; the ordinary way: 7 order"
        );
        let json = serde_json::to_value(&totals).unwrap();
        assert_eq!((&json["fallback"]["order"], &json["ring"]["pushed"]), (&7.into(), &0.into()));
    }
}
