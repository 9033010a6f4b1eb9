//! Linux's names for the settings of a host: `net.ipv4.tcp_sack=1`.
//!
//! Scripts configure the machine with sysctl(8). There are three kinds of names: some change a setting; some
//! must have the value that describes the fixed behaviour here; and some affect no segment here, so that any
//! value is accepted. Every other name or value is refused: a script that needs a missing feature must not
//! run as if it existed.

use rxo_frame::Duration;
use rxo_tcp::{Buffers, KeepAlive};

use super::Settings;
use super::settings::algorithm;

/// A refused name and value, with the accepted values.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("sysctl {name}={value} cannot be set; {accepted}")]
pub struct SysctlError {
    name: String,
    value: String,
    accepted: String,
}

/// A sysctl with its initial value and its meaning.
struct Sysctl {
    name: &'static str,
    /// Initial content of the sysctl's file.
    default: &'static str,
    meaning: Meaning,
}

#[derive(Clone, Copy)]
enum Meaning {
    /// Changes a setting. The text describes the accepted values.
    Sets(fn(&mut Settings, &str) -> Option<()>, &'static str),
    /// Switches a feature on (1) or off (0).
    Switches(fn(&mut Settings) -> &mut bool),
    /// Sets a time in seconds.
    Lasts(fn(&mut Settings) -> &mut Duration),
    /// Only the listed values are accepted; they describe the fixed behaviour.
    Is(&'static [&'static str]),
    /// Affects no segment, so any value is accepted.
    Nothing,
}

impl Settings {
    /// Sets `name`, with or without `net.ipv4.`, like sysctl(8). White space separates the parts of `value`.
    ///
    /// # Errors
    /// If the name is unknown, or the value describes unsupported behaviour.
    pub fn set_sysctl(&mut self, name: &str, value: &str) -> Result<(), SysctlError> {
        let (full, value) = (name.replace('/', "."), value.trim());
        let short = full.strip_prefix("net.ipv4.").unwrap_or(&full);
        let refused = |accepted: String| SysctlError {
            name: name.to_owned(),
            value: value.to_owned(),
            accepted,
        };
        let Some(sysctl) = SYSCTLS.iter().find(|known| known.name == short) else {
            return Err(refused("there is no such setting here".to_owned()));
        };
        let (done, accepted) = match sysctl.meaning {
            Meaning::Nothing => return Ok(()),
            Meaning::Is(values) if values.contains(&value) => return Ok(()),
            Meaning::Is(values) => {
                return Err(refused(format!("what is done here is {}", values.join(" or "))));
            }
            Meaning::Sets(set, accepted) => (set(self, value), accepted),
            Meaning::Switches(setting) => (switch(setting(self), value), "it is 0 or 1"),
            Meaning::Lasts(time) => (seconds(time(self), value), "it is a number of seconds"),
        };
        done.ok_or_else(|| refused(accepted.to_owned()))?;
        self.config.check().map_err(|error| refused(error.to_string()))
    }

    /// Returns all known names, without `net.ipv4.`, with their initial values.
    pub fn sysctls() -> impl Iterator<Item = (&'static str, &'static str)> {
        SYSCTLS.iter().map(|sysctl| (sysctl.name, sysctl.default))
    }
}

const fn sets(
    name: &'static str,
    default: &'static str,
    set: fn(&mut Settings, &str) -> Option<()>,
    accepted: &'static str,
) -> Sysctl {
    Sysctl { name, default, meaning: Meaning::Sets(set, accepted) }
}

/// Makes a sysctl for a switch that is initially on.
const fn switches(name: &'static str, setting: fn(&mut Settings) -> &mut bool) -> Sysctl {
    Sysctl { name, default: "1", meaning: Meaning::Switches(setting) }
}

const fn lasts(
    name: &'static str,
    default: &'static str,
    time: fn(&mut Settings) -> &mut Duration,
) -> Sysctl {
    Sysctl { name, default, meaning: Meaning::Lasts(time) }
}

