//! The settings of the sender and the receivers of a room, and the stream.

use rxo_frame::{Duration, SharedBytes};
use rxo_tcp::{AckPolicy, Config, Control, GroupConfig, GroupSeed, Late, Repairs, Slow};
use rxo_wire::SeqNumber;

pub(crate) const ISS: SeqNumber = SeqNumber(u32::MAX - 100_000);

pub(crate) fn group_config() -> GroupConfig {
    GroupConfig {
        seed: GroupSeed { iss: ISS, timestamp_offset: 77 },
        buffer_bytes: 1 << 20,
        largest_segment_bytes: 1_448,
        large_send_bytes: 64_000,
        most_receivers: 2_000,
        slow: Slow::Eject(Duration::from_secs(10)),
        late: Late::Refuse,
        late_time: Some(Duration::from_secs(60)),
        repairs: Repairs::Group { least: 2 },
        control: Control::default(),
    }
}

/// Repairs losses by parity packets, as `rxo cast send` does for many receivers.
pub(crate) fn parity_config() -> GroupConfig {
    GroupConfig { repairs: Repairs::Parity, ..group_config() }
}

pub(crate) fn receiver_config() -> Config {
    Config {
        acks: AckPolicy::OneForATurn,
        ecn: false,
        time_wait: Duration::from_secs(1),
        min_rto: Duration::from_millis(50),
        initial_rto: Duration::from_millis(100),
        ..Config::default()
    }
}

/// Acknowledges like `rxo cast receive`: one of sixteen segments, each receiver a different one.
pub(crate) fn spread_config(offset: u16) -> Config {
    Config {
        acks: AckPolicy::Spread { segments: 16, offset },
        quick_acks: 4,
        delayed_ack: Duration::from_millis(5),
        receive_buffer_bytes: 2 << 20,
        ..receiver_config()
    }
}

pub(crate) fn stream(bytes: usize) -> SharedBytes {
    let bytes: Vec<u8> =
        (0..bytes as u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    bytes.into()
}
