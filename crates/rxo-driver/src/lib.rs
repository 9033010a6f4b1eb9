//! Access to the operating system: opens the devices of a Linux system from which frames are received and to
//! which they are sent.
//!
//! ```text
//!  "packet:eth1" ── DeviceName ── Device::open ─┬▶ DeviceSource: frames in buffers of the kernel's ring
//!                                               └▶ DeviceSink: frames and GSO frames, gathered
//! ```
//!
//! From the name that a user types down to the system call:
//!
//! * [`DeviceName`] parses `packet:eth1`, `tap:rxo0`, `vhost:/run/vm.sock` by the table [`KINDS`].
//! * [`Device`] is an open device of any kind: a [`DeviceSource`] and a [`DeviceSink`], which
//!   implement the traits of `rxo-device`.
//! * `vhost:PATH` and `virtio:PATH` are both sides of a virtio device between processes; [`vhost_user`] is
//!   the protocol by which they set up shared memory.
//! * [`packet`] receives and sends frames on an existing interface; [`tap`] creates an interface whose other
//!   side is this process.
//! * [`udp`] has sockets that receive and send trains of datagrams (`UDP_GRO`, `UDP_SEGMENT`).
//! * [`Interface`] reads and sets an interface's MTU, state, offloads, and adds addresses and routes.
//! * [`custody`] records what a run changes about interfaces, and restores it however the run ends; [`guard`]
//!   starts the processes that do this, and [`Heartbeat`] shows that a process still works; [`service`]
//!   notifies systemd.
//! * [`machine`] finds out what this machine offers, and [`Custody::findings`](custody::Custody::findings)
//!   what a run would break: a list of [`Finding`]s.
//! * [`Listener`] is a unix socket at a path, for guests and for programs that control a process.
//! * [`wait`] waits on descriptors, [`Bell`] wakes another thread that waits, [`clock`] reads the time,
//!   [`heap`] returns freed memory to the system.
//!
//! To this crate, a checksum to complete is a start and an offset, and an aggregate is a list of pieces with a
//! segment size. The message of an error is one line that names the device, the value and the remedy.
//!
//! # Examples
//! ```
//! use rxo_device::FrameSource;
//! use rxo_driver::{Device, DeviceName, DeviceOptions};
//!
//! let name: DeviceName = "packet:no-such-eth".parse()?;
//! assert_eq!(name.name(), "no-such-eth");
//! match Device::open(&name, DeviceOptions::default()) {
//!     Ok(mut device) => {
//!         let mut batch = Vec::new();
//!         let frames = device.source.receive(&mut batch, 64)?;
//!         println!("{frames} frames");
//!     }
//!     // One line, with the device, the reason and what to do.
//!     Err(error) => assert!(error.to_string().contains("no-such-eth")),
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![cfg(target_os = "linux")]

mod addressing;
mod bell;
mod bpf;
mod buffer;
pub mod clock;
mod cpus;
pub mod custody;
pub mod default_route;
mod descriptors;
mod device;
mod fault;
mod finding;
mod gate;
pub mod guard;
mod handover;
pub mod heap;
mod heartbeat;
mod interface;
mod isolation;
mod link_watch;
mod listener;
mod lock;
pub mod machine;
mod mentions;
pub mod packet;
mod priority;
pub mod service;
mod statistics;
mod steering;
pub mod succession;
mod sys;
pub mod tap;
mod transmit;
pub mod udp;
mod uring;
mod vhost;
pub mod vhost_user;
mod virtio;
mod virtio_net;
pub mod wait;
mod xdp;

pub use bell::Bell;
pub use buffer::DeviceBuf;
pub use cpus::{CpuSet, bind_to_cpu, may_use_cpu};
pub use device::{
    Device, DeviceHandle, DeviceKind, DeviceName, DeviceOptions, DeviceSink, DeviceSource, KINDS,
    Origin, SystemSource, on_wire,
};
pub use finding::{Finding, State};
pub use handover::Holdings;
pub use heartbeat::Heartbeat;
pub use interface::{Feature, Interface, ReceiveSettings};
pub use isolation::Isolation;
pub use link_watch::LinkWatch;
pub use listener::{Access, Listener, remove_stale};
pub use lock::{Lock, lock_folder};
pub use mentions::Mention;
pub use packet::{PacketOptions, PacketSource};
pub use priority::set_nice;
pub use tap::{SubmitMode, Tap, TapKind, TapSource};
pub use vhost::{GUEST_FILES, GuestMemory, GuestOptions, LINE_BYTES, PayloadPlaces};
pub use virtio_net::{CopyPath, FrameLayout};
