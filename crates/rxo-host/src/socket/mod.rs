//! The interface for applications: a handle to the host, streams and listeners, modelled on `std::net`.
//!
//! These types are separate from the cell because they add blocking. When a call on a cell returns
//! `WouldBlock`, the thread waits and retries here, unless the socket is nonblocking.

mod handle;
mod listener;
mod listening;
mod opener;
mod readiness;
mod stream;
#[cfg(feature = "tokio")]
mod tasks;
mod waiting;

pub use self::handle::Handle;
pub use self::listener::{Incoming, TcpListener};
pub(crate) use self::listening::{Accept, Listening};
pub(crate) use self::opener::{Opener, Shards};
pub use self::readiness::Readiness;
pub use self::stream::TcpStream;
pub(crate) use self::waiting::Waiting;
