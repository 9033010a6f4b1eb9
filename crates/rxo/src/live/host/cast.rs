//! The settings of hosts that send or receive a cast: those of `rxo cast`, and of what measures it.

use std::time::Duration;

use rxo_host::HostConfig;
use rxo_tcp::{AckPolicy, KeepAlive};

/// Changes `config` for the sender of a cast. Its connections have small buffers of their own, because their text is the
/// group's; timers are for a local network; the SYN of a receiver that is gone is forgotten soon. Marks of ECN cannot
/// be answered to a group.
pub fn cast_sender(config: &mut HostConfig) {
    config.tcp.ecn = false;
    config.tcp.nagle = false;
    config.tcp.send_buffer_bytes = OWN_BYTES;
    config.tcp.receive_buffer_bytes = OWN_BYTES;
    config.tcp.largest_buffers = None;
    config.tcp.min_rto = LEAST_TIMEOUT;
    config.tcp.handshake_timeout = HANDSHAKE;
}

/// Changes `config` for a receiver of a cast: few acknowledgements, at other segments than those of most other receivers; a
/// window that does not limit the group; a sender that is gone is noticed. Marks of ECN cannot be answered to a group.
pub fn cast_receiver(config: &mut HostConfig) {
    // The secret is random.
    let offset = (config.secret[0] % u64::from(CAST_SEGMENTS_FOR_AN_ACK)) as u16;
    config.tcp.acks = AckPolicy::Spread { segments: CAST_SEGMENTS_FOR_AN_ACK, offset };
    config.tcp.quick_acks = CAST_QUICK_ACKS;
    config.tcp.delayed_ack = CAST_DELAYED_ACK;
    config.tcp.receive_buffer_bytes = CAST_WINDOW_BYTES;
    config.tcp.receive_pieces = PIECES;
    config.tcp.largest_buffers = None;
    config.tcp.ecn = false;
    config.tcp.keep_alive = Some(KEEP_ALIVE);
}

/// A receiver acknowledges one of so many segments. Chan and Cheriton's 168 receivers must have sent one for ten
/// segments or more: their return link takes no more.
pub const CAST_SEGMENTS_FOR_AN_ACK: u16 = 16;
/// The first so many segments are acknowledged one by one, until the sender's window is larger than what waits for an
/// acknowledgement.
pub const CAST_QUICK_ACKS: u16 = 32;
/// A sender whose window is smaller waits for this.
pub const CAST_DELAYED_ACK: Duration = Duration::from_millis(5);
/// The least window of all receivers limits the group, in bytes: 16 ms at 1 Gbit/s.
pub const CAST_WINDOW_BYTES: u32 = 2 << 20;
/// Text that not all receivers have, in bytes: more than the window of any.
pub const CAST_BUFFER_BYTES: u32 = 4 << 20;

/// Each connection's own memory for text, in each direction.
const OWN_BYTES: u32 = 32 << 10;
const LEAST_TIMEOUT: Duration = Duration::from_millis(50);
const HANDSHAKE: Duration = Duration::from_secs(10);
/// Segments of 1,448 bytes in such a window, and some that are smaller.
const PIECES: usize = 2_048;
/// A sender that is gone is noticed within 20 s.
const KEEP_ALIVE: KeepAlive =
    KeepAlive { idle: Duration::from_secs(10), interval: Duration::from_secs(2), probes: 5 };
