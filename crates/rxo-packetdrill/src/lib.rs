//! packetdrill scripts against [`rxo_tcp`], on virtual time.
//!
//! packetdrill is a tool and a language: a script says which segments come in, which calls the
//! application makes, and which segments must leave, each with its time. This crate lets an
//! endpoint of ours be what such a script runs against, in two ways:
//!
//! * [`host`] is a host in memory: sockets in front, IP packets behind, a clock that its owner
//!   moves. It is pure; the same calls and packets at the same times give the same answers.
//! * [`script`] reads the language, as far as TCP scripts need it.
//! * [`run`] runs a script against a host. Nothing but this crate is needed for that.
//! * `face` is the same host as a shared object for packetdrill itself: what
//!   `packetdrill --so_filename=librxo_packetdrill.so` loads. The only `unsafe` stands there.
//!
//! Contract: no packet, script or call makes `host`, `script` or `run` panic; no panic crosses the
//! border of `face`.
//!
//! # Examples
//! ```
//! let script = "
//!     0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
//!    +0 fcntl(3, F_SETFL, O_RDWR|O_NONBLOCK) = 0
//!    +0 connect(3, ..., ...) = -1 EINPROGRESS (Operation now in progress)
//!    +0 > S 0:0(0) <...>
//! ";
//! rxo_packetdrill::run::run("example", script).expect("a SYN leaves at once");
//! ```

pub mod abi;
mod face;
pub mod host;
pub mod run;
pub mod script;
