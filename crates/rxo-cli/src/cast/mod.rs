//! `rxo cast`: one file to many hosts.
//!
//! `addresses.rs` reads what both sides are called with, `stream.rs` is the layout of the stream that every receiver
//! gets and `outgoing.rs` writes it, `plan.rs` reads what the sender is to do, `send.rs` sends to a group and `tally.rs` counts who has it, `receive.rs` receives it on a host
//! of rxo's own, and `join/` makes a receiver of a host that knows nothing of groups.

mod addresses;
mod join;
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
/// As the subcommand.
pub(crate) fn command(flags: &CastFlags) -> Result<()> {
    match &flags.command {
        CastCommand::Send(flags) => send::command(flags),
        CastCommand::Receive(flags) => receive::command(flags),
        CastCommand::Join(flags) => join::command(flags),
    }
}
