//! The effects of a SYN: the peer's initial sequence number, and the features that both sides use.

use rxo_frame::Instant;

use crate::congestion::Congestion;
use crate::options::{SegmentOptions, TIMESTAMP_BYTES};
use crate::segment::Segment;
use crate::{Config, Connection};

impl<B: AsRef<[u8]>> Connection<B> {
    /// Processes the peer's SYN. A feature is used only if both sides offer it; this side makes its offers in
    /// its own SYN or SYN-ACK.
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

    /// Sets the window scales (RFC 7323, section 2.2): both sides scale their windows, or neither does.
    fn agree_scale(&mut self, options: &SegmentOptions) {
        let both = options.window_scale.filter(|_| self.config.window_scaling);
        self.agreed_on_scaling = both.is_some();
        self.snd.scale = both.map_or(0, |shift| shift.min(MAX_SCALE));
        self.rcv.scale = both.map_or(0, |_| self.offered_scale());
    }

    /// Returns the smallest window scale with which the whole of the largest receive buffer can be offered.
    pub(crate) fn offered_scale(&self) -> u8 {
        offered_scale(&self.config)
    }

    /// Returns Eff.snd.MSS (RFC 9293, section 3.7.1): the largest payload of a segment to the peer, in bytes.
    fn effective_mss(&self, options: &SegmentOptions) -> u32 {
        let default = if self.pair.source().is_ipv4() { DEFAULT_V4 } else { DEFAULT_V6 };
        let offered = options.maximum_segment_size.unwrap_or(default);
        let largest = u32::from(offered.min(self.config.maximum_segment_size));
        let taken = if self.timestamps.is_agreed { TIMESTAMP_BYTES } else { 0 };
        largest.saturating_sub(taken).max(LEAST)
    }
}

/// Returns the smallest valid receive buffer of `config`, in bytes: two units of its window scale. A window
/// is offered in whole units, so a buffer of less than one unit would never be offered.
pub(crate) fn least_receive_bytes(config: &Config) -> u32 {
    match offered_scale(config) {
        0 => 1,
        scale => 2 << scale,
    }
}

/// Returns the smallest window scale with which the largest receive buffer of `config` can be offered.
pub(crate) fn offered_scale(config: &Config) -> u8 {
    let bits = u32::BITS - config.largest_buffers().receive_bytes.leading_zeros();
    (bits.saturating_sub(u16::BITS) as u8).min(MAX_SCALE)
}

/// The largest window scale, in bits (RFC 7323, section 2.3).
const MAX_SCALE: u8 = 14;
/// The MSS in bytes to assume if the SYN has no MSS option (RFC 9293, section 3.7.1, MUST-15).
const DEFAULT_V4: u16 = 536;
const DEFAULT_V6: u16 = 1220;
/// The smallest segment in bytes: a peer that announces less would cause many packets with few bytes each.
const LEAST: u32 = 48;
