//! A histogram of fixed size: exact below 16, then eight buckets per doubling (each at most 12 % wide).

use rxo_frame::Count;

const EXACT: u64 = 16;
const PER_DOUBLING_BITS: u32 = 3;
const BUCKETS: usize = 16 + (64 - 4) * 8;

/// Counts how often each value occurred. Recording takes a handful of instructions and never allocates.
///
/// # Examples
/// ```
/// use rxo_coalesce::Histogram;
///
/// let mut segments = Histogram::default();
/// for count in [1, 16, 16] {
///     segments.record(count);
/// }
/// assert_eq!((segments.count(), segments.max()), (3, 16));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Histogram {
    buckets: [u64; BUCKETS],
    sum: u64,
    max: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self { buckets: [0; BUCKETS], sum: 0, max: 0 }
    }
}

impl Histogram {
    /// Counts one occurrence of `value`.
    #[inline]
    pub fn record(&mut self, value: u64) {
        if let Some(bucket) = self.buckets.get_mut(bucket_of(value)) {
            *bucket += 1;
        }
        self.sum = self.sum.wrapping_add(value);
        if value > self.max {
            self.max = value;
        }
    }

    /// Counts `count` occurrences of `value`.
    #[inline]
    pub(crate) fn record_many(&mut self, value: u64, count: u64) {
        if count == 0 {
            return;
        }
        if let Some(bucket) = self.buckets.get_mut(bucket_of(value)) {
            *bucket += count;
        }
        self.sum = self.sum.wrapping_add(value.wrapping_mul(count));
        self.max = self.max.max(value);
    }

    /// Returns the number of values recorded.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.buckets.iter().fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// Returns the largest value recorded; 0 if there is none.
    #[must_use]
    pub const fn max(&self) -> u64 {
        self.max
    }

    /// Returns the mean of all values; 0 if there is none.
    #[must_use]
    pub fn mean(&self) -> f64 {
        let count = self.count();
        if count == 0 { 0.0 } else { self.sum as f64 / count as f64 }
    }

    /// Returns a value that the given share (0 to 1) of all values does not exceed: at most 12 % above the
    /// smallest such value. 0 if nothing was recorded.
    #[must_use]
    pub fn quantile(&self, share: f64) -> u64 {
        let wanted = (share.clamp(0.0, 1.0) * self.count() as f64) as u64;
        let mut seen = 0;
        for (index, bucket) in self.buckets.iter().enumerate() {
            seen = bucket.saturating_add(seen);
            // A share of 0 gives the smallest value recorded.
            if seen > 0 && seen >= wanted.max(1) {
                return upper_bound(index).min(self.max);
            }
        }
        self.max
    }

    /// Iterates over the buckets that are not empty: for each, the largest value that belongs to it, and its
    /// count.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let all = self.buckets.iter().enumerate();
        all.filter(|(_, count)| **count > 0).map(|(index, count)| (upper_bound(index), *count))
    }

    /// Returns the sum of all values; it wraps around at 2⁶⁴.
    #[must_use]
    pub const fn sum(&self) -> u64 {
        self.sum
    }

    /// Creates the histogram with these [`buckets`](Self::buckets), [`sum`](Self::sum) and
    /// [`max`](Self::max).
    #[must_use]
    pub fn from_buckets(buckets: impl Iterator<Item = (u64, u64)>, sum: u64, max: u64) -> Self {
        let mut all = Self { sum, max, ..Self::default() };
        for (value, count) in buckets {
            if let Some(bucket) = all.buckets.get_mut(bucket_of(value)) {
                *bucket = bucket.saturating_add(count);
            }
        }
        all
    }

    /// Adds all values that `other` recorded.
    pub fn add(&mut self, other: &Self) {
        for (mine, theirs) in self.buckets.iter_mut().zip(&other.buckets) {
            *mine = mine.saturating_add(*theirs);
        }
        self.sum = self.sum.wrapping_add(other.sum);
        self.max = self.max.max(other.max);
    }
}

