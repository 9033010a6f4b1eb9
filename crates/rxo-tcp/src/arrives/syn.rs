//! What a SYN determines: the peer's initial sequence number, and which features both sides use.

use rxo_frame::Instant;

use crate::congestion::Congestion;
use crate::options::{SegmentOptions, TIMESTAMP_BYTES};
use crate::segment::Segment;
use crate::{Config, Connection};

impl<B: AsRef<[u8]>> Connection<B> {
    /// Takes the peer's SYN. A feature is used if both sides offer it. This side has offered it in its SYN,
    /// or will in its SYN-ACK.
    pub(crate) fn take_syn(&mut self, now: Instant, segment: &Segment<B>) {
        let options = &segment.options;
        self.rcv.start(segment.seq);
        self.timestamps.agree(options.timestamp, self.config.timestamps, now);
        self.timestamps.last_ack = self.rcv.nxt;
        self.uses_sack = self.config.sack && options.is_sack_permitted;
        self.ecn.agree(segment.flags, self.config.uses_ecn());
        self.agree_scale(options);
        self.snd.mss = self.effective_mss(options);
        self.path.start(self.snd.mss);
        self.begin_on_known_path();
        self.recovery.start(self.uses_sack, self.snd.mss);
        self.congestion = Congestion::new(&self.config, self.snd.mss);
        // The window of a SYN is never scaled (RFC 7323, section 2.2).
        self.snd.set_window(segment.seq, segment.ack, segment.window.into());
    }

    /// RFC 7323, section 2.2: both sides scale their windows, or none does.
    fn agree_scale(&mut self, options: &SegmentOptions) {
        let both = options.window_scale.filter(|_| self.config.window_scaling);
        self.agreed_on_scaling = both.is_some();
        self.snd.scale = both.map_or(0, |shift| shift.min(MAX_SCALE));
        self.rcv.scale = both.map_or(0, |_| self.offered_scale());
    }

    /// The scale that lets all of the largest receive buffer be offered.
    pub(crate) fn offered_scale(&self) -> u8 {
        offered_scale(&self.config)
    }

    /// RFC 9293, section 3.7.1: Eff.snd.MSS.
    fn effective_mss(&self, options: &SegmentOptions) -> u32 {
        let default = if self.pair.source().is_ipv4() { DEFAULT_V4 } else { DEFAULT_V6 };
        let offered = options.maximum_segment_size.unwrap_or(default);
        let largest = u32::from(offered.min(self.config.maximum_segment_size));
        let taken = if self.timestamps.is_agreed { TIMESTAMP_BYTES } else { 0 };
        largest.saturating_sub(taken).max(LEAST)
    }
}

/// The smallest receive buffer of `config`, in bytes: a window is offered in whole units of its scale, so a
/// buffer of less than a unit would never be offered.
pub(crate) fn least_receive_bytes(config: &Config) -> u32 {
    match offered_scale(config) {
        0 => 1,
        scale => 2 << scale,
    }
}

/// The window scale that the largest receive buffer of `config` is offered with.
pub(crate) fn offered_scale(config: &Config) -> u8 {
    let bits = u32::BITS - config.largest_buffers().receive_bytes.leading_zeros();
    (bits.saturating_sub(u16::BITS) as u8).min(MAX_SCALE)
}

/// RFC 7323, section 2.3.
const MAX_SCALE: u8 = 14;
/// RFC 9293, section 3.7.1 (MUST-15).
const DEFAULT_V4: u16 = 536;
const DEFAULT_V6: u16 = 1220;
/// A peer that asks for less wants many packets made of few bytes.
const LEAST: u32 = 48;
