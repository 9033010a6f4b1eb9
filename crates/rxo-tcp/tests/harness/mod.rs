//! The shared part of the property tests and the fuzz targets: any bytes are a script.
//!
//! `hostile.rs` gives any segments to a connection in any state. `endless.rs` simulates peers that never
//! finish. `pair.rs` connects two connections by a faulty network, checked by `model.rs`.
//! `twin.rs` compares fast paths with the steps. `wire.rs` is a segment in flight; `run.rs` puts segments
//! into frames.

pub(crate) mod endless;
pub(crate) mod hostile;
pub(crate) mod model;
pub(crate) mod pair;
pub(crate) mod run;
pub(crate) mod twin;
pub(crate) mod wire;

use rxo_tcp::{AckPolicy, Algorithm, Buffers, Config};

/// Reads a script. A script that has ended yields zeros.
pub(crate) struct Script<'a> {
    rest: &'a [u8],
}

impl<'a> Script<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    pub(crate) fn has_more(&self) -> bool {
        !self.rest.is_empty()
    }

    pub(crate) fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.rest.split_first() else { return 0 };
        self.rest = rest;
        *first
    }

    pub(crate) fn word(&mut self) -> u16 {
        u16::from_be_bytes([self.byte(), self.byte()])
    }

    pub(crate) fn long(&mut self) -> u32 {
        u32::from(self.word()) << 16 | u32::from(self.word())
    }

    /// Returns an arbitrary grant of buffers, mostly within the configured limits.
    pub(crate) fn buffers(&mut self) -> Buffers {
        let mut bytes = || u32::from(self.word()) * 4;
        Buffers { send_bytes: bytes(), receive_bytes: bytes() }
    }

    /// Returns settings with every switch in either position, and sometimes little memory.
    pub(crate) fn config(&mut self) -> Config {
        let (switches, sizes) = (self.byte(), self.byte());
        let is_on = |bit: u8| switches >> bit & 1 == 1;
        let pick =
            |bit: u8, small: u32, large: u32| if sizes >> bit & 1 == 1 { small } else { large };
        let stretch = AckPolicy::OneForATurn;
        Config {
            nagle: is_on(0),
            acks: if is_on(1) { stretch } else { AckPolicy::EverySecondSegment },
            timestamps: is_on(2),
            window_scaling: is_on(3),
            sack: is_on(4),
            ecn: is_on(5),
            congestion: match (is_on(6), sizes >> 6 & 1 == 1) {
                (_, true) => Algorithm::Bbr,
                (true, _) => Algorithm::Reno,
                (false, _) => Algorithm::Cubic,
            },
            restart_after_idle: sizes >> 7 == 1,
            largest_buffers: is_on(7).then_some(LARGEST_BUFFERS),
            send_buffer_bytes: pick(0, 700, 60_000),
            receive_buffer_bytes: pick(1, 900, 70_000),
            most_unsent_bytes: ((switches ^ sizes) & 1 == 1).then_some(3_000),
            receive_pieces: pick(2, 4, 128) as usize,
            sent_ranges: pick(3, 32, 256) as usize,
            maximum_segment_size: pick(4, 90, 1000) as u16,
            large_send_bytes: pick(5, 0, 20_000),
            ..Config::default()
        }
    }
}

/// The largest buffers that an owner may grant if buffers grow.
pub(crate) const LARGEST_BUFFERS: Buffers = Buffers { send_bytes: 150_000, receive_bytes: 200_000 };

/// Returns the byte of a stream at the sequence number or position `seq`.
pub(crate) fn stream_byte(seq: u32) -> u8 {
    (seq ^ seq >> 8 ^ seq >> 16) as u8
}
