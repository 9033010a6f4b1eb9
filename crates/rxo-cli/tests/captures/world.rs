//! A test's own folder, the command run in it, and captures as its input.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use rxo_capture::{Capture, CaptureWriter, Interface, LinkType, Packet as Written, Record};
use rxo_frame::Instant;
use rxo_testkit::{Packet, arp, seg, udp};

/// A folder that is deleted with the test.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    /// Makes a folder for the test of this name.
    pub(crate) fn new(test: &str) -> Self {
        let path = std::env::temp_dir().join(format!("rxo-{test}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    /// Writes a file in the folder, and returns its path.
    pub(crate) fn write(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, bytes).unwrap();
        path
    }

    pub(crate) fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.0.join(name)).unwrap()
    }

    /// Returns the names of all files in the folder, sorted.
    pub(crate) fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.0).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
    }

    /// Returns the command, with the folder as its working directory.
    pub(crate) fn command(&self, line: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rxo"));
        command.args(line.split_whitespace()).current_dir(&self.0);
        command
    }

    /// Runs the command in the folder; it must exit with `code`, and print one line on standard error, or
    /// none if `code` is 0. Returns standard output and that line.
    pub(crate) fn rxo(&self, line: &str, code: i32) -> (String, String) {
        let Output { status, stdout, stderr } = self.command(line).output().unwrap();
        let said = String::from_utf8(stderr).unwrap();
        assert_eq!(status.code(), Some(code), "{line}: {said}");
        assert_eq!(said.lines().count(), usize::from(code != 0), "{line}: {said}");
        (String::from_utf8(stdout).unwrap(), said)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        _ = fs::remove_dir_all(&self.0);
    }
}

/// Returns the paths of the real captures, compressed as they are, beside the project; empty if the folder
/// does not exist.
pub(crate) fn shared_captures() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/captures");
    let Ok(entries) = fs::read_dir(&folder) else {
        println!("skipped: there are no captures in {}", folder.display());
        return Vec::new();
    };
    let paths = entries.map(|entry| entry.unwrap().path());
    let mut captures: Vec<PathBuf> =
        paths.filter(|path| path.extension().is_some_and(|end| end == "gz")).collect();
    captures.sort();
    captures
}

/// Returns every record of a capture up to the first damage, and its interfaces.
pub(crate) fn records(path: &Path) -> (Vec<Record>, Vec<Interface>) {
    let (mut capture, mut records) = (Capture::open(path).unwrap(), Vec::new());
    while capture.read_batch(&mut records, 1_000).is_ok_and(|read| read > 0) {}
    (records, capture.interfaces().to_vec())
}

/// Generates traffic of many kinds: two versions of IP, tags, padding, fragments, bad checksums, pure ACKs,
/// congestion marks; `flows` interleaved bulk transfers.
pub(crate) fn mixed(flows: u32, segments: u32) -> Vec<Packet> {
    let mut packets = Vec::new();
    for n in 0..segments {
        for flow in 0..flows {
            let data = seg().flow(flow).seq(1 + 1_400 * n).len(1_400).id(n as u16).ts(n, 7);
            let data = if flow % 3 == 1 { data.v6() } else { data };
            let data = if flow % 4 == 2 { data.vlan(9) } else { data };
            let data = if n % 16 == 15 { data.psh() } else { data };
            let data = if n % 50 == 20 { data.tos(3) } else { data };
            packets.push(if n % 70 == 33 { data.bad_checksum() } else { data });
        }
        packets.push(seg().flow(77).pure_ack().ack(n * 1_400).padded());
        packets.push(seg().flow(78).seq(1 + n).len(1).id(n as u16).padded_with(0x55));
        packets.extend((n % 9 == 0).then(arp));
        packets.extend((n % 8 == 0).then(|| udp().flow(3).len(60)));
        packets.extend((n % 13 == 0).then(|| seg().flow(1).fragment(100, true)));
    }
    packets
}

/// Returns a pcap file of these packets, 10 µs apart.
pub(crate) fn pcap(packets: &[Packet]) -> Vec<u8> {
    pcap_of(packets.iter().map(Packet::bytes))
}

/// Returns a pcap file of these frames, 10 µs apart.
pub(crate) fn pcap_of(frames: impl IntoIterator<Item = Vec<u8>>) -> Vec<u8> {
    let mut file = Vec::new();
    for number in [0xa1b2_c3d4_u32, 4 << 16 | 2, 0, 0, 65_535, 1] {
        file.extend(number.to_le_bytes());
    }
    for (number, bytes) in frames.into_iter().enumerate() {
        let micros = number as u32 * 10;
        let seconds = 1_700_000_000 + micros / 1_000_000;
        for number in [seconds, micros % 1_000_000, bytes.len() as u32, bytes.len() as u32] {
            file.extend(number.to_le_bytes());
        }
        file.extend(bytes);
    }
    file
}

/// Returns a pcapng file with the same stream on interfaces of several link types.
pub(crate) fn several_interfaces() -> Vec<u8> {
    const COOKED: [u8; 16] = [0, 0, 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0, 8, 0];
    let links = [LinkType::ETHERNET, LinkType::LINUX_SLL, LinkType::RAW, LinkType::NULL];
    let mut writer = CaptureWriter::new(Vec::new(), "a test").unwrap();
    for (number, link) in links.into_iter().enumerate() {
        let name = Some(format!("eth{number}"));
        let interface = Interface { link, snap_bytes: Some(9_000), name };
        writer.add_interface(&interface).unwrap();
    }
    for n in 0..400_u32 {
        let packet = seg().seq(1 + 900 * (n / 4)).len(900).id((n / 4) as u16);
        let raw = packet.clone().raw_ip().bytes();
        let bytes = match n % 4 {
            0 => packet.bytes(),
            1 => [&COOKED[..], &raw].concat(),
            2 => raw,
            _ => [&[2, 0, 0, 0][..], &raw].concat(),
        };
        let comment = format!("packet {n}");
        let written = Written {
            interface: n % 4,
            at: Instant::from_nanos(1_700_000_000_000_000_000 + u64::from(n) * 1_234),
            original_bytes: bytes.len() as u32,
            pieces: &[&bytes],
            direction: None,
            comments: if n % 50 == 0 { &[&comment] } else { &[] },
            custom: &[],
        };
        writer.write(&written).unwrap();
    }
    writer.finish().unwrap()
}
