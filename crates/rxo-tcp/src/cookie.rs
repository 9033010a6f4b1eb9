//! SYN cookies (RFC 4987, section 3.6): a listener whose queue is full stores nothing for a SYN. Instead its
//! SYN-ACK encodes the state of the connection.
//!
//! The initial sequence number consists of 5 bits of a clock that ticks every 64 seconds, 3 bits for a segment
//! size, and 24 bits of a keyed hash. The hash covers the connection, the peer's initial sequence number and
//! the first 8 bits. A peer with timestamps echoes the lowest 6 bits of this side's timestamp, which encode the
//! peer's window scale, SACK and ECN. Without timestamps these features are not used. The segment size is
//! always rounded down to one of eight.
//!
//! Separate from the connection because no connection exists yet. Memory is allocated only when a valid
//! ACK arrives, which an attacker cannot guess.

use alloc::sync::Arc;

use rxo_frame::{ConfigError, Instant};
use rxo_wire::tcp::Timestamp;
use rxo_wire::{FlowKey, SeqNumber, TcpFlags};

use crate::arrives::offered_scale;
use crate::options::{OptionBytes, SegmentOptions};
use crate::segment::{Ecn, Segment};
use crate::state::{Syn, SynReceived};
use crate::timestamps::Timestamps;
use crate::{Config, Connection, Secret, State, Transmit, isn};

/// Creates and checks the SYN cookies of one listener.
#[derive(Clone, Debug)]
pub struct SynCookies {
    config: Arc<Config>,
    secret: Secret,
}

impl SynCookies {
    /// Creates cookies for connections with `config`.
    ///
    /// # Errors
    /// Returns an error if a setting is invalid.
    pub fn new(config: impl Into<Arc<Config>>, secret: Secret) -> Result<Self, ConfigError> {
        let config = config.into();
        config.check()?;
        Ok(Self { config, secret })
    }

    /// Returns the SYN-ACK that answers `syn`. `pair` is the flow key of the SYN-ACK. Stores nothing and does
    /// not allocate.
    #[must_use]
    pub fn answer<B: AsRef<[u8]>>(
        &self,
        pair: &FlowKey,
        syn: &Segment<B>,
        now: Instant,
    ) -> Transmit<'static> {
        let size = size_index(pair, syn.options.maximum_segment_size);
        let agrees_on_ecn = self.config.ecn && syn.has_all(TcpFlags::ECE | TcpFlags::CWR);
        // Without timestamps the features agreed on could not be encoded.
        let offered = syn.options.timestamp.filter(|_| self.config.timestamps);
        let ece = match (agrees_on_ecn, offered) {
            (true, Some(_)) => TcpFlags::ECE,
            _ => TcpFlags::default(),
        };
        Transmit {
            seq: self.cookie(pair, syn.seq, ticks(now), size),
            ack: syn.seq + 1,
            flags: TcpFlags::SYN | TcpFlags::ACK | ece,
            window: u16::try_from(self.config.receive_buffer_bytes).unwrap_or(u16::MAX),
            options: self.options(pair, &syn.options, offered, agrees_on_ecn, now),
            ..Transmit::default()
        }
    }

    /// Opens a connection if `segment` acknowledges a cookie of the current or the previous tick of 64 s. The
    /// returned connection has already processed the segment.
    ///
    /// # Errors
    /// Returns `segment` if it does not acknowledge a valid cookie.
    pub fn open<B: AsRef<[u8]>>(
        &self,
        pair: FlowKey,
        segment: Segment<B>,
        now: Instant,
    ) -> Result<Connection<B>, Segment<B>> {
        let Some(size) = self.check(&pair, &segment, now) else { return Err(segment) };
        let Ok(mut connection) =
            Connection::open_passive(Arc::clone(&self.config), pair, self.secret)
        else {
            return Err(segment);
        };
        connection.open_by_cookie(now, segment, size);
        Ok(connection)
    }

    /// Returns the segment size in bytes that a cookie encodes; `None` if the cookie is invalid.
    fn check<B>(&self, pair: &FlowKey, segment: &Segment<B>, now: Instant) -> Option<u16> {
        let is_answer = segment.has(TcpFlags::ACK) && !segment.has(TcpFlags::SYN | TcpFlags::RST);
        if !is_answer {
            return None;
        }
        let (cookie, irs) = (segment.ack.0.wrapping_sub(1), segment.seq.0.wrapping_sub(1));
        let age = ticks(now).wrapping_sub(u64::from(cookie >> 27)) & 31;
        let made_at = ticks(now).checked_sub(age).filter(|_| age <= OLDEST_TICKS)?;
        let size = (cookie >> 24 & 7) as usize;
        let is_ours = self.cookie(pair, SeqNumber(irs), made_at, size) == SeqNumber(cookie);
        is_ours.then(|| SIZES[size])
    }

    fn cookie(&self, pair: &FlowKey, irs: SeqNumber, ticks: u64, size: usize) -> SeqNumber {
        let values = ticks << 35 | u64::from(irs.0) << 3 | size as u64;
        let hash = isn::cookie_hash(self.secret, pair, values) & 0x00ff_ffff;
        SeqNumber(((ticks & 31) as u32) << 27 | (size as u32) << 24 | hash)
    }

    fn options(
        &self,
        pair: &FlowKey,
        theirs: &SegmentOptions,
        offered: Option<Timestamp>,
        agrees_on_ecn: bool,
        now: Instant,
    ) -> OptionBytes {
        let mut options = OptionBytes::default();
        options.push_maximum_segment_size(self.config.maximum_segment_size);
        let Some(offered) = offered else { return options };
        let has_sack = self.config.sack && theirs.is_sack_permitted;
        let scale = theirs.window_scale.filter(|_| self.config.window_scaling);
        if has_sack {
            options.push_sack_permitted();
        }
        let agreed = Agreed { scale, has_sack, has_ecn: agrees_on_ecn };
        let clock = Timestamps::new(isn::timestamp_offset(self.secret, pair)).clock(now);
        let value = agreed.write(clock);
        options.push_timestamp(Timestamp { value, echo: offered.value });
        if scale.is_some() {
            options.push_window_scale(offered_scale(&self.config));
        }
        options
    }
}

