//! Reads a whole capture, for tests that compare records.

use std::io::{Cursor, Read};

use rxo_capture::{Capture, CaptureError, Interface, Record};

/// The result of reading a file to its end.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) records: Vec<Record>,
    pub(crate) interfaces: Vec<Interface>,
    pub(crate) format: String,
    pub(crate) error: Option<CaptureError>,
}

impl Outcome {
    /// Returns the records of a file that must be free of errors.
    #[track_caller]
    pub(crate) fn sound(self) -> Vec<Record> {
        assert!(self.error.is_none(), "{}", self.message());
        self.records
    }

    /// Returns the error message that a user would see.
    #[track_caller]
    pub(crate) fn message(&self) -> String {
        let message = self.error.as_ref().expect("an error").to_string();
        assert!(!message.contains('\n'), "more than one line: {message}");
        message
    }

    /// Returns the position of the error.
    #[track_caller]
    pub(crate) fn offset(&self) -> u64 {
        self.error.as_ref().expect("an error").offset()
    }

    pub(crate) fn packets(&self) -> Vec<&[u8]> {
        self.records.iter().map(|record| record.bytes.as_ref()).collect()
    }
}

pub(crate) fn read(bytes: &[u8]) -> Outcome {
    read_from(Box::new(Cursor::new(bytes.to_vec())), 7)
}

/// Reads `batch` records at a time and keeps them all.
pub(crate) fn read_from(reader: Box<dyn Read + Send>, batch: usize) -> Outcome {
    let mut records = Vec::new();
    let mut capture = match Capture::from_reader("test", reader) {
        Ok(capture) => capture,
        Err(error) => {
            let (interfaces, format) = (Vec::new(), String::new());
            return Outcome { records, interfaces, format, error: Some(error) };
        }
    };
    let error = loop {
        match capture.read_batch(&mut records, batch) {
            Ok(0) => break None,
            Ok(count) => assert!(count <= batch),
            Err(error) => break Some(error),
        }
    };
    let again = capture.read_batch(&mut records, batch);
    assert!(matches!(again, Ok(0)), "behind the end stands {again:?}");
    let interfaces = capture.interfaces().to_vec();
    Outcome { records, interfaces, format: capture.format().to_string(), error }
}

/// A reader that yields a few bytes at a time, like a pipe.
pub(crate) struct Dribble<R>(pub(crate) R, pub(crate) usize);

impl<R: Read> Read for Dribble<R> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let most = self.1.min(into.len());
        self.0.read(&mut into[..most])
    }
}