/// Combines buckets and sums; the maximum is the larger of both.
impl Count for Histogram {
    fn zip(&self, other: &Self, apply: fn(u64, u64) -> u64) -> Self {
        Self {
            buckets: self.buckets.zip(&other.buckets, apply),
            sum: apply(self.sum, other.sum),
            max: self.max.max(other.max),
        }
    }

    fn single(&self) -> Option<u64> {
        None
    }
}

/// Returns the bucket of `value`: the exponent and the first three bits of the fraction, as in a
/// floating-point number. The conversion counts leading zeros and shifts in one instruction.
#[inline]
const fn bucket_of(value: u64) -> usize {
    if value < EXACT {
        return value as usize;
    }
    // The conversion would round numbers of 2⁵³ and more; in nanoseconds, that is 104 days.
    if value >= 1 << 53 {
        return huge_bucket_of(value);
    }
    let float = (value as i64 as f64).to_bits() >> (52 - PER_DOUBLING_BITS);
    (float as usize).wrapping_sub(FIRST_FLOAT) + EXACT as usize
}

#[cold]
const fn huge_bucket_of(value: u64) -> usize {
    let doubling = 63 - value.leading_zeros();
    let within = (value >> (doubling - PER_DOUBLING_BITS)) & 7;
    16 + ((doubling - 4) as usize) * 8 + within as usize
}

/// The index that [`EXACT`] (2⁴) would get: its biased exponent, and a mantissa of 0.
const FIRST_FLOAT: usize = (1_023 + 4) << PER_DOUBLING_BITS;

const fn upper_bound(index: usize) -> u64 {
    if index < 16 {
        return index as u64;
    }
    let doubling = 4 + ((index - 16) / 8) as u32;
    let within = ((index - 16) % 8) as u64;
    ((8 + within + 1) << (doubling - PER_DOUBLING_BITS)).wrapping_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_same_from_its_buckets() {
        let mut histogram = Histogram::default();
        (0..3_000).chain(wide()).for_each(|value| histogram.record(value));
        let (sum, max) = (histogram.sum(), histogram.max());
        assert_eq!(Histogram::from_buckets(histogram.buckets(), sum, max), histogram);
    }

    #[test]
    fn every_value_lies_within_its_bucket() {
        for value in (0..10_000).chain(wide()) {
            let bound = upper_bound(bucket_of(value));
            assert!(bound >= value, "{value} is above its bucket's bound {bound}");
            assert!(bound as f64 <= value as f64 * 1.126 + 0.5, "{value}: {bound} is too far");
        }
    }

    /// Values just below, at and above every power of two.
    fn wide() -> impl Iterator<Item = u64> {
        (5..64).flat_map(|bit| [(1 << bit) - 1, 1 << bit, (1 << bit) + 12_345]).chain([u64::MAX])
    }

    #[test]
    fn both_ways_to_a_bucket_agree() {
        for value in (16..10_000).chain(wide()) {
            assert_eq!(bucket_of(value), huge_bucket_of(value), "{value}");
        }
    }

    #[test]
    fn many_at_once_are_as_many_one_by_one() {
        let (mut once, mut singly) = (Histogram::default(), Histogram::default());
        once.record_many(7, 3);
        once.record_many(9, 0);
        (0..3).for_each(|_| singly.record(7));
        assert_eq!(once, singly);
    }

    #[test]
    fn quantiles_of_one_to_a_hundred() {
        let mut histogram = Histogram::default();
        (1..=100).for_each(|value| histogram.record(value));
        assert_eq!(histogram.count(), 100);
        assert!((histogram.mean() - 50.5).abs() < 1e-9);
        assert!((50..=56).contains(&histogram.quantile(0.5)), "{}", histogram.quantile(0.5));
        assert_eq!(histogram.quantile(1.0), 100);
        assert_eq!(histogram.quantile(0.0), 1);
    }

    #[test]
    fn nothing_recorded_is_zero() {
        let empty = Histogram::default();
        assert_eq!((empty.quantile(0.5), empty.max(), empty.count()), (0, 0, 0));
    }
}
