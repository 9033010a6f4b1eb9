//! Link watch: reports when an interface goes down or comes up.
//!
//! A link that goes down does not close its device: the sink drops and counts frames until the link is up again,
//! and this module provides a line that tells the user so.

use crate::interface::Interface;

/// Reports when an interface has gone down or come up.
#[derive(Debug, Default)]
pub struct LinkWatch {
    is_down: bool,
}

impl LinkWatch {
    /// Returns a line for the user if `interface` has gone down or come up since the last call; otherwise
    /// `None`. `label` is the device as the user wrote it. Makes a system call.
    pub fn notice(&mut self, label: &str, interface: &Interface) -> Option<String> {
        // If the interface was deleted, the next read or write returns an error.
        self.changed_to(!interface.is_up().unwrap_or(!self.is_down), label, interface.name())
    }

    fn changed_to(&mut self, is_down: bool, label: &str, name: &str) -> Option<String> {
        if std::mem::replace(&mut self.is_down, is_down) == is_down {
            return None;
        }
        Some(if is_down {
            format!(
                "{label} is down; waiting, and dropping what is sent to it, until \
                 `ip link set {name} up`"
            )
        } else {
            format!("{label} is up again")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_change_is_said_once() {
        let mut watch = LinkWatch::default();
        let mut said = Vec::new();
        for is_down in [false, false, true, true, true, false, false, true] {
            said.extend(watch.changed_to(is_down, "tap:rxo0", "rxo0"));
        }
        assert_eq!(said.len(), 3, "{said:?}");
        assert!(said[0].contains("tap:rxo0 is down") && said[0].contains("ip link set rxo0 up"));
        assert_eq!(said[1], "tap:rxo0 is up again");
        assert_eq!(said[0], said[2]);
    }
}
