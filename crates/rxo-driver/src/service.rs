//! Service manager: sends the notifications that systemd expects from a service of `Type=notify`.
//!
//! This module is separate because the notifications are a protocol of their own: lines in datagrams to the
//! socket that `NOTIFY_SOCKET` names (sd_notify(3)). Contract: a notification never blocks, and does nothing
//! without a service manager.

use std::env;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

/// The service manager that has started this process. Without a service manager, notifications do nothing.
#[derive(Debug, Default)]
pub struct Service {
    manager: Option<UnixDatagram>,
    watchdog: Option<Duration>,
}

/// A state change of the service, which is sent to the manager.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notice {
    /// The service is ready for use.
    Ready,
    /// The service is ending.
    Stopping,
    /// The service still works.
    Alive,
}

impl Service {
    /// Connects to the service manager that the environment names; without a service manager, all
    /// notifications do nothing.
    #[must_use]
    pub fn of_environment() -> Self {
        let read = |name| env::var(name).ok();
        let manager = read("NOTIFY_SOCKET").as_deref().and_then(connect);
        let is_for_us = read("WATCHDOG_PID").is_none_or(|id| id == std::process::id().to_string());
        let watchdog = read("WATCHDOG_USEC").filter(|_| is_for_us && manager.is_some());
        let watchdog = watchdog.and_then(|us| us.parse().ok()).map(Duration::from_micros);
        Self { manager, watchdog }
    }

    /// Returns the interval for sending [`Notice::Alive`]: half the time after which the manager kills a
    /// silent service. `None` if the manager expects no such notifications.
    #[must_use]
    pub fn period(&self) -> Option<Duration> {
        self.watchdog.map(|time| time / 2)
    }

    /// Notifies the service manager of the state change `notice`.
    pub fn notify(&self, notice: Notice) {
        let text = match notice {
            Notice::Ready => "READY=1",
            Notice::Stopping => "STOPPING=1",
            Notice::Alive => "WATCHDOG=1",
        };
        if let Some(manager) = &self.manager {
            // If the manager's queue is full, the notification is lost.
            _ = manager.send(text.as_bytes());
        }
    }
}

fn connect(name: &str) -> Option<UnixDatagram> {
    let address = match name.strip_prefix('@') {
        Some(name) => SocketAddr::from_abstract_name(name),
        None => SocketAddr::from_pathname(name),
    };
    let socket = UnixDatagram::unbound().ok()?;
    socket.set_nonblocking(true).ok()?;
    socket.connect_addr(&address.ok()?).ok()?;
    Some(socket)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manager_hears_what_it_is_told() {
        let name = format!("@rxo-service-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name[1..]).unwrap();
        let manager = UnixDatagram::bind_addr(&address).unwrap();
        let service = Service { manager: connect(&name), watchdog: None };
        for (notice, text) in [(Notice::Ready, "READY=1"), (Notice::Stopping, "STOPPING=1")] {
            service.notify(notice);
            let mut bytes = [0; 64];
            let read = manager.recv(&mut bytes).unwrap();
            assert_eq!(&bytes[..read], text.as_bytes());
        }
        drop(manager);
        service.notify(Notice::Alive);
        Service::default().notify(Notice::Ready);
    }
}
