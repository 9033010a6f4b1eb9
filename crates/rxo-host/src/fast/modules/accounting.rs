//! Counts received frames and bytes by flow, or by the network of the source.

use std::cmp::Reverse;
use std::collections::HashMap;

use rxo_wire::FlowKey;

use crate::link::IpCidr;

/// The name of an account: a source network, and a flow if accounts are kept by flow.
pub type AccountName = (IpCidr, Option<FlowKey>);

/// The totals of one account since the host was created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// The network or flow; `None` for the account of all frames that have no account of their own.
    pub name: Option<AccountName>,
    /// Number of frames of this account.
    pub frames: u64,
    /// Number of bytes in the frames of this account, including link headers.
    pub bytes: u64,
    /// Number of pure ACKs among the frames.
    pub acks: u64,
}

impl Account {
    /// Combines the reports of two shards into one: the largest accounts, followed by the account without a
    /// name.
    pub(in crate::fast) fn together(some: &[Self], others: &[Self]) -> Vec<Self> {
        let mut all = Accounts::default();
        for account in some.iter().chain(others) {
            let sum =
                all.0.entry(account.name).or_insert(Self { name: account.name, ..Self::default() });
            sum.frames += account.frames;
            sum.bytes += account.bytes;
            sum.acks += account.acks;
        }
        all.report()
    }
}

/// All accounts by their names, at most [`MOST_ACCOUNTS`], and the account without a name.
#[derive(Debug, Default)]
pub(in crate::fast) struct Accounts(HashMap<Option<AccountName>, Account>);

impl Accounts {
    /// Counts a frame of `bytes` bytes in the account of its flow `key` if `by_flow` is set, otherwise in the
    /// account of its source's network.
    pub(super) fn count(&mut self, key: FlowKey, by_flow: bool, bytes: usize, is_ack: bool) {
        let name = (IpCidr::of_source(key.source()), by_flow.then_some(key));
        let has_room = self.0.len() < MOST_ACCOUNTS || self.0.contains_key(&Some(name));
        let name = has_room.then_some(name);
        let account = self.0.entry(name).or_insert(Account { name, ..Account::default() });
        account.frames += 1;
        account.bytes += bytes as u64;
        account.acks += u64::from(is_ack);
    }

    /// Returns the largest accounts, then the account without a name.
    pub(in crate::fast) fn report(&self) -> Vec<Account> {
        let (mut named, rest): (Vec<&Account>, Vec<_>) =
            self.0.values().partition(|of| of.name.is_some());
        named.sort_by_key(|account| Reverse((account.bytes, account.frames)));
        named.into_iter().take(MOST_REPORTED).chain(rest).copied().collect()
    }
}

const MOST_ACCOUNTS: usize = 4_096;
const MOST_REPORTED: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    fn key(source: u32) -> FlowKey {
        FlowKey::v4(source, 1, 5_000 << 16 | 80, 0)
    }

    #[test]
    fn hosts_of_one_network_share_an_account() {
        let mut accounts = Accounts::default();
        for (source, is_ack) in [(0x0a00_0001, true), (0x0a00_00ff, false), (0x0b00_0001, true)] {
            accounts.count(key(source), false, 100, is_ack);
        }
        let largest = accounts.report();
        let name = Some(("10.0.0.0/24".parse().unwrap(), None));
        let first = Account { name, frames: 2, bytes: 200, acks: 1 };
        assert_eq!((largest[0], largest.len()), (first, 2));
    }

    #[test]
    fn accounts_of_two_shards_are_added_by_name() {
        let report = |sources: [u32; 3]| {
            let mut accounts = Accounts::default();
            sources.iter().for_each(|source| accounts.count(key(*source), true, 100, true));
            accounts.report()
        };
        let together = Account::together(&report([1, 1, 2]), &report([2, 2, 2]));
        let frames: Vec<_> = together.iter().map(|account| account.frames).collect();
        assert_eq!(frames, [4, 2]);
        assert_eq!((together[0].bytes, together[0].acks), (400, 4));
    }

    #[test]
    fn flows_beyond_the_bound_are_counted_together() {
        let mut accounts = Accounts::default();
        (0..5_000).for_each(|source| accounts.count(key(source), true, 100, false));
        accounts.count(key(0), true, 100, false);
        let report = accounts.report();
        assert_eq!((report[0].frames, report.len()), (2, MOST_REPORTED + 1));
        let others = report[MOST_REPORTED];
        assert_eq!((others.frames, others.name), (5_000 - MOST_ACCOUNTS as u64, None));
    }
}
