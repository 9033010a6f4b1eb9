//! Reads captures and prints how many records and bytes each has, and how long that took.
//!
//! ```sh
//! cargo run --release -p rxo-device --example read-capture -- FILE...    # `-` is standard input
//! ```

use std::error::Error;
use std::io;
use std::time::Instant;

use rxo_device::capture::Capture;

/// As many as an engine is given at once.
const BATCH: usize = 64;

fn main() -> Result<(), Box<dyn Error>> {
    for name in std::env::args().skip(1) {
        let started = Instant::now();
        let mut capture = match name.as_str() {
            "-" => Capture::from_reader("standard input", Box::new(io::stdin()))?,
            path => Capture::open(path.as_ref())?,
        };
        let (records, bytes) = read(&mut capture)?;
        let seconds = started.elapsed().as_secs_f64();
        println!(
            "{name}: {}, {records} records, {bytes} bytes, {seconds:.3} s, {:.1} ns a record, \
             {:.2} GB/s",
            capture.format(),
            seconds * 1e9 / records.max(1) as f64,
            bytes as f64 / seconds / 1e9
        );
    }
    Ok(())
}

fn read(capture: &mut Capture) -> Result<(u64, u64), Box<dyn Error>> {
    let (mut records, mut bytes) = (0, 0);
    let mut batch = Vec::with_capacity(BATCH);
    while capture.read_batch(&mut batch, BATCH)? > 0 {
        for record in batch.drain(..) {
            records += 1;
            bytes += record.bytes.as_ref().len() as u64;
        }
    }
    Ok((records, bytes))
}
