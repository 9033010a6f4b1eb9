//! `--fast-path`, `--filter` and `--account-by`: what they mean, and what the totals say.

use anyhow::Result;
use rxo_console::numbers::grouped;
use rxo_host::{
    Account, AccountBy, AccountName, FallbackReason, FastCounters, FastModule, FastPath,
    FilterRule, HalfOpen,
};
use serde::Serialize;

use crate::exit::usage;
use crate::flags::{AccountFlag, HostFlags};

/// The fast path that the flags ask for. Rules turn the filter on.
///
/// # Errors
/// If a module or a rule is invalid.
pub(super) fn from_flags(flags: &HostFlags) -> Result<FastPath> {
    let mut modules = flags
        .fast_path
        .parse::<rxo_host::FastModules>()
        .map_err(|error| usage(format!("--fast-path {}: {error}", flags.fast_path)))?;
    let rule = |text: &String| {
        text.parse::<FilterRule>().map_err(|error| usage(format!("--filter {error}")))
    };
    let filter = flags.filter.iter().map(rule).collect::<Result<Vec<_>>>()?;
    if !filter.is_empty() {
        modules = modules.with(FastModule::Filter);
    }
    let account_by = match flags.account_by {
        AccountFlag::Network => AccountBy::Network,
        AccountFlag::Flow => AccountBy::Flow,
    };
    Ok(FastPath { modules, filter, account_by, one_by_one: false })
}

/// What the fast path did, as it is written in JSON.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct FastTotals {
    /// The modules that are on.
    modules: String,
    consumed: u64,
    duplicates: u64,
    /// Calls of connections for the consumed ACKs.
    calls: u64,
    /// Slots of the device that were given back without a buffer for the frame.
    unseen: u64,
    /// Frames that took the ordinary way, by reason.
    fallback: serde_json::Map<String, serde_json::Value>,
    ring: Ring,
    filtered: u64,
    syn_flood: SynFlood,
    /// The largest accounts.
    accounts: Vec<OneAccount>,
}

/// ACKs that waited while an application held the lock.
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
    worst: Option<String>,
}

#[derive(Clone, Debug, Serialize)]
struct OneAccount {
    /// "others" for the sum of those for which there was no room.
    of: String,
    frames: u64,
    bytes: u64,
    acks: u64,
}

impl FastTotals {
    /// `None` if no module was ever on.
    pub(crate) fn of(counters: &FastCounters) -> Option<Self> {
        let FastCounters { modules, consumed, duplicates, calls, unseen, filtered, .. } = *counters;
        let is_used = !modules.is_off() || consumed + filtered + counters.fallbacks() > 0;
        let reason =
            |reason: FallbackReason| (reason.name().to_owned(), counters.fallback(reason).into());
        let others = Some(counters.unaccounted).filter(|others| others.frames > 0);
        is_used.then(|| Self {
            modules: modules.to_string(),
            consumed,
            duplicates,
            calls,
            unseen,
            fallback: FallbackReason::ALL.into_iter().map(reason).collect(),
            ring: Ring {
                pushed: counters.ring_pushed,
                overwritten: counters.ring_overwritten,
                most: counters.ring_most,
                refused: counters.ring_refused,
            },
            filtered,
            syn_flood: SynFlood::of(&counters.half_open),
            accounts: counters.accounts.iter().copied().chain(others).map(OneAccount::of).collect(),
        })
    }

    /// As lines of text.
    pub(crate) fn text(&self) -> String {
        let Self { modules, consumed, calls, unseen, fallback, ring, .. } = self;
        let reasons: Vec<_> = fallback
            .iter()
            .filter_map(|(name, count)| count.as_u64().filter(|count| *count > 0).zip(Some(name)))
            .map(|(count, name)| format!("{} {name}", grouped(count)))
            .collect();
        let others = if reasons.is_empty() { "none".to_owned() } else { reasons.join(", ") };
        let mut text = format!(
            "fast path ({modules}): {} ACKs in {} calls, {} without a buffer; the ordinary way: {others}",
            grouped(*consumed),
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
    fn of(found: &HalfOpen) -> Self {
        let worst = found.worst.map(|(network, bits, count)| format!("{network}/{bits}: {count}"));
        Self { syns: found.syns, half_open: found.now, alarms: found.alarms, worst }
    }
}

impl OneAccount {
    fn of(account: Account) -> Self {
        let Account { name, frames, bytes, acks } = account;
        let of = match name {
            None => "others".to_owned(),
            Some(AccountName::Network(network, bits)) => format!("{network}/{bits}"),
            Some(AccountName::Flow(key)) => format!("{key:?}"),
        };
        Self { of, frames, bytes, acks }
    }
}

#[cfg(test)]
mod tests {
    use rxo_host::FastModules;

    use super::*;

    #[test]
    fn what_was_never_on_is_not_mentioned() {
        assert!(FastTotals::of(&FastCounters::default()).is_none());
    }

    #[test]
    fn totals_name_what_took_the_ordinary_way_and_why() {
        let mut counters = FastCounters {
            modules: FastModules::ON,
            consumed: 12_000,
            calls: 300,
            unseen: 12_000,
            ..FastCounters::default()
        };
        counters.fallbacks[FallbackReason::Order as usize] = 7;
        let totals = FastTotals::of(&counters).unwrap();
        assert_eq!(
            totals.text(),
            "fast path (pure-ack): 12,000 ACKs in 300 calls, 12,000 without a buffer; the ordinary way: 7 order"
        );
        let json = serde_json::to_value(&totals).unwrap();
        assert_eq!((&json["fallback"]["order"], &json["ring"]["pushed"]), (&7.into(), &0.into()));
    }
}
