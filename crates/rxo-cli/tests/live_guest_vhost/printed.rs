//! Starts QEMU with the command line that `rxo guest` prints.

use rxo_peers::{Guest, GuestImage, GuestNet, GuestOptions, Processor};
use rxo_testbed::Lab;

use super::carried::{Folder, GUEST, TIMEOUT, content};
use super::process::{Rxo, run};

/// The command line that rxo prints starts a guest. It is used verbatim, with its note for machines without
/// KVM applied. QEMU would refuse the guest's name as an identifier.
pub(crate) fn the_line_that_rxo_prints_starts_a_guest() {
    let image = GuestImage::find().unwrap();
    let (lab, folder, content) = (Lab::through().unwrap(), Folder::new(), content());
    let socket = folder.0.join("vm.sock");
    let vhost = format!("7/web={},mac=52:54:00:00:00:02", socket.display());
    let flags = format!("--nic packet:wire0 --vhost {vhost}");
    let shown = run(lab.host(), &format!("guest {flags} --dry-run"));
    let text = String::from_utf8(shown.stdout).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("7/web: ")).unwrap();
    let note = text.lines().find(|line| line.starts_with("without KVM")).unwrap();
    let added = note.split(' ').find(|word| word.starts_with(',')).unwrap();
    let (rxo, _) = Rxo::guests(lab.host(), &flags);
    let net = GuestNet::Line(format!("{line}{added}"));
    let options =
        GuestOptions { net, address: (GUEST, 24), number: 2, processor: Processor::Emulated };
    let mut guest = Guest::boot(&image, &options).unwrap();
    let hash = guest.send(lab.peer(), &content, TIMEOUT).unwrap();
    assert_eq!(hash, image.hash(&content).unwrap());
    drop(guest);
    rxo.signal("INT");
    let (code, _, said) = rxo.end();
    assert_eq!(code, Some(0), "{said}");
}
