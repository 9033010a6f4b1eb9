//! Writes the archive of a guest's first file system: cpio in the format "newc" (Linux,
//! `Documentation/driver-api/early-userspace/buffer-format.rst`).

const FILE: u32 = 0o100_000;
const DIRECTORY: u32 = 0o040_000;
/// Name of the last entry of an archive.
const END: &str = "TRAILER!!!";

/// An archive that is being written.
#[derive(Debug, Default)]
pub(super) struct Archive {
    bytes: Vec<u8>,
    entries: u32,
}

impl Archive {
    /// Adds an empty directory. Its parent must exist.
    pub(super) fn directory(&mut self, name: &str) {
        self.entry(name, DIRECTORY | 0o755, &[]);
    }

    /// Adds an executable file.
    pub(super) fn program(&mut self, name: &str, content: &[u8]) {
        self.entry(name, FILE | 0o755, content);
    }

    /// Adds a file.
    pub(super) fn file(&mut self, name: &str, content: &[u8]) {
        self.entry(name, FILE | 0o644, content);
    }

    /// Ends the archive, and returns its bytes.
    pub(super) fn finish(mut self) -> Vec<u8> {
        self.entry(END, 0, &[]);
        self.bytes
    }

    fn entry(&mut self, name: &str, mode: u32, content: &[u8]) {
        self.entries += 1;
        let (inode, links) = (self.entries, 1);
        let (size, name_size) = (content.len() as u32, name.len() as u32 + 1);
        let (owner, time, device, check) = (0, 0, 0, 0);
        let fields = [
            inode, mode, owner, owner, links, time, size, device, device, device, device,
            name_size, check,
        ];
        self.bytes.extend(b"070701");
        for field in fields {
            self.bytes.extend(format!("{field:08x}").bytes());
        }
        self.bytes.extend(name.bytes());
        self.bytes.push(0);
        self.pad();
        self.bytes.extend(content);
        self.pad();
    }

    /// Pads the archive to a multiple of four bytes, as after every name and content.
    fn pad(&mut self) {
        let padded = self.bytes.len().next_multiple_of(4);
        self.bytes.resize(padded, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Parses an archive: names, modes, contents.
    fn read(mut bytes: &[u8]) -> Vec<(String, u32, Vec<u8>)> {
        let mut entries = Vec::new();
        let whole = bytes.len();
        while !bytes.is_empty() {
            assert_eq!(&bytes[..6], b"070701");
            let field = |index: usize| {
                let digits = std::str::from_utf8(&bytes[6 + index * 8..14 + index * 8]).unwrap();
                u32::from_str_radix(digits, 16).unwrap() as usize
            };
            let (mode, size, name_size) = (field(1), field(6), field(11));
            let name = String::from_utf8(bytes[110..110 + name_size - 1].to_vec()).unwrap();
            let at = (110 + name_size).next_multiple_of(4);
            entries.push((name, mode as u32, bytes[at..at + size].to_vec()));
            bytes = &bytes[(at + size).next_multiple_of(4)..];
        }
        assert_eq!(whole % 4, 0);
        entries
    }

    #[test]
    fn what_was_written_is_read_back() {
        let mut archive = Archive::default();
        archive.directory("bin");
        archive.program("bin/a", b"12345");
        archive.file("lib.ko", b"");
        let entries = read(&archive.finish());
        let entry = |name: &str, mode, content: &[u8]| (name.to_owned(), mode, content.to_vec());
        assert_eq!(
            entries,
            [
                entry("bin", 0o040_755, b""),
                entry("bin/a", 0o100_755, b"12345"),
                entry("lib.ko", 0o100_644, b""),
                entry("TRAILER!!!", 0, b""),
            ]
        );
    }
}
