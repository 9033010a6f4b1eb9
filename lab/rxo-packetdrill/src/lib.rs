//! Runs packetdrill scripts against a host of [`rxo_host`], on virtual time.
//!
//! packetdrill is a tool and a language. A script lists which segments arrive, which calls the application
//! makes, and which segments must leave, each with its time. This crate runs such scripts against
//! [`rxo_host`], without any other program:
//!
//! * [`script`] parses the language, as far as TCP scripts need it.
//! * [`machine`] has the host, and Linux's calls on its sockets.
//! * [`run`] runs a script against a machine.
//!
//! Contract: no packet, script or call makes it panic.
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
pub mod machine;
pub mod run;
pub mod script;
