//! Measures the cost of the cipher alone: ChaCha20-Poly1305 of ring, called as boringtun does.

use std::hint::black_box;

use anyhow::{Result, anyhow};
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};
use rxo_driver::clock;

/// Bytes of a full packet of the tunnel; the next constant is its TCP payload.
const PACKET_BYTES: usize = 1_420;
const PAYLOAD_BYTES: f64 = 1_368.0;

/// Shortest measured time, long enough to hide the clock's cost.
const AT_LEAST_NS: u64 = 200_000_000;

/// Returns the processor time to encrypt and decrypt 10⁹ bytes of TCP payload in full packets, in seconds:
/// the minimum for both ends together.
pub(super) fn seconds_per_gb() -> Result<f64> {
    let failed = |_| anyhow!("ring refuses a key or a packet of this size");
    let key = LessSafeKey::new(UnboundKey::new(&CHACHA20_POLY1305, &[7; 32]).map_err(failed)?);
    let nonce = || Nonce::assume_unique_for_key([1; 12]);
    let mut packet = vec![0x5a; PACKET_BYTES + CHACHA20_POLY1305.tag_len()];
    let (begin, mut packets) = (clock::thread_cpu_ns(), 0_u32);
    while clock::thread_cpu_ns() - begin < AT_LEAST_NS {
        for _ in 0..64 {
            let (text, tag) = packet.split_at_mut(PACKET_BYTES);
            let sealed = key.seal_in_place_separate_tag(nonce(), Aad::empty(), text);
            tag.copy_from_slice(sealed.map_err(failed)?.as_ref());
            key.open_in_place(nonce(), Aad::empty(), &mut packet).map_err(failed)?;
            black_box(&mut packet);
        }
        packets += 64;
    }
    // Nanoseconds per byte are seconds per 10⁹ bytes.
    let ns = (clock::thread_cpu_ns() - begin) as f64;
    Ok(ns / f64::from(packets) / PAYLOAD_BYTES)
}
