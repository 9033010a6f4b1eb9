//! Interface lock: at most one rxo uses an interface.
//!
//! The lock is a socket with an abstract name. Such names belong to the network namespace, need neither
//! a directory nor privilege, and disappear with the last process that has the socket open.

use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::thread;
use std::time::Duration;

use rxo_device::DeviceError;

use crate::fault;

/// The lock of an interface, held until this process and those forked from it have dropped it or ended.
#[derive(Debug)]
pub(crate) struct InterfaceLock {
    _socket: UnixDatagram,
}

/// How often to try: a run that is ending holds the lock for some milliseconds more.
const ATTEMPTS: u32 = 40;
const BETWEEN: Duration = Duration::from_millis(25);

impl InterfaceLock {
    /// Takes the lock of the interface with this index. `device` is its name in messages. Waits up to a
    /// second for a run that is ending.
    ///
    /// # Errors
    /// If another rxo holds it.
    pub(crate) fn take(device: &str, index: u32) -> Result<Self, DeviceError> {
        let mut bound = bind(index);
        for _ in 1..ATTEMPTS {
            if !bound.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::AddrInUse) {
                break;
            }
            thread::sleep(BETWEEN);
            bound = bind(index);
        }
        let socket = bound.map_err(|error| match error.kind() {
            io::ErrorKind::AddrInUse => {
                let remedy = "end that one first";
                fault::system(format!("{device} is in use by another rxo; {remedy}"), error)
            }
            _ => fault::system(format!("cannot lock {device}"), error),
        })?;
        Ok(Self { _socket: socket })
    }
}

fn bind(index: u32) -> io::Result<UnixDatagram> {
    UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(format!("rxo-interface-{index}"))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// No interface has such an index.
    const INDEX: u32 = u32::MAX;

    #[test]
    fn the_second_is_refused_until_the_first_is_gone() {
        let first = InterfaceLock::take("packet:eth1", INDEX).unwrap();
        let said = InterfaceLock::take("packet:eth1", INDEX).unwrap_err().to_string();
        assert!(said.starts_with("packet:eth1 is in use by another rxo"), "{said}");
        drop(first);
        InterfaceLock::take("packet:eth1", INDEX).unwrap();
    }
}
