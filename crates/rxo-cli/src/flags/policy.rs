//! Flags that several commands share: the policy, and how a capture is replayed to it.

use clap::Args;

use crate::defaults;

/// The flags for the policy of a command that coalesces.
#[derive(Args, Debug)]
pub(crate) struct PolicyFlags {
    /// Coalescing policy; `rxo policies` lists them.
    #[arg(long, value_name = "NAME", default_value = defaults::POLICY)]
    pub(crate) policy: String,

    /// Change fields of the policy, such as max_segments=16 or flows=8 (1 to 4096). May be given several
    /// times.
    #[arg(long, value_name = "KEY=VALUE", num_args = 1..)]
    pub(crate) set: Vec<String>,

    /// Time for which segments are held: end-of-poll, polls:N (1 to 1000), packets:N (1 to 65536), or a time such as
    /// 100us (1us to 100ms). auto holds while the receiver is busy and more is expected, for at most 50us and 8 polls;
    /// auto:TIME or auto:TIME,POLLS sets other bounds.
    #[arg(long, value_name = "HOLD")]
    pub(crate) hold: Option<String>,
}

/// Flags for the policy, and for what a capture does not reveal about the host that received it.
#[derive(Args, Debug)]
pub(crate) struct ReplayFlags {
    #[command(flatten)]
    pub(crate) policy: PolicyFlags,

    /// End of a poll: time:T after its first packet (1ns to 1s), as with rx-usecs; host:T for a host that is busy for T
    /// (1ns to 1s) with each packet and then polls what has arrived; packets:N (1 to 32768) for the most that polls can
    /// achieve. Default: time:50us for analyze and packets:64 for coalesce.
    #[arg(long, value_name = "RULE")]
    pub(crate) poll: Option<String>,

    /// TCP and UDP checksums: auto (verify those that can be: not those that the sender left to its network card, and
    /// not those of packets that the capture cut); verify (accept only right ones); partial (auto, but refuse cut
    /// packets); trust (check none).
    #[arg(long, value_name = "HOW", default_value = "auto")]
    pub(crate) checksum: String,
}
