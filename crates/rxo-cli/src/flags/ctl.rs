//! Flags of `rxo ctl`.

use std::path::PathBuf;

use clap::Args;

#[derive(Args, Debug)]
pub(crate) struct CtlFlags {
    /// Socket of the running process, which was started with --control SOCKET.
    #[arg(value_name = "SOCKET")]
    pub(crate) socket: PathBuf,

    /// Request: NAME shows something, NAME=VALUE changes it, and KEY=VALUE after it are fields, such as policies;
    /// hold=auto; policy=linux-gro max_segments=16. Without it: lists the requests that this process answers.
    #[arg(value_name = "REQUEST")]
    pub(crate) words: Vec<String>,

    /// Print the answer as JSON on one line. A long list of connections comes in pages, one page a line.
    #[arg(long)]
    pub(crate) json: bool,
}
