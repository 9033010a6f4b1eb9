//! A WireGuard tunnel with receive offload, between one TUN and one peer.
//!
//! The protocol is implemented by the crate `boringtun`: handshake, cipher, timers. Everything around it is
//! rxo. Data that the host sends comes out of the TUN as large packets and is split into the packets of the
//! tunnel; these are encrypted into trains of datagrams, each sent by one system call. Datagrams are received
//! in trains too; they are decrypted directly into frames, which are coalesced, and the TUN gets one gathered
//! write for many packets.
//!
//! The modules in the order in which a packet passes them:
//!
//! * [`outward`]: from the TUN to the peer. [`cut`] splits the packets of the TUN.
//! * [`inward`]: from the peer to the TUN.
//! * [`peer`]: the state of the protocol, which both directions share.
//! * [`options`]: the command line. [`run`]: opens everything, runs both directions, and ends.
//!
//! See docs/tunnel.md for its use, its interoperability and its speed.

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
