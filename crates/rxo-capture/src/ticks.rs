//! Clocks, which convert between the ticks of a file and instants in nanoseconds.

use rxo_frame::Instant;

use super::options::OptionIter;

/// The code of the interface option for the length of a tick (`if_tsresol`).
const RESOLUTION: u16 = 9;
/// The code of the interface option for the clock's zero (`if_tsoffset`).
const OFFSET: u16 = 14;
const NANOS_PER_SECOND: u64 = 1_000_000_000;

/// The clock of an interface: the length of a tick, and its zero.
///
/// A tick is the unit in which a file counts time ([`Record::ticks`](super::Record::ticks)). An instant is a
/// number of nanoseconds in 64 bits, which cannot represent every time of every file.
///
/// # Examples
/// ```
/// use rxo_capture::Clock;
/// use rxo_frame::Instant;
///
/// // Microseconds, as in most pcap files: 3 s and 5 µs.
/// let (clock, ticks) = (Clock::pcap(1_000), 3 << 32 | 5);
/// assert_eq!(clock.instant(ticks), Instant::from_micros(3_000_005));
/// assert_eq!(clock.ticks(Instant::from_micros(3_000_005)), Some(ticks));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    length: Length,
    /// The number of seconds from 1970 UTC to the clock's zero.
    offset_s: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Length {
    /// A tick has this number of nanoseconds.
    Nanos(u64),
    /// A nanosecond has this number of ticks.
    PerNano(u64),
    /// A tick is a second that was halved this number of times.
    Halvings(u8),
    /// The time is in two parts, as in pcap: seconds in the upper 32 bits, and a fraction of a second in the
    /// lower 32 bits, in units of this number of nanoseconds.
    SecondsAnd(u64),
}

impl Clock {
    /// The clock that counts microseconds since 1970: the default of pcapng.
    pub(super) const MICROS: Self = Self { length: Length::Nanos(1_000), offset_s: 0 };

    /// Returns the clock of a pcap file, which counts seconds, and a fraction in units of `nanos_each` nanoseconds.
    #[must_use]
    pub const fn pcap(nanos_each: u64) -> Self {
        Self { length: Length::SecondsAnd(nanos_each), offset_s: 0 }
    }

    /// Returns the clock of a pcapng interface with the options `options`, encoded as in
    /// [`Described`](super::Described).
    #[must_use]
    pub fn of_interface(options: &[u8]) -> Self {
        Self::described(&OptionIter::new(options, false))
    }

    pub(super) fn described(options: &OptionIter<'_>) -> Self {
        let find = |code| options.clone().find(|(found, _)| *found == code).map(|(_, value)| value);
        let resolution = find(RESOLUTION).and_then(|value| value.first().copied()).unwrap_or(6);
        let offset_s = find(OFFSET).and_then(|value| value.first_chunk()).map_or(0, |bytes| {
            let offset_s = i64::from_le_bytes(*bytes);
            if options.is_big_endian() { offset_s.swap_bytes() } else { offset_s }
        });
        Self::new(resolution, offset_s)
    }

    /// Returns the clock that the pcapng options `if_tsresol` and `if_tsoffset` define. With the high bit set, the
    /// resolution is a power of two, otherwise of ten (draft-ietf-opsawg-pcapng 4.2).
    pub(super) fn new(resolution: u8, offset_s: i64) -> Self {
        let length = match resolution {
            0..=9 => Length::Nanos(10u64.pow(9 - u32::from(resolution))),
            // With so fine a resolution all 64 bits of ticks are less than a nanosecond.
            10..=0x7f => 10u64
                .checked_pow(u32::from(resolution) - 9)
                .map_or(Length::Nanos(0), Length::PerNano),
            0x80.. => Length::Halvings(resolution & 0x7f),
        };
        Self { length, offset_s }
    }

