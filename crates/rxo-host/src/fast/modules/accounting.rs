//! Counts received frames and bytes by flow, or by the network of the source.

use std::cmp::Reverse;
use std::collections::HashMap;

use rxo_wire::FlowKey;

use crate::link::IpCidr;

/// The key by which frames are counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AccountBy {
    /// One account per source network: the first 24 bits of an IPv4 address, or 64 bits of an IPv6 address.
    #[default]
    Network,
    /// One account per flow.
    Flow,
}

/// The network or the flow that an account belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AccountName {
    /// The network of the source.
    Network(IpCidr),
    /// A flow.
    Flow(FlowKey),
}

/// The totals of one account since the host was created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// The network or flow; `None` for the sum of frames that got no account.
    pub name: Option<AccountName>,
    /// Number of frames of this account.
    pub frames: u64,
    /// Number of bytes, link header included.
    pub bytes: u64,
    /// Number of pure ACKs among the frames.
    pub acks: u64,
}

/// All accounts, at most [`MOST_ACCOUNTS`].
#[derive(Debug, Default)]
pub(in crate::fast) struct Accounts {
    accounts: HashMap<AccountName, Account>,
    others: Account,
}

impl Accounts {
    /// Counts a frame of the flow `key` in the account that `by` selects, or in a common one if the table is
    /// full.
    pub(in crate::fast) fn count(&mut self, by: AccountBy, key: FlowKey, bytes: u64, is_ack: bool) {
        let name = match by {
            AccountBy::Flow => AccountName::Flow(key),
            AccountBy::Network => AccountName::Network(IpCidr::of_source(key.source())),
        };
        let has_room = self.accounts.len() < MOST_ACCOUNTS || self.accounts.contains_key(&name);
        let account = match has_room {
            true => self.accounts.entry(name).or_default(),
            false => &mut self.others,
        };
        account.name = has_room.then_some(name);
        account.frames += 1;
        account.bytes += bytes;
        account.acks += u64::from(is_ack);
    }

    /// The [`MOST_REPORTED`] largest accounts in descending order, and the sum of frames without an account.
    pub(in crate::fast) fn report(&self) -> (Vec<Account>, Account) {
        let mut accounts: Vec<_> = self.accounts.values().copied().collect();
        accounts.sort_by_key(|account| Reverse((account.bytes, account.frames)));
        accounts.truncate(MOST_REPORTED);
        (accounts, self.others)
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
            accounts.count(AccountBy::Network, key(source), 100, is_ack);
        }
        let (largest, others) = accounts.report();
        let name = AccountName::Network("10.0.0.0/24".parse().unwrap());
        let first = Account { name: Some(name), frames: 2, bytes: 200, acks: 1 };
        assert_eq!((largest[0], largest.len(), others), (first, 2, Account::default()));
    }

    #[test]
    fn flows_beyond_the_bound_are_counted_together() {
        let mut accounts = Accounts::default();
        (0..5_000).for_each(|source| accounts.count(AccountBy::Flow, key(source), 100, false));
        accounts.count(AccountBy::Flow, key(0), 100, false);
        let (largest, others) = accounts.report();
        assert_eq!((largest[0].frames, largest.len()), (2, MOST_REPORTED));
        assert_eq!((others.frames, others.name), (5_000 - MOST_ACCOUNTS as u64, None));
    }
}