/// The TCP features that a connection uses if a cookie opens it. The cookie encodes them in the lowest 6 bits
/// of a timestamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Agreed {
    scale: Option<u8>,
    has_sack: bool,
    has_ecn: bool,
}

impl Agreed {
    /// Returns the latest timestamp value that is not after `clock` and encodes these features.
    fn write(self, clock: u32) -> u32 {
        let scale = u32::from(self.scale.map_or(NO_SCALE, |scale| scale.min(14)));
        let bits = scale | u32::from(self.has_sack) << 4 | u32::from(self.has_ecn) << 5;
        let value = clock & !63 | bits;
        if bits > clock & 63 { value.wrapping_sub(64) } else { value }
    }

    fn read(echo: u32) -> Self {
        let scale = (echo & 15) as u8;
        Self {
            scale: (scale != NO_SCALE).then_some(scale),
            has_sack: echo & 16 != 0,
            has_ecn: echo & 32 != 0,
        }
    }
}

impl<B: AsRef<[u8]>> Connection<B> {
    /// Processes the SYN that the cookie reconstructs, then `segment`, which acknowledges the SYN-ACK.
    fn open_by_cookie(&mut self, now: Instant, segment: Segment<B>, size: u16) {
        let (iss, irs) = (segment.ack.0.wrapping_sub(1), segment.seq.0.wrapping_sub(1));
        self.snd.start(SeqNumber(iss));
        let timestamp = segment.options.timestamp.filter(|_| self.config.timestamps);
        let agreed = timestamp.map(|timestamp| Agreed::read(timestamp.echo));
        let asks = agreed.is_some_and(|agreed| agreed.has_ecn);
        let ecn = if asks { TcpFlags::ECE | TcpFlags::CWR } else { TcpFlags::default() };
        let syn = Segment {
            seq: SeqNumber(irs),
            ack: SeqNumber::default(),
            flags: TcpFlags::SYN | ecn,
            window: segment.window,
            options: SegmentOptions {
                maximum_segment_size: Some(size),
                window_scale: agreed.and_then(|agreed| agreed.scale),
                is_sack_permitted: agreed.is_some_and(|agreed| agreed.has_sack),
                timestamp,
                ..SegmentOptions::default()
            },
            payload: None,
            ecn: Ecn::NotCapable,
            arrived_at: segment.arrived_at,
        };
        self.take_syn(now, &syn);
        let sent = Syn { is_due: false, ..Syn::default() };
        self.state = State::SynReceived(SynReceived { syn: sent, is_passive: true });
        self.start_handshake(now);
        self.on_arrival(now, segment.into());
    }
}

fn ticks(now: Instant) -> u64 {
    now.as_nanos() / NANOS_PER_TICK
}

/// Returns the index of the largest size in [`SIZES`] that does not exceed the segment size `offered` by the
/// peer.
fn size_index(pair: &FlowKey, offered: Option<u16>) -> usize {
    let default = if pair.source().is_ipv4() { 536 } else { 1220 };
    let offered = offered.unwrap_or(default);
    SIZES.iter().rposition(|size| *size <= offered).unwrap_or(0)
}