    /// Returns the instant of `ticks`. A time that does not fit into 64 bits of nanoseconds since 1970 becomes
    /// the nearest time that fits. If the fraction in a pcap time is invalid (a second or more), it is still
    /// added to the seconds.
    #[inline]
    #[must_use]
    pub fn instant(self, ticks: u64) -> Instant {
        let nanos = match self.length {
            Length::Nanos(nanos) => ticks.saturating_mul(nanos),
            Length::PerNano(ticks_per_nano) => ticks / ticks_per_nano,
            Length::Halvings(halvings) => {
                let nanos = (u128::from(ticks) * u128::from(NANOS_PER_SECOND)) >> halvings;
                u64::try_from(nanos).unwrap_or(u64::MAX)
            }
            Length::SecondsAnd(nanos_each) => {
                (ticks >> 32) * NANOS_PER_SECOND + (ticks & u64::from(u32::MAX)) * nanos_each
            }
        };
        Instant::from_nanos(self.shifted(nanos))
    }

    /// Converts the instant `at` to ticks, as a writer with this clock would; `None` if no number of ticks has
    /// this instant. Converting ticks to an instant and back gives the same ticks, with three exceptions: an
    /// invalid fraction, a time finer than a nanosecond, and a time that an instant cannot represent.
    #[inline]
    #[must_use]
    pub fn ticks(self, at: Instant) -> Option<u64> {
        let nanos = self.unshifted(at.as_nanos())?;
        let ticks = match self.length {
            Length::Nanos(0) => None,
            Length::Nanos(each) => nanos.is_multiple_of(each).then(|| nanos / each),
            Length::PerNano(ticks_per_nano) => nanos.checked_mul(ticks_per_nano),
            Length::Halvings(halvings) => halved(nanos, halvings),
            Length::SecondsAnd(each) => {
                let (seconds, rest) = (nanos / NANOS_PER_SECOND, nanos % NANOS_PER_SECOND);
                let is_whole = rest.is_multiple_of(each) && seconds <= u32::MAX.into();
                is_whole.then(|| (seconds << 32) | (rest / each))
            }
        }?;
        (self.instant(ticks) == at).then_some(ticks)
    }

    /// Returns `true` if converting `ticks` to an instant and back gives `ticks` again. Unlike
    /// [`ticks`](Self::ticks), this function usually needs no division.
    #[inline]
    #[must_use]
    pub fn is_exact(self, ticks: u64) -> bool {
        match self.length {
            Length::SecondsAnd(each) => (ticks & u64::from(u32::MAX)) * each < NANOS_PER_SECOND,
            Length::Nanos(each @ 1..) if self.offset_s == 0 => ticks.checked_mul(each).is_some(),
            _ => self.ticks(self.instant(ticks)) == Some(ticks),
        }
    }

    #[inline]
    fn shifted(self, nanos: u64) -> u64 {
        let shift = self.offset_s.unsigned_abs().saturating_mul(NANOS_PER_SECOND);
        if self.offset_s < 0 { nanos.saturating_sub(shift) } else { nanos.saturating_add(shift) }
    }

    /// Returns the time from the clock's zero to `nanos`, in nanoseconds; `None` if `nanos` is earlier or the
    /// difference is too large.
    #[inline]
    fn unshifted(self, nanos: u64) -> Option<u64> {
        let shift = self.offset_s.unsigned_abs().saturating_mul(NANOS_PER_SECOND);
        if self.offset_s < 0 { nanos.checked_add(shift) } else { nanos.checked_sub(shift) }
    }
}

