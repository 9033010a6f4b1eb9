//! The paper's categories of cost, and the time of each.

use rxo_demo::stats::Spread;
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

/// The purpose of a host's processor time (section 2.2; `aggr` from figure 8 on).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Category {
    /// Connection lookup, and TCP processing of received segments.
    Rx,
    /// TCP processing of sent segments, and their headers.
    Tx,
    /// Release of buffers.
    Buffer,
    /// Per-packet work that is neither protocol nor device: queues, wake-ups, timers, the link.
    NonProto,
    /// Receiving frames from the device. The paper's `driver` is this category and `DriverOut`.
    DriverIn,
    /// Sending frames to the device: each ACK, whether it left the stack in a template or not. Templates are
    /// expanded here, as in the paper's driver.
    DriverOut,
    /// Receive Aggregation.
    Aggr,
    /// The application: waiting, copying, and sometimes comparing.
    PerByte,
    /// Worker time outside the timed stages: waiting for frames, and the loop itself.
    Misc,
}

impl Category {
    pub(super) const ALL: [Self; 9] = [
        Self::Rx,
        Self::Tx,
        Self::Buffer,
        Self::NonProto,
        Self::DriverIn,
        Self::DriverOut,
        Self::Aggr,
        Self::PerByte,
        Self::Misc,
    ];

    /// The categories of the paper's per-packet sum, which aggregation can reduce.
    pub(super) const PER_PACKET: [Self; 4] = [Self::Rx, Self::Tx, Self::Buffer, Self::NonProto];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Rx => "rx",
            Self::Tx => "tx",
            Self::Buffer => "buffer",
            Self::NonProto => "non-proto",
            Self::DriverIn => "driver in",
            Self::DriverOut => "driver out",
            Self::Aggr => "aggr",
            Self::PerByte => "per-byte",
            Self::Misc => "misc",
        }
    }
}

/// Time of each category per packet, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Breakdown([f64; 9]);

impl Breakdown {
    /// Makes the breakdown from the nanoseconds of each category.
    pub(super) fn new(of: impl Fn(Category) -> f64) -> Self {
        Self(Category::ALL.map(of))
    }

    /// Returns the median of each category; `None` for no breakdowns.
    pub(super) fn median(all: &[Self]) -> Option<Self> {
        if all.is_empty() {
            return None;
        }
        let of = |category| Spread::of(all.iter().map(|one| one.of(category)));
        Some(Self::new(|category| of(category).map_or(0.0, |spread| spread.median)))
    }

    pub(super) fn of(&self, category: Category) -> f64 {
        self.0[category as usize]
    }

    pub(super) fn sum(&self, categories: &[Category]) -> f64 {
        categories.iter().map(|&category| self.of(category)).sum()
    }

    pub(super) fn total(&self) -> f64 {
        self.0.iter().sum()
    }

    /// Returns the share of `categories` in the total, 0 to 1.
    pub(super) fn share(&self, categories: &[Category]) -> f64 {
        rxo_console::numbers::ratio(self.sum(categories), self.total())
    }
}

impl Serialize for Breakdown {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(Category::ALL.len()))?;
        for category in Category::ALL {
            map.serialize_entry(category.name(), &self.of(category))?;
        }
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_found_by_name_and_sum() {
        let breakdown = Breakdown::new(|category| (category as usize + 1) as f64);
        assert!((breakdown.of(Category::Rx) - 1.0).abs() < 1e-9);
        assert!((breakdown.total() - 45.0).abs() < 1e-9);
        assert!((breakdown.sum(&Category::PER_PACKET) - 10.0).abs() < 1e-9);
        assert!((breakdown.share(&[Category::Misc]) - 9.0 / 45.0).abs() < 1e-9);
        let json = serde_json::to_value(breakdown).unwrap();
        assert_eq!(json["per-byte"], 8.0);
        let middle = [1.0, 5.0, 2.0].map(|value| Breakdown::new(|_| value));
        assert_eq!(Breakdown::median(&middle), Some(Breakdown::new(|_| 2.0)));
        assert_eq!(Breakdown::median(&[]), None);
    }
}
