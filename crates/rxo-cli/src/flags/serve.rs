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

    /// Most clients of one address, or of one IPv6 network of 64 bits; a quarter of --clients unless given.
    /// Further ones are answered 503.
    #[arg(long, value_name = "N")]
    pub(crate) per_peer: Option<usize>,

    /// What a client must take of an answer in bytes a second, from its beginning and after 30 s, such as
    /// 4k; one that takes less is left. 0 lets it take as long as it likes while it takes 64 KiB in 30 s.
    #[arg(long, value_name = "BYTES", default_value = "4k")]
    pub(crate) least_rate: String,

    /// How long a connection is kept for its next request, 1s to 1000s.
    #[arg(long, value_name = "TIME", default_value = "15s")]
    pub(crate) idle: String,

    /// Print JSON: one value a line, first where it listens, then each request.
    #[arg(long)]
    pub(crate) json: bool,
}
