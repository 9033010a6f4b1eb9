//! From what a file counts time in to nanoseconds.

use rxo_frame::Instant;

const NANOS_PER_SECOND: u64 = 1_000_000_000;

/// The clock of an interface: how long a tick is, and where zero is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ticks {
    length: Length,
    /// Seconds from 1970 UTC to the clock's zero.
    offset_s: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Length {
    /// This many nanoseconds a tick.
    Nanos(u64),
    /// This many ticks a nanosecond.
    PerNano(u64),
    /// So many halvings of a second.
    Halvings(u8),
}

impl Ticks {
    /// Microseconds since 1970: what pcapng means when it says nothing.
    pub(super) const MICROS: Self = Self { length: Length::Nanos(1_000), offset_s: 0 };

    /// The clock that pcapng's options `if_tsresol` and `if_tsoffset` describe: with the high bit
    /// set, the resolution is a power of two, else of ten (draft-ietf-opsawg-pcapng 4.2).
    pub(super) fn new(resolution: u8, offset_s: i64) -> Self {
        let length = match resolution {
            0..=9 => Length::Nanos(10u64.pow(9 - u32::from(resolution))),
            // So fine that 64 bits of ticks are no nanosecond.
            10..=0x7f => 10u64
                .checked_pow(u32::from(resolution) - 9)
                .map_or(Length::Nanos(0), Length::PerNano),
            0x80.. => Length::Halvings(resolution & 0x7f),
        };
        Self { length, offset_s }
    }

    /// When `ticks` was. What 64 bits of nanoseconds since 1970 cannot say becomes the nearest
    /// that they can.
    #[inline]
    pub(super) fn instant(self, ticks: u64) -> Instant {
        let nanos = match self.length {
            Length::Nanos(nanos) => ticks.saturating_mul(nanos),
            Length::PerNano(ticks_per_nano) => ticks / ticks_per_nano,
            Length::Halvings(halvings) => {
                let nanos = (u128::from(ticks) * u128::from(NANOS_PER_SECOND)) >> halvings;
                u64::try_from(nanos).unwrap_or(u64::MAX)
            }
        };
        Instant::from_nanos(self.shifted(nanos))
    }

    #[inline]
    fn shifted(self, nanos: u64) -> u64 {
        let shift = self.offset_s.unsigned_abs().saturating_mul(NANOS_PER_SECOND);
        if self.offset_s < 0 { nanos.saturating_sub(shift) } else { nanos.saturating_add(shift) }
    }
}

/// The instant that pcap's seconds and fraction mean, with so many nanoseconds per unit of the
/// fraction.
#[inline]
pub(super) fn seconds_and(fraction: u32, seconds: u32, nanos_each: u64) -> Instant {
    let nanos = u64::from(seconds) * NANOS_PER_SECOND + u64::from(fraction) * nanos_each;
    Instant::from_nanos(nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_resolution_counts_to_the_same_second() {
        let powers_of_ten = (0..=19).map(|power| (power as u8, 10u64.pow(power)));
        let powers_of_two = (0..64).map(|power| (0x80 | power as u8, 1u64 << power));
        for (resolution, ticks_a_second) in powers_of_ten.chain(powers_of_two) {
            let clock = Ticks::new(resolution, 5);
            assert_eq!(clock.instant(0).as_nanos(), 5 * NANOS_PER_SECOND);
            assert_eq!(clock.instant(ticks_a_second).as_nanos(), 6 * NANOS_PER_SECOND);
        }
    }

    #[test]
    fn what_cannot_be_said_becomes_the_nearest() {
        assert_eq!(Ticks::new(0, 0).instant(u64::MAX), Instant::from_nanos(u64::MAX));
        assert_eq!(Ticks::new(0x80, i64::MAX).instant(u64::MAX), Instant::from_nanos(u64::MAX));
        assert_eq!(Ticks::new(9, i64::MIN).instant(7), Instant::ZERO);
        assert_eq!(Ticks::new(9, -1).instant(1_000_000_007), Instant::from_nanos(7));
        assert_eq!(Ticks::new(0x7f, 0).instant(u64::MAX), Instant::ZERO);
        assert_eq!(Ticks::new(0xff, 0).instant(u64::MAX), Instant::ZERO);
    }

    #[test]
    fn without_options_a_tick_is_a_microsecond() {
        assert_eq!(Ticks::MICROS, Ticks::new(6, 0));
    }
}
