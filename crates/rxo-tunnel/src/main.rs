//! A WireGuard tunnel with receive offload, which `wg` and `wg-quick` drive.
//!
//! The protocol is implemented by the crate `boringtun`: handshake, cipher, timers. Everything around it is
//! rxo. Data that the host sends comes out of the TUN as large packets and is split into the packets of the
//! tunnel; these are encrypted into trains of datagrams, each sent by one system call. Datagrams are received
//! in trains too; they are decrypted directly into frames, which are coalesced, and the TUN gets one gathered
//! write for many packets.
//!
//! The modules in the order in which a packet passes them:
//!
//! * [`outward`]: from the TUN to the peers.
//! * [`inward`]: from the peers to the TUN. [`ecn`]: marks of the outer header reach the inner one.
//! * [`waiting`]: locks, and waiting for an end of a direction.
//! * [`interface`]: the state that all threads share. [`peers`] finds the peer, [`peer`] has its session,
//!   [`outside`] the UDP socket.
//! * [`control`]: the socket for `wg`. [`uapi`]: its requests and answers, pure.
//! * [`options`]: the command line, with [`keys`] and [`network`]. [`run`]: opens everything, runs both
//!   directions, and ends. [`detach`]: the way into the background.
//!
//! See docs/tunnel.md for its use, its interoperability and its speed.

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
