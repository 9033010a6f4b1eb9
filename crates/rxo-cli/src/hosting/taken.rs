//! Checks that an address for rxo's host is not also an address of the system.
//!
//! On `packet:IF`, both rxo and the system receive every frame. If the system had the address too, it would
//! send a reset in addition to rxo's answer.

use std::net::IpAddr;

use anyhow::Result;

use crate::exit::usage;

/// Checks that no interface of the system has `address`.
///
/// # Errors
/// If the system has the address; the message names the remedy.
pub(super) fn refuse(address: IpAddr) -> Result<()> {
    if is_system_address(address) {
        let remedy = "choose one that no interface has, or take it away with `ip address delete`";
        return Err(usage(format!(
            "--ip {address}: the system has it and would answer too; {remedy}"
        )));
    }
    Ok(())
}

/// Returns `true` if an interface of the system in this network namespace has `address`. Lists the addresses instead
/// of trying to bind a socket, because in a namespace without addresses a socket can be bound to every address.
/// Returns `false` if this process may not list addresses.
fn is_system_address(address: IpAddr) -> bool {
    let interfaces = if_addrs::get_if_addrs().unwrap_or_default();
    address.is_loopback() || interfaces.iter().any(|interface| interface.ip() == address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_system_has_is_refused() {
        let said = refuse(IpAddr::from([127, 0, 0, 1])).unwrap_err().to_string();
        assert!(said.starts_with("--ip 127.0.0.1: the system has it"), "{said}");
        assert!(refuse(IpAddr::from([192, 0, 2, 77])).is_ok());
    }
}
