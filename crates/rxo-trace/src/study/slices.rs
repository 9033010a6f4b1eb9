//! Slices: the byte ranges of the files that a part of a study reads.
//!
//! The files, in their order, are cut into parts of equal length; each cut is moved to a long pause
//! ([`rxo_capture::Capture::cut`]). A compressed file belongs to the part that contains its first byte. So does
//! a file that is not a capture; reading it then reports the error. Every caller gets the same result, so parts
//! need no communication.

use std::path::{Path, PathBuf};

use rxo_capture::{Capture, CaptureError, Fault};

use super::part::{Mark, Span};

/// A slice: the bytes of a file that a part of a study reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slice {
    /// The path of the file.
    pub path: PathBuf,
    /// The offset in the file of the first byte of the slice.
    pub from: u64,
    /// The offset in the file after the last byte of the slice; `None` for the rest of the file.
    pub to: Option<u64>,
}

impl Slice {
    /// Opens this slice of the file as a capture.
    ///
    /// # Errors
    /// If the file cannot be opened, or is not a capture.
    pub fn open(&self) -> Result<Capture, CaptureError> {
        match (self.from, self.to) {
            (0, None) => Capture::open(&self.path),
            (from, to) => Capture::open_between(&self.path, from, to.unwrap_or(u64::MAX)),
        }
    }
}

/// Returns the slices of `files` that part `number` of `parts` must read, and the span of that part. `number`
/// counts from 1. Reads a few megabytes at both ends of the part.
///
/// # Errors
/// If a file that begins like a capture cannot be read.
///
/// # Examples
/// Studies the second of four parts:
/// ```no_run
/// use rxo_coalesce::Policy;
/// use rxo_trace::study::{Point, Settings, Study, slices};
///
/// let files = ["a.pcap".into(), "b.pcapng".into()];
/// let (span, slices) = slices(&files, 2, 4)?;
/// let point = Point { policy: Policy::linux_gro(), poll: "time:50us".parse()? };
/// let mut study = Study::new(Settings::new(point))?;
/// for slice in slices {
///     study.read(&mut slice.open()?, |_position| true);
/// }
/// std::fs::write("2.rxo", study.into_part(Some(span), None).to_bytes())?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn slices(
    files: &[PathBuf],
    number: u32,
    parts: u32,
) -> Result<(Span, Vec<Slice>), CaptureError> {
    // A missing file counts as empty here. Opening it reports the error.
    let lengths: Vec<u64> =
        files.iter().map(|path| std::fs::metadata(path).map_or(0, |data| data.len())).collect();
    let series = series(files, &lengths, parts);
    let from = boundary(files, &lengths, number.saturating_sub(1), parts)?;
    let to = boundary(files, &lengths, number, parts)?;
    let slices = files.iter().zip(0..).filter_map(|(path, file)| {
        let starts = file > from.0 || file == from.0 && from < to;
        let is_read = starts && (file < to.0 || file == to.0 && to.1 > 0);
        is_read.then(|| Slice {
            path: path.clone(),
            from: if file == from.0 { from.1 } else { 0 },
            to: (file == to.0).then_some(to.1),
        })
    });
    let span = Span { series, from, to, is_last: number == parts };
    Ok((span, slices.collect()))
}

/// Returns a number that identifies the series of the captures `files`, cut into `parts` parts.
fn series(files: &[PathBuf], lengths: &[u64], parts: u32) -> u64 {
    let mut mark = Mark::default();
    mark.add(&parts.to_le_bytes());
    for (path, length) in files.iter().zip(lengths) {
        mark.add(path.as_os_str().as_encoded_bytes());
        mark.add(&length.to_le_bytes());
    }
    mark.0
}

/// Returns the boundary between part `number` and the next one: the index of a file, and an offset in that file in
/// bytes.
fn boundary(
    files: &[PathBuf],
    lengths: &[u64],
    number: u32,
    parts: u32,
) -> Result<(u32, u64), CaptureError> {
    // The first part has the first file even if that is empty or missing, so that its error is not lost.
    if number == 0 {
        return Ok((0, 0));
    }
    let all: u64 = lengths.iter().sum();
    if number >= parts {
        return Ok((files.len() as u32, 0));
    }
    let each = all / u64::from(parts);
    let mut near = (u128::from(all) * u128::from(number) / u128::from(parts)) as u64;
    for ((path, length), file) in files.iter().zip(lengths).zip(0..) {
        if near < *length {
            return cut(path, *length, (file, near), each / 2);
        }
        near -= length;
    }
    Ok((files.len() as u32, 0))
}

fn cut(
    path: &Path,
    length: u64,
    (file, near): (u32, u64),
    within: u64,
) -> Result<(u32, u64), CaptureError> {
    if near == 0 {
        return Ok((file, 0));
    }
    let at = match Capture::cut(path, near, within) {
        Err(error) if matches!(error.fault(), Fault::Open(_) | Fault::Foreign(_)) => None,
        at => at?,
    };
    Ok(at.filter(|at| *at < length).map_or((file + 1, 0), |at| (file, at)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_first_file_that_is_missing_belongs_to_the_first_part() {
        let folder = std::env::temp_dir().join(format!("rxo-slices-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let (missing, text) = (folder.join("missing.pcap"), folder.join("text"));
        // A file that is no capture is cut nowhere, and belongs to the part with its first byte.
        std::fs::write(&text, [b'x'; 4_000]).unwrap();
        let files = [missing.clone(), text.clone()];
        let read = |number| {
            let (span, slices) = slices(&files, number, 2).unwrap();
            (span.from, slices.into_iter().map(|slice| slice.path).collect::<Vec<_>>())
        };
        let (first, second) = (read(1), read(2));
        std::fs::remove_dir_all(&folder).unwrap();
        assert_eq!(first, ((0, 0), vec![missing, text]));
        assert_eq!(second.1, Vec::<PathBuf>::new());
    }
}
