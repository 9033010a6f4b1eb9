//! Flags of the commands that forward frames between devices until they are ended: `rxo run`, `rxo guest`,
//! `rxo card`.

use clap::{Args, ValueEnum};

use super::{ControlFlags, LogFlags, SandboxFlags};

/// Flags of `rxo run` and `rxo guest` for what happens to frames in addition to coalescing.
#[derive(Args, Debug)]
pub(crate) struct WayFlags {
    /// Coalescing: on, off, or auto, which switches coalescing off while it does not pay (fewer than 1.02 frames a
    /// delivery for 10 s), and tries it again after pauses that grow from 10 s to 10 min.
    #[arg(long, value_name = "auto|on|off", default_value = "on")]
    pub(crate) coalesce: String,

    /// Split stretch ACKs on their way to the nic: insert one ACK for every N segments (1 to 64; 2 is what a
    /// host without coalescing sends). For peers that count ACKs; Linux counts bytes and gains nothing.
    #[arg(long, value_name = "2|N|off", default_value = "off")]
    pub(crate) ack_split: String,

    /// Treatment of TCP checksums that the nic has not verified.
    #[arg(long, value_name = "HOW", value_enum, default_value_t = ChecksumFlag::Verify)]
    pub(crate) checksum: ChecksumFlag,
}

/// Flags for a command's output, and for the requests that it answers.
#[derive(Args, Debug)]
pub(crate) struct LiveFlags {
    /// Time between two lines of figures, 100ms to 3600s; 0s prints only the totals.
    #[arg(long, value_name = "TIME", default_value = "1s")]
    pub(crate) stats: String,

    #[command(flatten)]
    pub(crate) control: ControlFlags,

    /// End the run and give everything back if the worker does nothing for this time, 300ms to 60s, or off. Time for
    /// which the machine is suspended does not count.
    #[arg(long, value_name = "TIME", default_value = "700ms")]
    pub(crate) watchdog: String,

    /// Nice value of the thread that carries frames, -20 to 19, or keep. Below 0 it has priority over other
    /// processes, like the kernel's receive path; if the system refuses the value, the run keeps its own.
    #[arg(long, value_name = "N|keep", default_value = "keep", allow_hyphen_values = true)]
    pub(crate) nice: String,

    #[command(flatten)]
    pub(crate) log: LogFlags,

    #[command(flatten)]
    pub(crate) sandbox: SandboxFlags,

    /// Print JSON, one value a line.
    #[arg(long)]
    pub(crate) json: bool,

    /// Check everything, print the effective configuration and exit; change nothing.
    #[arg(long)]
    pub(crate) dry_run: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ChecksumFlag {
    /// Take the checksums as correct.
    Trust,
    /// Verify the checksums before coalescing.
    Verify,
}
