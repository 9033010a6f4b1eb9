//! Accounts of what arrives, by flow or by the network of the source.

use std::collections::HashMap;
use std::net::IpAddr;

use rxo_wire::FlowKey;

use super::Seen;
use super::prefix::{bits, network};

/// What accounts are of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AccountBy {
    /// One for each network of sources: 24 bits of IPv4, 64 of IPv6.
    #[default]
    Network,
    /// One for each flow.
    Flow,
}

/// Whose account it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccountName {
    /// A network, and the length of its prefix in bits.
    Network(IpAddr, u8),
    /// A flow.
    Flow(FlowKey),
}

/// One account: what arrived since the host was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// Whose it is; `None` for the sum of those for which there was no room.
    pub name: Option<AccountName>,
    /// Frames.
    pub frames: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Pure ACKs among them.
    pub acks: u64,
}

/// All accounts, at most [`MOST_ACCOUNTS`].
#[derive(Debug)]
pub(super) struct Accounts {
    by: AccountBy,
    accounts: HashMap<(FlowKey, Option<IpAddr>), Account>,
    others: Account,
}

impl Accounts {
    pub(super) fn new(by: AccountBy) -> Self {
        Self { by, accounts: HashMap::new(), others: Account::default() }
    }

    pub(super) fn see(&mut self, seen: &Seen) {
        let network = network(seen.key.source());
        let (key, name) = match self.by {
            AccountBy::Flow => ((seen.key, None), AccountName::Flow(seen.key)),
            AccountBy::Network => {
                ((FlowKey::NOBODY, Some(network)), AccountName::Network(network, bits(network)))
            }
        };
        let has_room = self.accounts.len() < MOST_ACCOUNTS || self.accounts.contains_key(&key);
        let account = match has_room {
            true => self.accounts.entry(key).or_default(),
            false => &mut self.others,
        };
        account.name = has_room.then_some(name);
        account.frames += 1;
        account.bytes += seen.bytes;
        account.acks += u64::from(seen.is_ack);
    }

    /// The largest accounts, and the sum of what went to none.
    pub(super) fn report(&self) -> (Vec<Account>, Account) {
        let mut accounts: Vec<_> = self.accounts.values().copied().collect();
        accounts.sort_by_key(|account| std::cmp::Reverse((account.bytes, account.frames)));
        accounts.truncate(MOST_REPORTED);
        (accounts, self.others)
    }
}

const MOST_ACCOUNTS: usize = 4_096;
const MOST_REPORTED: usize = 16;

#[cfg(test)]
mod tests {
    use rxo_frame::Instant;

    use super::*;

    fn seen(source: u32, is_ack: bool) -> Seen {
        let key = FlowKey::v4(source, 1, 5_000 << 16 | 80, 0);
        Seen { key, flags: None, bytes: 100, is_ack, now: Instant::ZERO }
    }

    #[test]
    fn hosts_of_one_network_share_an_account() {
        let mut accounts = Accounts::new(AccountBy::Network);
        for (source, is_ack) in [(0x0a00_0001, true), (0x0a00_00ff, false), (0x0b00_0001, true)] {
            accounts.see(&seen(source, is_ack));
        }
        let (largest, others) = accounts.report();
        let name = AccountName::Network(IpAddr::from([10, 0, 0, 0]), 24);
        let first = Account { name: Some(name), frames: 2, bytes: 200, acks: 1 };
        assert_eq!((largest[0], largest.len(), others), (first, 2, Account::default()));
    }

    #[test]
    fn flows_beyond_the_bound_are_counted_together() {
        let mut accounts = Accounts::new(AccountBy::Flow);
        (0..5_000).for_each(|source| accounts.see(&seen(source, false)));
        accounts.see(&seen(0, false));
        let (largest, others) = accounts.report();
        assert_eq!((largest[0].frames, largest.len()), (2, MOST_REPORTED));
        assert_eq!((others.frames, others.name), (5_000 - MOST_ACCOUNTS as u64, None));
    }
}
