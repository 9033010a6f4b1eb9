//! The memory of a host's connections: reserved when a connection is opened, given back with it.
//!
//! Separate because it is one bound for many owners. A connection never holds more than its own buffers, so
//! the sum of the buffers bounds the host, whatever its peers do. Nothing is counted for each segment, and
//! everything inside an offered window can be kept.

use std::sync::atomic::{AtomicU64, Ordering};

use rxo_tcp::Config;

/// The memory that is left, in bytes.
#[derive(Debug)]
pub(crate) struct Memory {
    left: AtomicU64,
}

/// The memory reserved for one connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Share {
    send_bytes: u32,
    receive_bytes: u32,
    /// Both buffers and the bookkeeping, in bytes.
    bytes: u64,
}

impl Memory {
    pub(crate) const fn new(bytes: u64) -> Self {
        Self { left: AtomicU64::new(bytes) }
    }

    /// How much is left, in bytes.
    pub(crate) fn left(&self) -> u64 {
        self.left.load(Ordering::Relaxed)
    }

    /// Reserves a share for a connection with `config`: all that it asks for while there is plenty, else less.
    /// `None` if not even the least is left.
    pub(crate) fn reserve(&self, config: &Config) -> Option<Share> {
        self.reserve_with(|left| Share::of(config, left / SHARES))
    }

    /// Reserves all that `config` asks for. `None` if that is not left.
    pub(crate) fn reserve_all(&self, config: &Config) -> Option<Share> {
        self.reserve_with(|_| Share::of(config, u64::MAX))
    }

    fn reserve_with(&self, share: impl Fn(u64) -> Share) -> Option<Share> {
        let rest = |left: u64| left.checked_sub(share(left).bytes);
        let before = self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, rest);
        before.ok().map(share)
    }

    /// Gives a share back.
    pub(crate) fn give_back(&self, share: Share) {
        self.left.fetch_add(share.bytes, Ordering::Relaxed);
    }
}

impl Share {
    /// The share of a connection with `config` that may take `most_bytes`.
    fn of(config: &Config, most_bytes: u64) -> Self {
        let tracking = tracking_bytes(config);
        let wanted = text_bytes(config.send_buffer_bytes, config.receive_buffer_bytes);
        let given = most_bytes.saturating_sub(tracking).min(wanted);
        let part = |bytes: u32| {
            let part = u64::from(bytes) * given / wanted.max(1);
            u32::try_from(part).unwrap_or(bytes).max(bytes.min(LEAST_BUFFER_BYTES))
        };
        let (send_bytes, receive_bytes) =
            (part(config.send_buffer_bytes), part(config.receive_buffer_bytes));
        Self { send_bytes, receive_bytes, bytes: text_bytes(send_bytes, receive_bytes) + tracking }
    }

    /// Limits `config` to this share.
    pub(crate) fn apply(self, config: &Config) -> Config {
        Config {
            send_buffer_bytes: self.send_bytes,
            receive_buffer_bytes: self.receive_bytes,
            ..config.clone()
        }
    }
}

/// The memory of received text: it stays in buffers of its own, and small pieces are moved into a ring with
/// room for all of it.
fn text_bytes(send_bytes: u32, receive_bytes: u32) -> u64 {
    u64::from(send_bytes) + 2 * u64::from(receive_bytes)
}

/// The memory of a connection without its text: itself, its pieces of text, its ranges of sent numbers.
fn tracking_bytes(config: &Config) -> u64 {
    let places = config.receive_pieces + config.sent_ranges;
    CONNECTION_BYTES + PLACE_BYTES * places as u64
}

/// A cell, its place at the worker, its timers.
const CONNECTION_BYTES: u64 = 8 << 10;
/// A place for a piece of text or for a range that was sent.
const PLACE_BYTES: u64 = 64;
const LEAST_BUFFER_BYTES: u32 = 32 << 10;
const SHARES: u64 = 1_024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_get_all_and_later_ones_less() {
        let (config, memory) = (Config::default(), Memory::new(2 << 30));
        let shares: Vec<_> = std::iter::from_fn(|| memory.reserve(&config)).collect();
        assert_eq!(shares[0].send_bytes, config.send_buffer_bytes);
        assert_eq!(shares[1_000].receive_bytes, config.receive_buffer_bytes);
        assert!(shares.windows(2).all(|two| two[0].bytes >= two[1].bytes));
        let last = shares.last().unwrap();
        assert_eq!((last.send_bytes, last.receive_bytes), (LEAST_BUFFER_BYTES, LEAST_BUFFER_BYTES));
        assert!((3_000..5_000).contains(&shares.len()), "{} connections", shares.len());
        assert!(memory.left() < last.bytes, "{} left", memory.left());
        shares.into_iter().for_each(|share| memory.give_back(share));
        assert_eq!(memory.left(), 2 << 30);
    }

    #[test]
    fn small_buffers_stay_as_they_are() {
        let config =
            Config { send_buffer_bytes: 64, receive_buffer_bytes: 1_000, ..Config::default() };
        let share = Memory::new(1 << 20).reserve(&config).unwrap();
        assert_eq!((share.send_bytes, share.receive_bytes), (64, 1_000));
        assert_eq!(share.apply(&config), config);
    }

    #[test]
    fn all_or_nothing() {
        let config = Config::default();
        assert!(Memory::new(768 << 10).reserve_all(&config).is_none());
        assert_eq!(
            Memory::new(1 << 30).reserve_all(&config),
            Memory::new(1 << 30).reserve(&config)
        );
    }
}
