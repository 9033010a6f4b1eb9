//! Settings of hosts that send or receive a cast (one file to many hosts), for `rxo cast` and for programs
//! that measure it.

use std::time::Duration;

use rxo_host::HostConfig;
use rxo_host::link::Probe;
use rxo_tcp::{AckPolicy, KeepAlive};

/// Changes `config` for the sender of a cast. Each of its connections has small buffers, because the data is in
/// the group's buffer. The timers suit a local network, and the sender soon abandons a handshake with a
/// receiver that has gone. ECN is off, because a group cannot respond to congestion marks.
pub fn cast_sender(config: &mut HostConfig) {
    config.tcp.ecn = false;
    config.tcp.nagle = false;
    config.tcp.send_buffer_bytes = OWN_BYTES;
    config.tcp.receive_buffer_bytes = OWN_BYTES;
    config.tcp.largest_buffers = None;
    config.tcp.min_rto = LEAST_TIMEOUT;
    join_soon(config);
    config.tcp.handshake_timeout = HANDSHAKE;
}

/// Changes `config` for a receiver of a cast. The receiver sends few ACKs, and different receivers acknowledge
/// different segments. Its receive window is [`CAST_WINDOW_BYTES`], because the smallest window of all
/// receivers limits the group. Its keep-alive probes detect a sender that has gone. ECN is off, because a group
/// cannot respond to congestion marks.
pub fn cast_receiver(config: &mut HostConfig) {
    // The secret is random, so receivers have different offsets.
    let offset = (config.secret[0] % u64::from(CAST_SEGMENTS_FOR_AN_ACK)) as u16;
    config.tcp.acks = AckPolicy::Spread { segments: CAST_SEGMENTS_FOR_AN_ACK, offset };
    config.tcp.quick_acks = CAST_QUICK_ACKS;
    config.tcp.delayed_ack = CAST_DELAYED_ACK;
    config.tcp.receive_buffer_bytes = CAST_WINDOW_BYTES;
    config.tcp.receive_pieces = PIECES;
    config.tcp.largest_buffers = None;
    config.sockets = RECEIVER_CONNECTIONS;
    config.tcp.ecn = false;
    config.tcp.keep_alive = Some(KEEP_ALIVE);
    join_soon(config);
}

/// Shortens the timers of joining: all hosts of a cast are on one local network.
fn join_soon(config: &mut HostConfig) {
    config.tcp.initial_rto = INITIAL_TIMEOUT;
    config.probe = config.probe.map(|probe| Probe { interval: PROBE_INTERVAL, ..probe });
}

/// The number of segments per ACK of a receiver. In the paper of Chan and Cheriton, each of 168 receivers sent at most
/// one ACK per ten segments, because their return link had no more capacity.
pub const CAST_SEGMENTS_FOR_AN_ACK: u16 = 16;
/// The number of segments at the start of a connection that a receiver acknowledges one by one. After these
/// segments, the sender's window is larger than the data that waits for an ACK.
pub const CAST_QUICK_ACKS: u16 = 32;
/// The maximum time for which a receiver delays an ACK. This time matters if the sender's window is smaller than
/// [`CAST_SEGMENTS_FOR_AN_ACK`] segments.
pub const CAST_DELAYED_ACK: Duration = Duration::from_millis(5);
/// The largest receive window of a receiver in bytes, 16 ms at 1 Gbit/s; memory and the device's receive queue may leave
/// less. The smallest window of all receivers limits the group.
pub const CAST_WINDOW_BYTES: u32 = 2 << 20;
/// The maximum number of connections of a receiver: that of the cast, and some that ask for blocks again or are closing.
/// A host with few connections gives each a larger part of the device's receive queue as its first window.
const RECEIVER_CONNECTIONS: usize = 4;
/// The sender's buffer for data that not all receivers have acknowledged, in bytes: more than the window of any
/// receiver.
pub const CAST_BUFFER_BYTES: u32 = 4 << 20;

/// The buffer of each of the sender's connections for its own data, in each direction, in bytes.
const OWN_BYTES: u32 = 32 << 10;
const LEAST_TIMEOUT: Duration = Duration::from_millis(50);
/// The timeout of each segment of a handshake: a lost segment delays the cast by this time, and not by the
/// usual second.
const INITIAL_TIMEOUT: Duration = Duration::from_millis(100);
/// The time to wait for an answer after each probe of the host's addresses: two probes take a tenth of a
/// second.
const PROBE_INTERVAL: Duration = Duration::from_millis(50);
const HANDSHAKE: Duration = Duration::from_secs(10);
/// Maximum number of segments in the receive buffer: as many segments of 1,448 bytes as fill the window, and
/// some more for smaller segments.
const PIECES: usize = 2_048;
/// The keep-alive settings of a receiver, which detects within 20 s that the sender has gone.
const KEEP_ALIVE: KeepAlive =
    KeepAlive { idle: Duration::from_secs(10), interval: Duration::from_secs(2), probes: 5 };