/// Returns the number of the first tick at or after `nanos` nanoseconds, for ticks that are a second halved
/// `halvings` times; `None` if the number does not fit into 64 bits.
fn halved(nanos: u64, halvings: u8) -> Option<u64> {
    let scaled = u128::from(nanos).checked_mul(1_u128.checked_shl(halvings.into())?)?;
    u64::try_from(scaled.div_ceil(NANOS_PER_SECOND.into())).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_resolution_counts_to_the_same_second() {
        let powers_of_ten = (0..=19).map(|power| (power as u8, 10u64.pow(power)));
        let powers_of_two = (0..64).map(|power| (0x80 | power as u8, 1u64 << power));
        for (resolution, ticks_a_second) in powers_of_ten.chain(powers_of_two) {
            let clock = Clock::new(resolution, 5);
            assert_eq!(clock.instant(0).as_nanos(), 5 * NANOS_PER_SECOND);
            assert_eq!(clock.instant(ticks_a_second).as_nanos(), 6 * NANOS_PER_SECOND);
        }
    }

    #[test]
    fn what_cannot_be_said_becomes_the_nearest() {
        assert_eq!(Clock::new(0, 0).instant(u64::MAX), Instant::from_nanos(u64::MAX));
        assert_eq!(Clock::new(0x80, i64::MAX).instant(u64::MAX), Instant::from_nanos(u64::MAX));
        assert_eq!(Clock::new(9, i64::MIN).instant(7), Instant::ZERO);
        assert_eq!(Clock::new(9, -1).instant(1_000_000_007), Instant::from_nanos(7));
        assert_eq!(Clock::new(0x7f, 0).instant(u64::MAX), Instant::ZERO);
        assert_eq!(Clock::new(0xff, 0).instant(u64::MAX), Instant::ZERO);
    }

    #[test]
    fn without_options_a_tick_is_a_microsecond() {
        assert_eq!(Clock::MICROS, Clock::new(6, 0));
    }

    #[test]
    fn ticks_come_back_from_the_instants_that_they_mean() {
        let fine = (0..=9).chain(0x80..=0x9d);
        for resolution in fine {
            let clock = Clock::new(resolution, -3);
            for ticks in [4 << 32, 1 << 33, (1 << 34) + 12_345_677] {
                let at = clock.instant(ticks);
                if at.as_nanos() < u64::MAX {
                    assert_eq!(clock.ticks(at), Some(ticks), "resolution {resolution:#x}");
                }
            }
        }
        for each in [1, 1_000] {
            let (clock, last) = (Clock::pcap(each), 999_999_999 / each);
            for ticks in [0, last, (7 << 32) | 5, (0xffff_ffff << 32) | last] {
                assert_eq!(clock.ticks(clock.instant(ticks)), Some(ticks));
            }
        }
    }

    #[test]
    fn what_comes_back_is_told_without_trying() {
        let clocks = (0..=u8::MAX).flat_map(|resolution| [0, 5].map(|s| Clock::new(resolution, s)));
        for clock in clocks.chain([1, 1_000].map(Clock::pcap)) {
            let edges = [0, 999_999, 1_000_000, 999_999_999, 1_000_000_000, u64::from(u32::MAX)];
            for ticks in
                edges.into_iter().chain([1 << 32, (9 << 32) | 7, u64::MAX / 1_000, u64::MAX])
            {
                let is_exact = clock.ticks(clock.instant(ticks)) == Some(ticks);
                assert_eq!(clock.is_exact(ticks), is_exact, "{clock:?} {ticks}");
            }
        }
    }

    #[test]
    fn what_an_instant_cannot_say_does_not_come_back_as_something_else() {
        let impossible = (7 << 32) | 1_000_000;
        assert_eq!(Clock::pcap(1_000).ticks(Clock::pcap(1_000).instant(impossible)), Some(8 << 32));
        let picos = Clock::new(12, 0);
        assert_eq!(picos.ticks(picos.instant(1_234_567)), Some(1_234_000));
        let seconds = Clock::new(0, 0);
        assert_eq!(seconds.ticks(seconds.instant(u64::MAX)), None);
        assert_eq!(Clock::new(6, 0).ticks(Instant::from_nanos(1_234)), None);
        for resolution in 0..=u8::MAX {
            for at in [0, 1, 1_000_000_007, u64::MAX] {
                let (clock, at) = (Clock::new(resolution, 1), Instant::from_nanos(at));
                assert!(clock.ticks(at).is_none_or(|ticks| clock.instant(ticks) == at));
            }
        }
    }
}
