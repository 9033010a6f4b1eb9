//! Runs packetdrill scripts against [`rxo_tcp`], on virtual time.
//!
//! packetdrill is a tool and a language. A script says which segments arrive, which calls the
//! application makes, and which segments must leave, each with its time. This crate runs such
//! scripts against our endpoint, in two ways:
//!
//! * [`host`] is a host in memory: sockets on top, IP packets below, and a clock that its owner
//!   advances. It is pure: the same calls and packets at the same times give the same answers.
//! * [`script`] parses the language, as far as TCP scripts need it.
//! * [`run`] runs a script against a host, without any other program.
//! * `face` is the same host as a shared object for packetdrill itself: `packetdrill
//!   --so_filename=librxo_packetdrill.so` loads it. It contains the only `unsafe` code.
//!
//! Contract: no packet, script or call makes `host`, `script` or `run` panic; no panic crosses from
//! `face` into C.
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
