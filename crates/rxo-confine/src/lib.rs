//! Confinement: a process gives up privileges before it reads data from others, so that an attacker who takes
//! over the process can do little.
//!
//! A command states the privileges that it needs as a [`Confinement`]: folders, sockets, capabilities, a
//! user. [`Confinement::apply`] gives up everything else: first whatever requires privileges to give up (the
//! bounding set, the user), then capabilities, files
//! ([Landlock](https://docs.kernel.org/userspace-api/landlock.html)) and system calls (seccomp). [`InForce`]
//! contains the limits that the kernel has accepted, because older kernels have no Landlock.
//!
//! The crate is separate because it does not depend on frames, and so that it can be reviewed as a whole.
//! Contract: a thread that has applied a confinement, and each thread that it starts later, is confined
//! permanently. Threads that existed before are not confined.
//!
//! # Examples
//! ```no_run
//! use rxo_confine::{Access, Confinement};
//!
//! // A server of files: it opens the files below one folder, and nothing else of the system.
//! let confinement = Confinement::host(vec![("/srv/www".into(), Access::Read)]);
//! let in_force = confinement.apply()?;
//! in_force.gaps().iter().for_each(|gap| eprintln!("{gap}"));
//! # Ok::<(), rxo_confine::ConfineError>(())
//! ```

mod apply;
mod calls;
mod capabilities;
mod confinement;
mod error;
mod files;
mod in_force;
mod roles;
mod user;

pub use confinement::{Access, Confinement, Kill, Sockets};
pub use error::ConfineError;
pub use in_force::InForce;
pub use rustix::thread::CapabilitySet;
pub use user::{NoUser, User};
