//! Claims: locks that show whether another rxo process of this system uses an address on the same interface.
//!
//! Probes on the link cannot show this, because both hosts have the interface's Ethernet address, and a packet
//! socket does not receive the frames that another packet socket on its interface sends. An earlier host that
//! still waits for late ACKs at the same address would reset the connections of the new host. So each address
//! on an interface has a [`Lock`], which no other user of the system can take.

use std::net::IpAddr;

use rxo_driver::Lock;

use super::StartError;

/// The locks for the addresses of a host on an interface of the system. Dropping the value releases the locks.
#[derive(Debug)]
pub(super) struct Claims {
    _locks: Vec<Lock>,
}

impl Claims {
    /// Claims `addresses` on `interface`. If a lock cannot be taken although no other host holds it, the
    /// address of this lock counts as free.
    ///
    /// # Errors
    /// [`StartError::Taken`] if another host has claimed one of the addresses.
    pub(super) fn new(interface: &str, addresses: &[IpAddr]) -> Result<Self, StartError> {
        let claim = |address: &IpAddr| {
            let taken = Lock::try_take(&format!("host-{interface}-{address}")).ok()?;
            let (address, interface) = (*address, interface.to_owned());
            Some(taken.ok_or(StartError::Taken { address, interface }))
        };
        let locks = addresses.iter().filter_map(claim).collect::<Result<_, _>>()?;
        Ok(Self { _locks: locks })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_claimed_once_and_free_again_afterwards() {
        // No interface has such a long name, so the locks do not affect a host that runs on this system.
        let interface = format!("of-a-test-of-claims-{}", std::process::id());
        let [one, other] = [1, 2].map(|last| IpAddr::from([192, 0, 2, last]));
        let first = Claims::new(&interface, &[one]).unwrap();
        let said = Claims::new(&interface, &[other, one]).unwrap_err().to_string();
        assert!(said.starts_with("address 192.0.2.1 is in use: another rxo"), "{said}");
        assert!(Claims::new(&interface, &[other]).is_ok());
        drop(first);
        assert!(Claims::new(&interface, &[other, one]).is_ok());
    }
}
