//! Layout of the file in which the plugin counts, as `plugin.c` defines it: 64-bit words in native byte
//! order. The first is the sum, the second is unused; then follow slots of an address and a count.

use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::FileExt;

use rxo_testbed::error::{Context, Result};

/// Number of slots of the file. A guest that boots and runs transfers uses a tenth of them.
pub(super) const SLOTS: usize = 1 << 18;
const WORD: usize = size_of::<u64>();
const HEAD: usize = 2 * WORD;
const SLOT: usize = 2 * WORD;
pub(super) const FILE_BYTES: u64 = (HEAD + SLOTS * SLOT) as u64;
/// Slot of user mode. The next slot, with address zero, is for kernel code beyond the table's capacity.
const USER: usize = 0;

/// Instructions of code blocks, by the address of the block.
#[derive(Clone, Debug, Default)]
pub(super) struct Blocks {
    pub(super) user: u64,
    /// Instructions of kernel blocks; address zero stands for code without a slot.
    pub(super) kernel: HashMap<u64, u64>,
}

/// Reads the number of all instructions so far.
pub(super) fn read_total(file: &File) -> Result<u64> {
    let mut bytes = [0; WORD];
    file.read_exact_at(&mut bytes, 0).context(unreadable)?;
    Ok(u64::from_ne_bytes(bytes))
}

/// Reads the instructions so far, by block.
pub(super) fn read_blocks(file: &File) -> Result<Blocks> {
    let mut bytes = vec![0; SLOTS * SLOT];
    file.read_exact_at(&mut bytes, HEAD as u64).context(unreadable)?;
    let word = |at: usize| {
        let word = bytes[at..at + WORD].try_into();
        u64::from_ne_bytes(word.unwrap_or_default())
    };
    let slot = |index: usize| (word(index * SLOT), word(index * SLOT + WORD));
    let kernel = (USER + 1..SLOTS).map(slot).filter(|&(_, count)| count > 0).collect();
    Ok(Blocks { user: slot(USER).1, kernel })
}

fn unreadable() -> String {
    "cannot read the count of a guest's instructions".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_where_the_plugin_writes_them() {
        let path = std::env::temp_dir().join(format!("rxo-layout-{}", std::process::id()));
        let file = File::options().read(true).write(true).create_new(true).open(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        file.set_len(FILE_BYTES).unwrap();
        let write = |word: u64, value: u64| {
            file.write_all_at(&value.to_ne_bytes(), word * WORD as u64).unwrap();
        };
        write(0, 17);
        for (slot, address, count) in [(0, 0, 5), (1, 0, 2), (4, 0xffff_ffff_8100_0000, 10)] {
            write(2 + slot * 2, address);
            write(3 + slot * 2, count);
        }
        assert_eq!(read_total(&file).unwrap(), 17);
        let blocks = read_blocks(&file).unwrap();
        assert_eq!(blocks.user, 5);
        assert_eq!(blocks.kernel, HashMap::from([(0, 2), (0xffff_ffff_8100_0000, 10)]));
    }
}
