//! Private networks with real Linux TCP peers.

mod cpu;
mod error;
mod link;
mod namespace;
mod netlink;
mod offload;
mod qdisc;
mod route;
mod stack;
mod sys;
mod topology;
pub mod traffic;
mod user_namespace;
mod worker;

pub use cpu::{CpuMeter, CpuReading, CpuUse};
pub use error::{LabError, Result};
pub use link::{Interface, InterfaceCounters, Mac, create_veth};
pub use namespace::Namespace;
pub use offload::Offload;
pub use stack::StackCounters;
pub use topology::{KernelGro, Lab, LabOptions};
pub use user_namespace::{Privilege, become_root_in_user_namespace};
