//! Private networks with real Linux TCP peers, built and removed from Rust.
//!
//! rxo must work between a real sender and a real receiver. This crate creates both in network namespaces of
//! this process. The crate does not touch the machine's own network and needs no installed tool. It does not
//! depend on rxo: it provides interfaces that rxo opens, and reports the received data. The parts, from the
//! bottom up:
//!
//! * [`become_root_in_user_namespace`] must be called first by a program that may not be root.
//! * [`Namespace`] is a network that this process holds open. The kernel removes it when the
//!   process ends for any reason, so nothing is ever left behind.
//! * [`Interface`] and [`create_veth`] make and configure links; [`Offload`] switches their
//!   offloads.
//! * [`Tap`] is an interface whose other side is this process, and [`Monitor`] copies the frames that an interface
//!   receives: together they show how the kernel treats frames that a test writes.
//! * [`Lab`] builds the network of the demo and the live tests in one call.
//! * [`DropIncoming`] makes a socket lose arriving segments.
//! * [`traffic`] sends data through a network and checks every byte; [`CpuMeter`] measures the cost, and
//!   [`MachineReading`] the load of other processes at that time.
//!
//! ```no_run
//! use std::time::Duration;
//! use rxo_testbed::traffic::{BulkConfig, BulkTransfer};
//! use rxo_testbed::{CpuMeter, KernelGro, Lab};
//!
//! rxo_testbed::become_root_in_user_namespace()?;
//! let lab = Lab::direct(KernelGro::On)?;
//! let config = BulkConfig { connections: 16, ..BulkConfig::default() };
//! let transfer = BulkTransfer::start(lab.peer(), lab.host(), lab.host_address(), &config)?;
//! let window = transfer.measure(Duration::from_secs(2), &CpuMeter::new())?;
//! assert!(transfer.stop()?.is_intact());
//! println!("{:.1} Gbit/s at {:.2} CPU s/GB", window.gbit_per_s(), window.cpu_s_per_gb());
//! # Ok::<(), rxo_testbed::LabError>(())
//! ```

mod cpu;
mod drop_incoming;
pub mod error;
mod link;
mod load;
mod median;
mod namespace;
mod routing;
mod stack;
mod sys;
mod tap;
mod topology;
pub mod traffic;
mod user_namespace;
mod worker;

pub use cpu::{CoreUse, CpuMeter, CpuReading, CpuUse, times_slept};
pub use drop_incoming::DropIncoming;
pub use error::{LabError, Result};
pub use link::{
    CoalescingHold, Interface, InterfaceCounters, Mac, Offload, RateLimit, Vxlan, create_veth,
    create_veth_with_queues,
};
pub use load::{MachineReading, MachineUse};
pub use median::median_bounds;
pub use namespace::{Namespace, until};
pub use routing::RouteOrRule;
pub use stack::{StackCounters, socket_memory_bytes};
pub use sys::{MonitorSocket, PacketSocket, open_tun, wait_readable, wait_writable};
pub use tap::{Monitor, MonitoredPacket, Tap};
pub use topology::{AckRate, KernelGro, Lab, LabOptions};
pub use user_namespace::{Privilege, become_root_in_user_namespace, use_own_run_folder};
pub use worker::{Worker, pin_to_core, thread_id};
