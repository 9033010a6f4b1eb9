//! A WireGuard tunnel with receive offload, configured by `wg` and `wg-quick`.
//!
//! The crate `boringtun` implements the protocol: handshake, cipher and timers. rxo does everything else. The
//! TUN delivers the host's data as GSO frames, which are split into packets. The packets are encrypted into
//! trains of datagrams, and one system call sends a whole train. Datagrams are also received as trains. They
//! are decrypted directly into frames, which are coalesced and written to the TUN, many packets per write.
//!
//! The modules, in the order in which a packet passes them:
//!
//! * [`outward`]: from the TUN to the peers.
//! * [`inward`]: from the peers to the TUN. [`ecn`]: copies congestion marks from the outer header to the inner
//!   one.
//! * [`waiting`]: locks, and waiting for the input or the output of a direction.
//! * [`interface`]: the state that all threads share. [`peers`]: the table of peers. [`peer`]: the session of
//!   one peer. [`outside`]: the UDP socket.
//! * [`control`]: the socket for `wg`. [`uapi`]: the requests and answers on this socket, as pure functions.
//! * [`options`]: the command line, with [`keys`] and [`network`]. [`run`]: opens the TUN and the sockets, and
//!   runs both directions. [`detach`]: runs the program in the background.
//!
//! See docs/tunnel.md for the use, interoperability and speed of the tunnel.

mod control;
mod detach;
mod ecn;
mod interface;
mod inward;
mod keys;
mod network;
mod options;
mod outside;
mod outward;
mod peer;
mod peers;
mod run;
mod uapi;
mod waiting;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    let options = options::Options::parse();
    let done = if options.is_foreground() || detach::is_waited_for() {
        run::run(&options).map(|()| ExitCode::SUCCESS)
    } else {
        detach::start()
    };
    done.unwrap_or_else(|error| {
        eprintln!("rxo-tunnel: {error:#}");
        ExitCode::FAILURE
    })
}
