//! Flags for the privileges and the user of a process.

use clap::Args;

/// The flag of every command that reads bytes from the network.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct SandboxFlags {
    /// Keep all capabilities, files and system calls while frames are carried, for debuggers and profilers. Without
    /// this flag the process gives up everything that it does not need once the devices are open.
    #[arg(long)]
    pub(crate) no_sandbox: bool,
}

/// Flags of commands that need no privilege after the start.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct UserFlags {
    /// Become this user once the device is open, before the first frame is read: a name with its groups, a
    /// number, or either followed by a colon and one group. Files are then opened as that user. Needs a start
    /// as root.
    #[arg(long, value_name = "NAME|UID[:GROUP]")]
    pub(crate) user: Option<String>,

    #[command(flatten)]
    pub(crate) sandbox: SandboxFlags,
}
