//! A file that is there when it is complete, and not before.
//!
//! It is written under another name in the same folder and renamed at the end. Whatever ends the
//! command early leaves nothing under the final name.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::Input;
use crate::exit::usage;

/// The file, as long as it is not complete.
#[derive(Debug)]
pub(crate) struct OutputFile {
    name: String,
    /// Where it goes in the end.
    target: PathBuf,
    temporary: PathBuf,
    is_complete: bool,
}

impl OutputFile {
    /// Begins the file that the user calls `name`.
    ///
    /// # Errors
    /// When it is one of the `inputs`, is no plain file, or cannot be written.
    pub(crate) fn create(name: &str, inputs: &[&Input]) -> Result<(Self, File)> {
        if name == "-" {
            return Err(usage("- cannot be written to: name a file"));
        }
        if let Some(input) = inputs.iter().find(|input| is_same(name, input)) {
            let input = input.name();
            return Err(usage(format!(
                "{name} is the same file as {input}: name another to write"
            )));
        }
        // A link is followed, so that the file it names is the one replaced.
        let target = fs::canonicalize(name).unwrap_or_else(|_| PathBuf::from(name));
        if fs::metadata(&target).is_ok_and(|found| !found.is_file()) {
            return Err(usage(format!("{name} is no plain file: name one to write")));
        }
        let temporary = temporary(&target)
            .ok_or_else(|| usage(format!("{name} names no file: name one to write")))?;
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(&temporary)
            .with_context(|| format!("{name} cannot be written"))?;
        let name = name.to_owned();
        Ok((Self { name, target, temporary, is_complete: false }, file))
    }

    /// Everything is written: gives `file` its name.
    ///
    /// # Errors
    /// When the system refuses.
    pub(crate) fn complete(mut self, file: &File) -> Result<()> {
        file.sync_all()
            .and_then(|()| fs::rename(&self.temporary, &self.target))
            .with_context(|| format!("{} cannot be written", self.name))?;
        self.is_complete = true;
        Ok(())
    }
}

impl Drop for OutputFile {
    fn drop(&mut self) {
        if !self.is_complete {
            // It was not wanted under this name anyway.
            _ = fs::remove_file(&self.temporary);
        }
    }
}

/// The name of the file in the making: hidden, beside the target, and nobody else's.
fn temporary(target: &Path) -> Option<PathBuf> {
    let name = target.file_name()?.to_string_lossy().into_owned();
    Some(target.with_file_name(format!(".{name}.{}.partial", std::process::id())))
}

/// Whether `name` is the file that `input` is read from, by whatever name.
fn is_same(name: &str, input: &Input) -> bool {
    let input = match input {
        Input::File(input) => input,
        Input::Standard => STANDARD_INPUT,
    };
    let identity = |path: &str| -> io::Result<(u64, u64)> {
        let found = fs::metadata(path)?;
        Ok((found.dev(), found.ino()))
    };
    matches!((identity(name), identity(input)), (Ok(a), Ok(b)) if a == b)
}

const STANDARD_INPUT: &str = "/dev/stdin";

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("rxo-{name}-{}", std::process::id()));
            fs::create_dir_all(&path).unwrap();
            Self(path)
        }

        fn file(&self, name: &str) -> String {
            self.0.join(name).display().to_string()
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
        assert!(!Path::new(&name).exists());
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
            let error = OutputFile::create(other, &[&Input::new(&name)]).unwrap_err();
            assert!(error.to_string().contains("is the same file as"), "{error}");
        }
        assert_eq!(fs::read(&name).unwrap(), b"x");
    }

    #[test]
    fn devices_folders_and_nowhere_are_refused() {
        let folder = Folder::new("output-odd");
        for name in ["/dev/null", "/", "-", &folder.0.display().to_string()] {
            assert!(OutputFile::create(name, &[]).is_err(), "{name}");
        }
        let error = OutputFile::create(&folder.file("no/where"), &[]).unwrap_err();
        assert!(error.to_string().contains("no/where cannot be written"), "{error}");
    }
}
