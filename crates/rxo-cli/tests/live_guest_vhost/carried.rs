//! Carries a file through `rxo run --host vhost:PATH` into a guest's Linux, and back.

use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::time::Duration;

use rxo_peers::{Guest, GuestImage, GuestNet, GuestOptions, Processor};
use rxo_testbed::Lab;
use rxo_testbed::traffic::Pattern;

use super::process::Rxo;

pub(crate) const GUEST: Ipv4Addr = Lab::HOST_ADDRESSES.0;
const PEER: Ipv4Addr = Lab::PEER_ADDRESSES.0;
const BYTES: usize = 8 << 20;
/// Time limit for a slow and busy machine.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(120);

/// The folder of a socket, removed on drop.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn new() -> Self {
        let folder = std::env::temp_dir().join(format!("rxo-linux-guest-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        _ = std::fs::remove_dir_all(&self.0);
    }
}

pub(crate) fn content() -> Vec<u8> {
    Pattern::of_port(0).file(BYTES)
}

/// Carries a file from the peer's Linux through `rxo run` with these flags into a guest's Linux, and back.
pub(crate) fn carried(flags: &str) {
    carried_by(flags, GuestNet::Vhost, |_| ());
}

/// Like [`carried`], with the card that `net` returns for a socket. `check` examines the guest at the end.
pub(crate) fn carried_by(
    flags: &str,
    net: impl Fn(PathBuf) -> GuestNet,
    check: impl Fn(&mut Guest),
) {
    let image = GuestImage::find().unwrap();
    let (lab, folder, content) = (Lab::through().unwrap(), Folder::new(), content());
    let socket = folder.0.join("vm.sock");
    let line = format!("--nic packet:wire0 --host vhost:{} {flags}", socket.display());
    let (rxo, _) = Rxo::start(lab.host(), &line);
    let (address, processor) = ((GUEST, 24), Processor::Emulated);
    let options = GuestOptions { net: net(socket), address, number: 2, processor };
    let mut guest = Guest::boot(&image, &options).unwrap();
    let hash = guest.send(lab.peer(), &content, TIMEOUT).unwrap();
    assert_eq!(hash, image.hash(&content).unwrap());
    let packets = guest.received_packets().unwrap();
    let frames = (BYTES / 1_448) as u64;
    assert!(packets <= frames / 2, "{packets} packets for {frames} frames: hardly coalesced");
    let back = guest.fetch(lab.peer(), PEER, TIMEOUT).unwrap();
    assert!(back == content, "{} bytes came back, and not those that went in", back.len());
    check(&mut guest);
    drop(guest);
    rxo.signal("INT");
    let (code, _, said) = rxo.end();
    assert_eq!(code, Some(0), "{said}");
}
