//! The output of a command: a plain file, a pipe or standard output.
//!
//! A plain file gets its name only when it is complete. Standard output, pipes and `/dev/null` are written
//! directly, so their readers can recognise an incomplete result only by the exit code of the command.

use std::fs::{self, File, Metadata};
use std::io::{self, IsTerminal};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

use anyhow::{Context, Result};
use serde::Serialize;

use crate::fault::usage;
use crate::files::{Unfinished, takes_a_stream};
use crate::output;

/// The output of a command, while the command writes it.
#[derive(Debug)]
pub struct OutputFile {
    name: String,
    /// The pipe, device or temporary file that is being written; `None` if the path is `-`.
    unfinished: Option<Unfinished>,
    /// `true` if the output is standard output, so that nothing else may be printed there.
    is_standard: bool,
}

impl OutputFile {
    /// Opens the output at `path`; `-` is standard output. Returns the output, and the file to write to.
    ///
    /// # Errors
    /// If the path is one of the `inputs` (`-` is standard input), a directory or a disk, if it is `-` and
    /// standard output is a terminal, or if it cannot be written.
    pub fn create(path: &Path, inputs: &[&Path]) -> Result<(Self, File)> {
        let name = path.display().to_string();
        let is_dash = path == Path::new("-");
        let place = if is_dash { Path::new(STANDARD_OUTPUT) } else { path };
        if let Some(input) = inputs.iter().find(|input| is_same(place, input)) {
            return Err(usage(format!(
                "{name} is the same file as {}: name another to write",
                input.display()
            )));
        }
        if is_dash {
            return Self::standard(name);
        }
        let is_odd = |found: Metadata| !found.is_file() && !takes_a_stream(&found);
        if fs::metadata(path).is_ok_and(is_odd) {
            return Err(usage(format!("{name} is no plain file, pipe or -: name one to write")));
        }
        Self::named(name, path)
    }

    fn standard(name: String) -> Result<(Self, File)> {
        let output = io::stdout();
        if output.is_terminal() {
            return Err(usage("- is a terminal: redirect standard output, or name a file"));
        }
        let file = output.as_fd().try_clone_to_owned().map(File::from);
        let file = file.with_context(|| format!("{name} cannot be written"))?;
        Ok((Self { name, unfinished: None, is_standard: true }, file))
    }

    fn named(name: String, path: &Path) -> Result<(Self, File)> {
        if path.file_name().is_none() {
            return Err(usage(format!("{name} names no file: name one to write")));
        }
        let created = Unfinished::create(path);
        let (unfinished, file) = created.with_context(|| format!("{name} cannot be written"))?;
        let is_standard = is_standard(&file);
        Ok((Self { name, unfinished: Some(unfinished), is_standard }, file))
    }

    /// Returns the name of the output, for messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Completes the output. A plain `file` is renamed to its final name. Returns the stream to which the summary may
    /// be printed.
    ///
    /// # Errors
    /// If the system refuses to write or rename the file.
    pub fn complete(self, file: &File) -> Result<Report> {
        if let Some(unfinished) = self.unfinished {
            let completed = unfinished.complete(file);
            completed.with_context(|| format!("{} cannot be written", self.name))?;
        }
        Ok(Report { is_aside: self.is_standard })
    }
}

/// The stream for a command's summary: standard output, or standard error if the result was written to standard
/// output.
#[derive(Clone, Copy, Debug)]
pub struct Report {
    is_aside: bool,
}

impl Report {
    /// Prints the summary `text`.
    ///
    /// # Errors
    /// If the reader has closed the stream.
    pub fn text(self, text: &str) -> Result<()> {
        if self.is_aside {
            output::aside(text);
            return Ok(());
        }
        output::text(text)
    }

    /// Prints the summary `value` as indented JSON.
    ///
    /// # Errors
    /// If the reader has closed the stream.
    pub fn json(self, value: &impl Serialize) -> Result<()> {
        self.text(&serde_json::to_string_pretty(value)?)
    }
}

/// Returns `true` if `path` and `input` are names of one plain file; `-` as `input` is standard input.
fn is_same(path: &Path, input: &Path) -> bool {
    let input = if input == Path::new("-") { Path::new(STANDARD_INPUT) } else { input };
    let found = [path, input].map(|path| fs::metadata(path).ok().filter(Metadata::is_file));
    matches!(found, [Some(a), Some(b)] if identity(&a) == identity(&b))
}

/// Returns `true` if `file` is a pipe that is also standard output.
fn is_standard(file: &File) -> bool {
    let output = io::stdout().as_fd().try_clone_to_owned().map(File::from);
    let found = [Some(file), output.as_ref().ok()].map(|file| file?.metadata().ok());
    matches!(found, [Some(a), Some(b)] if a.file_type().is_fifo() && identity(&a) == identity(&b))
}

fn identity(found: &Metadata) -> (u64, u64) {
    (found.dev(), found.ino())
}

const STANDARD_INPUT: &str = "/dev/stdin";
const STANDARD_OUTPUT: &str = "/dev/stdout";

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::path::PathBuf;

    use super::*;

    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("rxo-{name}-{}", std::process::id()));
            fs::create_dir_all(&path).unwrap();
            Self(path)
        }

        fn file(&self, name: &str) -> PathBuf {
            self.0.join(name)
        }

        fn names(&self) -> Vec<String> {
            let entries = fs::read_dir(&self.0).unwrap();
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn nothing_stands_under_the_name_before_the_end() {
        let folder = Folder::new("output-end");
        let name = folder.file("out.pcapng");
        let (output, mut file) = OutputFile::create(&name, &[]).unwrap();
        file.write_all(b"half").unwrap();
        assert!(!name.exists());
        drop(output);
        assert!(folder.names().is_empty());
        let (output, mut file) = OutputFile::create(&name, &[]).unwrap();
        file.write_all(b"all").unwrap();
        output.complete(&file).unwrap();
        assert_eq!(
            (folder.names(), fs::read(&name).unwrap()),
            (vec!["out.pcapng".into()], b"all".to_vec())
        );
    }

    #[test]
    fn an_input_is_known_by_any_name() {
        let folder = Folder::new("output-same");
        let (name, hard, soft) = (folder.file("a"), folder.file("b"), folder.file("c"));
        fs::write(&name, "x").unwrap();
        fs::hard_link(&name, &hard).unwrap();
        std::os::unix::fs::symlink(&name, &soft).unwrap();
        for other in [&name, &hard, &soft] {
            let error = OutputFile::create(other, &[&name]).unwrap_err();
            assert!(error.to_string().contains("is the same file as"), "{error}");
        }
        assert_eq!(fs::read(&name).unwrap(), b"x");
    }

    #[test]
    fn folders_and_nowhere_are_refused() {
        let folder = Folder::new("output-odd");
        for path in [Path::new("/"), &folder.0] {
            assert!(OutputFile::create(path, &[]).is_err(), "{}", path.display());
        }
        let error = OutputFile::create(&folder.file("no/where"), &[]).unwrap_err();
        assert!(error.to_string().contains("no/where cannot be written"), "{error}");
    }
}
