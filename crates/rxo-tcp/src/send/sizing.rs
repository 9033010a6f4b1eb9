//! The size of the next send: silly window avoidance and the Nagle algorithm, as one decision.
//!
//! Separate because the decision depends only on the fields of [`Sizing`], so every rule of the RFC can be
//! tested alone.

/// The input of the sender's algorithm (RFC 9293, sections 3.7.4 and 3.8.6.2.1), in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sizing {
    /// D: the number of bytes to send, including the FIN.
    pub(crate) unsent: u32,
    /// U: the usable part of the peer's window, in bytes.
    pub(crate) usable: u32,
    /// The usable part of the congestion window, in bytes.
    pub(crate) allowed: u32,
    /// Eff.snd.MSS: the length of a full segment's data, in bytes.
    pub(crate) mss: u32,
    /// Max(SND.WND): the largest window of the peer so far, in bytes.
    pub(crate) max_window: u32,
    /// The largest payload of a GSO frame, in bytes.
    pub(crate) large_send: u32,
    /// `true` if sent data is not acknowledged yet.
    pub(crate) is_outstanding: bool,
    /// `true` if the Nagle algorithm is on.
    pub(crate) nagle: bool,
}

/// The reason why nothing may be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Held {
    /// There is nothing to send.
    Nothing,
    /// The peer's window has too little space for a segment.
    ByWindow,
    /// The congestion window has too little space for a segment.
    ByCongestion,
    /// There is less than a segment, and data is outstanding (Nagle).
    ByNagle,
}

impl Sizing {
    /// Returns the number of bytes to send at once: full segments, possibly with a shorter one at the end.
    ///
    /// # Errors
    /// Returns the reason if nothing may be sent.
    pub(crate) fn next_send(&self) -> Result<u32, Held> {
        let within_window = self.unsent.min(self.usable);
        let full = self.full_segments(within_window);
        if full > 0 {
            return Ok(full);
        }
        match self.small_segment(within_window) {
            Ok(bytes) if bytes > self.allowed => Err(Held::ByCongestion),
            Err(_) if within_window >= self.mss => Err(Held::ByCongestion),
            result => result,
        }
    }

    /// Returns the number of bytes to send in full segments, by rule 1 of RFC 9293, section 3.8.6.2.1: min(D,
    /// U) >= Eff.snd.MSS. Includes a shorter last segment if everything may be sent. 0 if there is no full
    /// segment.
    fn full_segments(&self, within_window: u32) -> u32 {
        let most = within_window.min(self.allowed).min(self.large_send.max(self.mss));
        let full = most - most % self.mss;
        let takes_the_rest = most == self.unsent && !self.nagle;
        if full > 0 && takes_the_rest { most } else { full }
    }

    /// Returns the number of bytes to send if no full segment can be sent, by rules 2 and 3 of RFC 9293,
    /// section 3.8.6.2.1. If nothing may be sent, returns the reason.
    fn small_segment(&self, within_window: u32) -> Result<u32, Held> {
        if self.unsent == 0 {
            return Err(Held::Nothing);
        }
        if within_window >= self.mss {
            // Only the congestion window blocks the segment.
            return Err(Held::ByCongestion);
        }
        let is_all = self.unsent <= self.usable;
        let is_half_the_window = within_window > 0 && within_window >= self.max_window / 2;
        if !is_all && !is_half_the_window {
            return Err(Held::ByWindow);
        }
        if self.nagle && self.is_outstanding { Err(Held::ByNagle) } else { Ok(within_window) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOM: Sizing = Sizing {
        unsent: 0,
        usable: 100_000,
        allowed: 100_000,
        mss: 1000,
        max_window: 100_000,
        large_send: 5_000,
        is_outstanding: false,
        nagle: true,
    };

    #[test]
    fn nothing_is_nothing() {
        assert_eq!(ROOM.next_send(), Err(Held::Nothing));
    }

    #[test]
    fn a_large_send_is_full_segments() {
        assert_eq!(Sizing { unsent: 4_500, ..ROOM }.next_send(), Ok(4_000));
        assert_eq!(Sizing { unsent: 99_999, ..ROOM }.next_send(), Ok(5_000));
        assert_eq!(Sizing { unsent: 4_500, allowed: 2_700, ..ROOM }.next_send(), Ok(2_000));
        assert_eq!(Sizing { unsent: 4_500, usable: 1_999, ..ROOM }.next_send(), Ok(1_000));
        assert_eq!(Sizing { unsent: 4_500, large_send: 0, ..ROOM }.next_send(), Ok(1_000));
    }

    #[test]
    fn the_end_rides_along_without_nagle() {
        assert_eq!(Sizing { unsent: 4_500, nagle: false, ..ROOM }.next_send(), Ok(4_500));
        assert_eq!(Sizing { unsent: 5_500, nagle: false, ..ROOM }.next_send(), Ok(5_000));
    }

    /// Less than a segment waits while data is outstanding, unless Nagle is off (RFC 9293, section 3.7.4,
    /// MUST-17).
    #[test]
    fn little_waits_for_what_is_outstanding() {
        let little = Sizing { unsent: 10, ..ROOM };
        assert_eq!(little.next_send(), Ok(10));
        let waiting = Sizing { is_outstanding: true, ..little };
        assert_eq!(waiting.next_send(), Err(Held::ByNagle));
        assert_eq!(Sizing { nagle: false, ..waiting }.next_send(), Ok(10));
    }

    /// A nearly closed window is not used (RFC 9293, section 3.8.6.2.1, MUST-38).
    #[test]
    fn a_silly_window_is_not_used() {
        let silly = Sizing { unsent: 5_000, usable: 900, ..ROOM };
        assert_eq!(silly.next_send(), Err(Held::ByWindow));
        assert_eq!(Sizing { usable: 0, ..silly }.next_send(), Err(Held::ByWindow));
        // If the peer's buffer is small, half of its largest window is worth sending.
        assert_eq!(Sizing { max_window: 1_800, ..silly }.next_send(), Ok(900));
    }

    #[test]
    fn congestion_is_named() {
        let held = Sizing { unsent: 5_000, allowed: 900, ..ROOM };
        assert_eq!(held.next_send(), Err(Held::ByCongestion));
        assert_eq!(Sizing { unsent: 10, allowed: 9, ..ROOM }.next_send(), Err(Held::ByCongestion));
    }
}
