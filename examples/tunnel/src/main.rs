//! A WireGuard tunnel with receive offload, between one TUN and one peer.
//!
//! The protocol is that of the crate `boringtun`: handshake, cipher, timers. Everything around it is rxo. What the
//! host sends comes out of the TUN as large packets and is cut into the packets of the tunnel; those are encrypted
//! into trains of datagrams, each sent by one system call. What arrives comes in trains; it is decrypted straight
//! into the frames that are coalesced, and the TUN gets one gathered write for many.
//!
//! In the order in which a packet meets them:
//!
//! * [`outward`]: from the TUN to the peer. [`cut`] makes packets of what the TUN gives.
//! * [`inward`]: from the peer to the TUN.
//! * [`peer`]: the state of the protocol, which both directions share.
//! * [`options`]: the command line. [`run`]: opens everything, turns the two directions, ends.
//!
//! docs/tunnel.md says how to use it, what it interoperates with, and how fast it is.

mod cut;
mod inward;
mod options;
mod outward;
mod peer;
mod run;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    match run::run(&options::Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("rxo-tunnel: {error:#}");
            ExitCode::FAILURE
        }
    }
}
