//! `rxo cast`: one file to many hosts.
//!
//! * `plan` reads the flags of the sender; `addresses` parses the addresses of all three commands.
//! * `send` sends to a group; `outgoing` makes its stream, and `tally` counts the results of receivers.
//! * `receive` receives on a host of rxo's own; `stream` reads the stream.
//! * `manifest` contains the hashes of the file's blocks; `again` requests blocks that differ from their hash,
//!   and answers such requests.
//! * `join` lets a host whose TCP does not support groups receive a cast.

mod addresses;
mod again;
mod join;
mod manifest;
mod outgoing;
mod plan;
mod receive;
mod send;
mod stream;
mod tally;

use anyhow::Result;

use crate::flags::{CastCommand, CastFlags};

/// Runs the subcommand.
///
/// # Errors
/// The errors of the subcommand.
pub(crate) fn command(flags: &CastFlags) -> Result<()> {
    match &flags.command {
        CastCommand::Send(flags) => send::command(flags),
        CastCommand::Receive(flags) => receive::command(flags),
        CastCommand::Join(flags) => join::command(flags),
    }
}
