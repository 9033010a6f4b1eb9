//! Parses the two addresses of a cast: the sender's, and that of the multicast group.

use std::net::SocketAddr;

use anyhow::Result;
use rxo_host::link::Channel;

use crate::exit::usage;

/// Parses the addresses of the sender and the group of a cast, and checks that they fit together.
///
/// # Errors
/// If an argument is not an address with a port, or the two addresses cannot form a channel.
pub(super) fn channel(source: &str, group: &str) -> Result<(SocketAddr, SocketAddr)> {
    let sender = address(source, source, "10.0.0.1:7000 or [fd00::1]:7000")?;
    let option = format!("--group {group}");
    let group = address(&option, group, "232.1.1.1:7000 or [ff3e::8000:1]:7000")?;
    Channel::new(sender.ip(), group.ip()).map_err(|error| usage(format!("{option}: {error}")))?;
    Ok((sender, group))
}

fn address(option: &str, text: &str, such: &str) -> Result<SocketAddr> {
    let address: Option<SocketAddr> = text.parse().ok();
    address
        .filter(|address| address.port() > 0)
        .ok_or_else(|| usage(format!("{option}: give an address and a port, such as {such}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_joined_is_named_with_what_can() {
        assert!(channel("10.0.0.1:7000", "232.1.1.1:7000").is_ok());
        assert!(channel("[fd00::1]:7000", "[ff3e::8000:1]:7000").is_ok());
        let option = |source, group| channel(source, group).unwrap_err().to_string();
        let rows = [
            ("10.0.0.1", "232.1.1.1:7000", "10.0.0.1: give an address and a port, such as 10.0"),
            ("10.0.0.1:0", "232.1.1.1:7000", "10.0.0.1:0: give an address and a port"),
            ("10.0.0.1:7000", "232.1.1.1", "--group 232.1.1.1: give an address and a port"),
            ("10.0.0.1:7000", "10.0.0.2:7000", "--group 10.0.0.2:7000: 10.0.0.2 is no group"),
            ("[fd00::1]:7000", "232.1.1.1:7000", "--group 232.1.1.1:7000: fd00::1 cannot send"),
        ];
        for (source, group, start) in rows {
            assert!(option(source, group).starts_with(start), "{}", option(source, group));
        }
    }
}
