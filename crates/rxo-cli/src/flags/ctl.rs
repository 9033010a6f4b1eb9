//! Flags of `rxo ctl`.

use std::path::PathBuf;

use clap::Args;

#[derive(Args, Debug)]
pub(crate) struct CtlFlags {
    /// Socket of the process: what it was given as --control.
    #[arg(value_name = "SOCKET")]
    pub(crate) socket: PathBuf,

    /// What to ask: NAME shows something, NAME=VALUE changes it, and KEY=VALUE after it are fields, such as policies;
    /// hold=auto; policy=linux-gro max_segments=16. Without it: lists what this process can be asked.
    #[arg(value_name = "REQUEST")]
    pub(crate) words: Vec<String>,

    /// Print the answer as it comes: JSON on one line. Of many connections each page is a line.
    #[arg(long)]
    pub(crate) json: bool,
}
