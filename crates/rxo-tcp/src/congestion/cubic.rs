//! CUBIC congestion control (RFC 9438).
//!
//! The window is a cubic function of the time since it was last reduced. It is computed in integers, bytes
//! and milliseconds, so that every machine gets the same result.

use rxo_frame::{Duration, Instant};

use super::{Acked, Window};

/// The state of CUBIC for one connection.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cubic {
    /// W_max: the window before it was last reduced, in bytes.
    w_max: u32,
    /// cwnd_prior: the congestion window before its last reduction, in bytes.
    prior: u32,
    epoch: Option<Epoch>,
    /// The fraction of a byte by which the window has grown further, in units of 1 / cwnd bytes.
    remainder: u64,
}

/// An epoch of congestion avoidance: the time since the window was last reduced.
#[derive(Clone, Debug)]
struct Epoch {
    start: Instant,
    /// K, the time in milliseconds after which the window reaches `origin` again (RFC 9438, section 4.2).
    k_ms: i64,
    /// W_max of this epoch, in bytes, or the window at its start if that is larger.
    origin: u32,
    /// W_est: the window that Reno would have, in bytes (RFC 9438, section 4.3).
    reno: u32,
    reno_remainder: u64,
    /// W_cubic at the current millisecond, in bytes; cached because many ACKs arrive in one
    /// millisecond.
    now: Computed,
    /// W_cubic one round trip later, in bytes; cached for one millisecond.
    later: Computed,
}

/// A cached value of the cubic function, with its arguments.
#[derive(Clone, Copy, Debug, Default)]
struct Computed {
    t_ms: i64,
    mss: u32,
    bytes: i64,
}

impl Cubic {
    /// Grows the window in congestion avoidance (RFC 9438, sections 4.2 to 4.5).
    pub(super) fn avoid(&mut self, window: &mut Window, acked: &Acked) {
        let (w_max, prior) = (self.w_max, self.prior);
        let epoch = self.epoch.get_or_insert_with(|| Epoch::new(acked.now, window, w_max));
        epoch.follow_reno(window, acked.bytes, prior);
        let t = acked.now.since(epoch.start);
        let cubic_now = epoch.cubic_now(t, window.mss);
        if cubic_now < i64::from(epoch.reno) {
            window.cwnd = window.cwnd.max(epoch.reno);
            return;
        }
        let target = epoch.target(t + acked.rtt, window);
        self.approach(window, target, acked.bytes);
    }

    /// Returns the reduced threshold, and lowers W_max further if the window had not recovered:
    /// multiplicative decrease and fast convergence (RFC 9438, sections 4.6 and 4.7).
    pub(super) fn threshold(&mut self, window: &Window, in_flight: u32) -> u32 {
        let cwnd = window.cwnd;
        self.prior = cwnd;
        self.w_max = if cwnd < self.w_max { scaled(cwnd, 17, 20) } else { cwnd };
        (self.epoch, self.remainder) = (None, 0);
        scaled(in_flight, BETA_TENTHS, 10).max(2 * window.mss)
    }

    /// Moves the start of the epoch by `idle`, because idle time does not count (RFC 9438, end of section
    /// 4.2).
    pub(super) fn was_idle(&mut self, idle: Duration) {
        if let Some(epoch) = &mut self.epoch {
            epoch.start = epoch.start + idle;
        }
    }

    /// Grows cwnd by (target - cwnd) / cwnd for each acknowledged segment (RFC 9438, section 4.4).
    fn approach(&mut self, window: &mut Window, target: u32, acked_bytes: u32) {
        let gap = u64::from(target - window.cwnd.min(target));
        self.remainder += gap * u64::from(acked_bytes);
        let bytes = self.remainder / u64::from(window.cwnd.max(1));
        self.remainder %= u64::from(window.cwnd.max(1));
        window.grow(u32::try_from(bytes).unwrap_or(u32::MAX));
    }
}

impl Epoch {
    fn new(now: Instant, window: &Window, w_max: u32) -> Self {
        let origin = w_max.max(window.cwnd);
        // K = cube root of ((W_max - cwnd) / C): C = 0.4 segments a second cubed.
        let bytes = u128::from(origin - window.cwnd);
        let k_cubed = bytes * 2_500_000_000 / u128::from(window.mss.max(1));
        let k_ms = cube_root(k_cubed) as i64;
        Self {
            start: now,
            k_ms,
            origin,
            reno: window.cwnd,
            reno_remainder: 0,
            now: Computed::default(),
            later: Computed::default(),
        }
    }

    /// Returns W_cubic(t) = C (t - K)^3 + W_max, in bytes.
    fn cubic(&self, t_ms: i64, mss: u32) -> i64 {
        let distance = i128::from(t_ms - self.k_ms);
        let delta = distance * distance * distance * i128::from(mss) / 2_500_000_000;
        i64::from(self.origin) + delta.clamp(-MAX_BYTES, MAX_BYTES) as i64
    }

