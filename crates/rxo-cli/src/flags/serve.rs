//! `rxo serve`: what can be typed.

use std::path::PathBuf;

use clap::Args;

use super::HostFlags;

#[derive(Args, Clone, Debug)]
pub(crate) struct ServeFlags {
    /// The directory to serve. Links in it are followed as long as they stay in it.
    #[arg(value_name = "DIR")]
    pub(crate) directory: PathBuf,

    #[command(flatten)]
    pub(crate) host: HostFlags,

    /// The port to listen on.
    #[arg(long, value_name = "PORT", default_value_t = 80)]
    pub(crate) port: u16,

    /// Most clients at a time, 1 to 10000; further ones wait.
    #[arg(long, value_name = "N", default_value_t = 512)]
    pub(crate) clients: usize,

    /// How long a connection is kept for its next request, 1s to 1000s.
    #[arg(long, value_name = "TIME", default_value = "15s")]
    pub(crate) idle: String,

    /// Print JSON: one value a line, first where it listens, then each request.
    #[arg(long)]
    pub(crate) json: bool,
}
