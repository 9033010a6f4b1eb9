//! Traffic of real Linux TCP between two namespaces. Threads of this process send and receive.
//!
//! * [`BulkTransfer`]: 1 to 400 connections that send as fast as they can. Every byte is checked.
//! * [`Outgoing`] and [`exchange`]: Linux peers for a host that is not Linux.
//! * [`ping_pong()`]: single bytes back and forth, one exchange at a time.
//! * [`Pattern`]: the contents of bulk connections.

mod bulk;
mod connect;
mod outgoing;
mod pattern;
mod ping_pong;
mod receiver;
mod report;
mod sender;
mod stop_and_wait;
mod window_point;

pub use bulk::{BulkConfig, BulkTransfer};
pub use connect::{listen, set_low_water};
pub use outgoing::{Outgoing, OutgoingReport, exchange};
pub use pattern::{Mismatch, Pattern};
pub use ping_pong::{PingPongConfig, PingPongReport, ping_pong};
pub use receiver::{ReceivingEnd, receive_all};
pub use report::{BulkReport, Window};
pub use window_point::WindowPoint;

use std::time::Duration;

/// The time without progress after which a transfer fails.
pub const STALL_TIMEOUT: Duration = Duration::from_secs(10);
