//! Reads captures and prints for each the number of records and bytes, and the time that reading took.
//!
//! ```sh
//! cargo run --release -p rxo-capture --example read-capture -- FILE...    # `-` is standard input
//! ```

use std::io;
use std::process::ExitCode;
use std::time::Instant;

use rxo_capture::{Capture, CaptureError};

/// The number of records that are read at once.
const BATCH: usize = 64;

fn main() -> ExitCode {
    let failed = std::env::args().skip(1).filter_map(|name| report(&name).err());
    failed.fold(ExitCode::SUCCESS, |_, error| {
        eprintln!("{error}");
        ExitCode::FAILURE
    })
}

/// Reads one capture and prints the result, even if the capture cannot be read to its end.
fn report(name: &str) -> Result<(), CaptureError> {
    let started = Instant::now();
    let mut capture = match name {
        "-" => Capture::from_reader("standard input", Box::new(io::stdin()))?,
        path => Capture::open(path.as_ref())?,
    };
    let (mut records, mut bytes) = (0_u64, 0_u64);
    let result = read(&mut capture, |length| {
        records += 1;
        bytes += length as u64;
    });
    let seconds = started.elapsed().as_secs_f64();
    println!(
        "{name}: {}, {records} records, {bytes} bytes, {seconds:.3} s, {:.1} ns a record, \
         {:.2} GB/s",
        capture.format(),
        seconds * 1e9 / records.max(1) as f64,
        bytes as f64 / seconds / 1e9
    );
    result
}

fn read(capture: &mut Capture, mut visit: impl FnMut(usize)) -> Result<(), CaptureError> {
    let mut batch = Vec::with_capacity(BATCH);
    while capture.read_batch(&mut batch, BATCH)? > 0 {
        batch.drain(..).for_each(|record| visit(record.bytes.as_ref().len()));
    }
    Ok(())
}