const fn is(name: &'static str, values: &'static [&'static str]) -> Sysctl {
    Sysctl { name, default: values[0], meaning: Meaning::Is(values) }
}

const fn nothing(name: &'static str, default: &'static str) -> Sysctl {
    Sysctl { name, default, meaning: Meaning::Nothing }
}

const THREE: &str = "it is least, default and most, in bytes";

const SYSCTLS: &[Sysctl] = &[
    switches("tcp_sack", |all| &mut all.config.sack),
    switches("tcp_timestamps", |all| &mut all.config.timestamps),
    switches("tcp_window_scaling", |all| &mut all.config.window_scaling),
    switches("tcp_slow_start_after_idle", |all| &mut all.config.restart_after_idle),
    lasts("tcp_fin_timeout", "60", |all| &mut all.config.fin_wait_2),
    lasts("tcp_keepalive_time", "7200", |all| &mut all.keep_alive.idle),
    lasts("tcp_keepalive_intvl", "75", |all| &mut all.keep_alive.interval),
    sets("tcp_ecn", "2", ecn, "it is 0 (no), 1 (ask) or 2 (if asked)"),
    sets("tcp_congestion_control", "cubic", congestion, "it is cubic, reno or bbr"),
    sets("tcp_rmem", "4096 540000 15728640", receive_memory, THREE),
    sets("tcp_wmem", "4096 262144 4194304", send_memory, THREE),
    sets("tcp_syn_retries", "6", syn_retries, RETRIES),
    sets("tcp_synack_retries", "5", syn_retries, RETRIES),
    sets("tcp_keepalive_probes", "9", keep_alive_probes, "it is a number from 2 to 255"),
    sets("tcp_rto_min_us", "200000", least_timeout, "it is a number of microseconds"),
    switches("tcp_syncookies", |all| &mut all.syn_cookies),
    is("tcp_notsent_lowat", &["4294967295"]),
    is("tcp_frto", &["2", "1"]),
    is("tcp_dsack", &["1"]),
    is("tcp_fack", &["0"]),
    is("tcp_reordering", &["3"]),
    is("tcp_recovery", &["1"]),
    is("tcp_early_retrans", &["3", "4"]),
    is("tcp_mtu_probing", &["1"]),
    is("tcp_thin_linear_timeouts", &["0"]),
    is("tcp_comp_sack_nr", &["0"]),
    is("tcp_shrink_window", &["0"]),
    is("tcp_retrans_collapse", &["0"]),
    // These affect how Linux builds packets before a device segments them.
    nothing("tcp_tso_win_divisor", "3"),
    nothing("tcp_min_tso_segs", "2"),
    // Pacing, which is not implemented.
    nothing("tcp_pacing_ss_ratio", "200"),
    nothing("tcp_pacing_ca_ratio", "120"),
    // TCP Fast Open, which is not implemented. A script that uses it fails at its own call.
    nothing("tcp_fastopen", "0"),
    nothing("tcp_fastopen_key", ""),
    nothing("tcp_fastopen_blackhole_timeout_sec", "0"),
    nothing("tcp_ecn_option", "0"),
    nothing("tcp_no_metrics_save", "1"),
    nothing("tcp_base_mss", "1024"),
    nothing("tcp_moderate_rcvbuf", "1"),
];

const RETRIES: &str = "it is a number from 1 to 16";

fn switch(setting: &mut bool, value: &str) -> Option<()> {
    *setting = match value {
        "0" => false,
        "1" => true,
        _ => return None,
    };
    Some(())
}

fn ecn(all: &mut Settings, value: &str) -> Option<()> {
    (all.config.ecn, all.accepts_ecn) = match value {
        "0" => (false, false),
        "1" => (true, true),
        "2" => (false, true),
        _ => return None,
    };
    Some(())
}

fn congestion(all: &mut Settings, value: &str) -> Option<()> {
    all.config.congestion = algorithm(value)?;
    Some(())
}

/// Parses default and maximum from a triple of minimum, default and maximum, limited to the largest window.
fn memory(value: &str) -> Option<(u32, u32)> {
    let mut parts = value.split_whitespace().map(|part| part.parse::<u32>().ok());
    let (_, default, most) = (parts.next()??, parts.next()??, parts.next()??);
    parts.next().is_none().then_some((default.min(MOST_BYTES), most.min(MOST_BYTES)))
}

/// Sets the receive buffer. Its maximum determines the window scale.
fn receive_memory(all: &mut Settings, value: &str) -> Option<()> {
    let receive_bytes = memory(value)?.1;
    all.config.receive_buffer_bytes = receive_bytes;
    let largest = all.config.largest_buffers.unwrap_or(all.config.initial_buffers());
    all.config.largest_buffers = Some(Buffers { receive_bytes, ..largest });
    Some(())
}

fn send_memory(all: &mut Settings, value: &str) -> Option<()> {
    let (default, send_bytes) = memory(value)?;
    all.config.send_buffer_bytes = default;
    let largest = all.config.largest_buffers.unwrap_or(all.config.initial_buffers());
    all.config.largest_buffers = Some(Buffers { send_bytes, ..largest });
    Some(())
}

/// Sets the handshake timeout: the first wait is one second, and each further wait is twice as long.
fn syn_retries(all: &mut Settings, value: &str) -> Option<()> {
    let retries: u32 = value.parse().ok().filter(|retries| (1..=16).contains(retries))?;
    all.config.handshake_timeout = Duration::from_secs((2 << retries) - 1);
    Some(())
}

fn seconds(setting: &mut Duration, value: &str) -> Option<()> {
    *setting = Duration::from_secs(value.parse::<u32>().ok()?.into());
    Some(())
}

fn least_timeout(all: &mut Settings, value: &str) -> Option<()> {
    all.config.min_rto = Duration::from_micros(value.parse::<u32>().ok()?.into());
    Some(())
}

fn keep_alive_probes(all: &mut Settings, value: &str) -> Option<()> {
    let probes = value.parse().ok().filter(|probes| *probes > 1)?;
    all.keep_alive = KeepAlive { probes, ..all.keep_alive };
    Some(())
}

/// Largest window with scaling (RFC 7323, section 2.3).
const MOST_BYTES: u32 = (1 << 30) - 1;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_set_and_are_refused_by_name() {
        let mut all = Settings::default();
        assert_eq!(all.set_sysctl("net.ipv4.tcp_sack", "0"), Ok(()));
        assert_eq!(all.set_sysctl("net/ipv4/tcp_rmem", "4096\t131072 6291456\n"), Ok(()));
        assert_eq!((all.config.sack, all.config.receive_buffer_bytes), (false, 6_291_456));
        let refused =
            |name, value| Settings::default().set_sysctl(name, value).unwrap_err().to_string();
        assert_eq!(
            refused("net.ipv4.tcp_retries3", "1"),
            "sysctl net.ipv4.tcp_retries3=1 cannot be set; there is no such setting here"
        );
        assert_eq!(
            refused("net.ipv4.tcp_early_retrans", "0"),
            "sysctl net.ipv4.tcp_early_retrans=0 cannot be set; what is done here is 3 or 4"
        );
        assert_eq!(
            refused("tcp_ecn", "5"),
            "sysctl tcp_ecn=5 cannot be set; it is 0 (no), 1 (ask) or 2 (if asked)"
        );
    }

    #[test]
    fn every_default_is_taken() {
        let mut all = Settings::default();
        for (name, value) in Settings::sysctls() {
            assert_eq!(all.set_sysctl(name, value), Ok(()));
        }
    }
}
