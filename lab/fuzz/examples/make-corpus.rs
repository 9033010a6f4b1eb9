//! Writes the kept corpus to `lab/fuzz/corpus`.
//!
//! It is an example, not a binary, because a build with coverage instrumentation can link only the fuzz
//! targets.

use std::path::Path;
use std::{fs, io};

fn main() -> io::Result<()> {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    for seed in rxo_fuzz::corpus::seeds() {
        let folder = corpus.join(seed.target);
        fs::create_dir_all(&folder)?;
        fs::write(folder.join(seed.name), seed.bytes)?;
    }
    Ok(())
}