    /// Returns W_cubic(t) in bytes, computed once per millisecond.
    fn cubic_now(&mut self, t: Duration, mss: u32) -> i64 {
        let t_ms = millis(t);
        if (self.now.t_ms, self.now.mss) != (t_ms, mss) {
            self.now = Computed { t_ms, mss, bytes: self.cubic(t_ms, mss) };
        }
        self.now.bytes
    }

    /// Returns W_cubic one round trip later in bytes, limited to 1 to 1.5 times the window (RFC 9438, section
    /// 4.2).
    fn target(&mut self, t: Duration, window: &Window) -> u32 {
        let (t_ms, mss) = (millis(t), window.mss);
        if (self.later.t_ms, self.later.mss) != (t_ms, mss) {
            self.later = Computed { t_ms, mss, bytes: self.cubic(t_ms, mss) };
        }
        let least = i64::from(window.cwnd);
        self.later.bytes.clamp(least, least + least / 2) as u32
    }

    /// Grows W_est as Reno would (RFC 9438, section 4.3). Alpha is 3 (1 - beta) / (1 + beta) = 9/17 until the
    /// old window is reached, then 1.
    fn follow_reno(&mut self, window: &Window, acked_bytes: u32, prior: u32) {
        let (over, under) = if self.reno >= prior { (1, 1) } else { (9, 17) };
        let cwnd = u64::from(window.cwnd.max(1)) * under;
        self.reno_remainder += u64::from(acked_bytes) * u64::from(window.mss) * over;
        self.reno += (self.reno_remainder / cwnd) as u32;
        self.reno_remainder %= cwnd;
    }
}

/// Returns `t` in whole milliseconds, at most [`MAX_EPOCH_MS`].
fn millis(t: Duration) -> i64 {
    let ms = t.as_secs().saturating_mul(1_000).saturating_add(t.subsec_millis().into());
    i64::try_from(ms).unwrap_or(i64::MAX).min(MAX_EPOCH_MS)
}

fn scaled(value: u32, over: u32, under: u32) -> u32 {
    (u64::from(value) * u64::from(over) / u64::from(under)) as u32
}

/// Returns the integer cube root of `value`, rounded down, found bit by bit.
fn cube_root(value: u128) -> u64 {
    let mut root = 0_u128;
    for bit in (0..40).rev() {
        let tried = root | 1 << bit;
        if tried * tried * tried <= value {
            root = tried;
        }
    }
    root as u64
}

/// Tenths of beta = 0.7, the factor by which the window is reduced (RFC 9438, section 4.6).
const BETA_TENTHS: u32 = 7;
/// The maximum length of an epoch in milliseconds, about three hours: the cube stays in range, and the window
/// reaches its limit long before.
const MAX_EPOCH_MS: i64 = 10_000_000;
const MAX_BYTES: i128 = 1 << 40;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::InitialWindow;

    #[test]
    fn cube_roots_are_exact() {
        for root in [0, 1, 2, 3, 10, 1_000, 123_456] {
            let cube = u128::from(root) * u128::from(root) * u128::from(root);
            assert_eq!(cube_root(cube), root);
            assert_eq!(cube_root(cube + 1), root.max(1));
        }
    }

    /// With W_max = 100 segments and cwnd = 70, K = (30 / 0.4)^(1/3) s (RFC 9438, section 4.2).
    #[test]
    fn the_window_is_back_after_k() {
        let initial = InitialWindow::default();
        let window = Window { cwnd: 70_000, ssthresh: 70_000, mss: 1000, initial };
        let epoch = Epoch::new(Instant::ZERO, &window, 100_000);
        assert_eq!(epoch.k_ms, 4217);
        let at = |seconds: f64| epoch.cubic(millis(Duration::from_secs_f64(seconds)), 1000);
        assert!((at(0.0) - 70_000).abs() < 50);
        assert_eq!(at(4.217), 100_000);
        // One second after K: 0.4 segments more; five seconds after: 50.
        assert!((at(5.217) - 100_400).abs() < 5);
        assert!((at(9.217) - 150_000).abs() < 50);
    }

    /// A flow whose window no longer grows gives way to others (RFC 9438, sections 4.6 and 4.7).
    #[test]
    fn fast_convergence_lowers_w_max() {
        let mut cubic = Cubic::default();
        let initial = InitialWindow::default();
        let window = |cwnd| Window { cwnd, ssthresh: 0, mss: 1000, initial };
        assert_eq!(cubic.threshold(&window(100_000), 100_000), 70_000);
        assert_eq!(cubic.w_max, 100_000);
        assert_eq!(cubic.threshold(&window(80_000), 80_000), 56_000);
        assert_eq!(cubic.w_max, 68_000);
    }
}