/// The segment sizes in bytes that a cookie can encode: common sizes on the Internet, and two of jumbo
/// frames.
const SIZES: [u16; 8] = [64, 536, 1220, 1360, 1440, 1460, 4312, 8940];
const NANOS_PER_TICK: u64 = 64_000_000_000;
/// The age limit of a cookie in ticks: it is valid in the tick in which it was made and in the next tick.
const OLDEST_TICKS: u64 = 1;
const NO_SCALE: u8 = 15;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rxo_frame::Duration;

    const PAIR: FlowKey = FlowKey::v4(0x0a00_0001, 0x0a00_0002, 80 << 16 | 5_000, 0);
    const NOW: Instant = Instant::from_micros(1_000_000_000_000);

    fn cookies() -> SynCookies {
        SynCookies::new(Config::default(), Secret([1, 2])).unwrap()
    }

    fn segment(seq: u32, ack: u32, flags: TcpFlags, options: SegmentOptions) -> Segment<Vec<u8>> {
        Segment {
            seq: SeqNumber(seq),
            ack: SeqNumber(ack),
            flags,
            window: 1_000,
            options,
            payload: None,
            ecn: Ecn::NotCapable,
            arrived_at: NOW,
        }
    }

    use alloc::vec::Vec;

    fn offers(size: u16, timestamp: bool) -> SegmentOptions {
        SegmentOptions {
            maximum_segment_size: Some(size),
            window_scale: Some(7),
            is_sack_permitted: true,
            timestamp: timestamp.then_some(Timestamp { value: 77, echo: 0 }),
            ..SegmentOptions::default()
        }
    }

    /// Opens a connection by its cookie, acknowledged after the time `later`.
    fn opened(
        options: SegmentOptions,
        flags: TcpFlags,
        later: Duration,
    ) -> Option<Connection<Vec<u8>>> {
        let answer = cookies().answer(&PAIR, &segment(99, 0, TcpFlags::SYN | flags, options), NOW);
        let echoed = SegmentOptions::read(answer.options.as_slice()).timestamp;
        let back = SegmentOptions {
            timestamp: echoed.map(|ours| Timestamp { value: 78, echo: ours.value }),
            ..SegmentOptions::default()
        };
        let ack = segment(100, answer.seq.0.wrapping_add(1), TcpFlags::ACK, back);
        cookies().open(PAIR, ack, NOW + later).ok()
    }

    /// With timestamps, all features agreed on are recovered from the numbers (RFC 4987, section 3.6).
    #[test]
    fn with_timestamps_everything_comes_back() {
        let ask = TcpFlags::ECE | TcpFlags::CWR;
        let connection = opened(offers(1460, true), ask, Duration::from_secs(1)).unwrap();
        assert_eq!(connection.state(), State::Established);
        let seen = connection.statistics();
        assert!(seen.timestamps && seen.sack && seen.ecn);
        assert_eq!(seen.mss, 1460 - 12);
        assert_eq!(seen.snd_wnd, 1_000 << 7);
        assert_eq!(seen.rcv_nxt, SeqNumber(100));
    }

    #[test]
    fn without_timestamps_all_but_the_size_is_lost() {
        let connection = opened(offers(1400, false), TcpFlags::default(), Duration::ZERO).unwrap();
        let seen = connection.statistics();
        assert!(!seen.timestamps && !seen.sack && !seen.ecn);
        assert_eq!((seen.mss, seen.snd_wnd), (1360, 1_000));
    }

    #[test]
    fn an_old_cookie_is_none() {
        assert!(opened(offers(1460, true), TcpFlags::default(), Duration::from_secs(60)).is_some());
        assert!(
            opened(offers(1460, true), TcpFlags::default(), Duration::from_secs(130)).is_none()
        );
    }

    #[test]
    fn a_guess_is_none() {
        for guess in (0..200_000_u32).map(|n| n.wrapping_mul(2_654_435_761)) {
            let ack = segment(100, guess, TcpFlags::ACK, SegmentOptions::default());
            // One in 2²⁴ of the guesses with a right clock would be valid.
            assert!(cookies().open(PAIR, ack, NOW).is_err());
        }
    }

    proptest! {
        #[test]
        fn the_timestamp_never_is_of_the_future(clock: u32, scale in prop::option::of(0_u8..15), has_sack: bool, has_ecn: bool) {
            let agreed = Agreed { scale, has_sack, has_ecn };
            let value = agreed.write(clock);
            prop_assert!(clock.wrapping_sub(value) < 64);
            prop_assert_eq!(Agreed::read(value), agreed);
        }
    }
}
