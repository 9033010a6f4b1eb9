//! Recognizes files that are not captures, and names their format.
//!
//! The error "unknown magic" alone would leave the user to find out whether the file is an archive, a program
//! or the capture of another tool. Each format needs one row in the table.

/// Returns the format that the file beginning with `head` seems to have, and the remedy.
pub(super) fn name(head: &[u8]) -> String {
    if head.is_empty() {
        return "it is empty; look whether the capturing program was still to write it".to_owned();
    }
    match KNOWN.iter().find(|(magic, ..)| head.starts_with(magic)) {
        Some((_, what, remedy)) => format!("it looks like {what}; {remedy}"),
        None if is_text(head) => format!("it looks like text; {GIVE_A_CAPTURE}"),
        None => format!("it begins with {}; {GIVE_A_CAPTURE}", Hex(head)),
    }
}

const GIVE_A_CAPTURE: &str = "give a pcap or pcapng file, plain or in gzip, zstd, xz, lz4 or bzip2";
const UNPACK: &str =
    "unpack it first (gzip, zstd, xz, lz4 and bzip2 are unpacked while reading, each once)";
const MERGE: &str = "give it to rxo analyze, or its bytes to rxo.Study.from_bytes in Python";
const CONVERT: &str = "convert it: editcap -F pcapng IN OUT";

/// The formats of other files: their first bytes, their names, and the remedies.
const KNOWN: &[(&[u8], &str, &str)] = &[
    (b"\xfd7zXZ\0", "xz inside what was unpacked already", UNPACK),
    (b"BZh", "bzip2 inside what was unpacked already", UNPACK),
    (b"\x04\x22\x4d\x18", "lz4 inside what was unpacked already", UNPACK),
    (b"PK\x03\x04", "a zip archive", UNPACK),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive", UNPACK),
    (b"\x1f\x8b", "gzip inside what was unpacked already", UNPACK),
    (b"\x28\xb5\x2f\xfd", "zstd inside what was unpacked already", UNPACK),
    (b"\x7fELF", "a program", GIVE_A_CAPTURE),
    (b"rxo-part", "a saved part of a study", MERGE),
    (b"snoop\0\0\0", "a snoop capture", CONVERT),
    (b"GMBU", "a Network Monitor capture", CONVERT),
    (b"RTSS", "a Network Monitor capture", CONVERT),
    (b"TRSNIFF", "a Sniffer capture", CONVERT),
    (b"\x54\x52\x00", "a K12 capture", CONVERT),
    (b"\x1c\x00\x01\xac", "an Ixia capture", CONVERT),
    (b"\x1c\x00\x01\xab", "an Ixia capture", CONVERT),
    (b"\xac\x01\x00\x1c", "an Ixia capture", CONVERT),
    (b"\xab\x01\x00\x1c", "an Ixia capture", CONVERT),
];

fn is_text(head: &[u8]) -> bool {
    head.iter().all(|byte| byte.is_ascii_graphic() || byte.is_ascii_whitespace())
}

struct Hex<'a>(&'a [u8]);

impl core::fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let first = self.0.get(..4).unwrap_or(self.0);
        first.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}
