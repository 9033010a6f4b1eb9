//! `rxo-pages DIR`: writes the completions and the manual pages of the `rxo` command into a directory.
//!
//! Both come from the definition of the flags, so that they cannot differ from what the command takes. A program of its
//! own, so that neither `rxo` nor xtask is built with the generators. The pages have no date, so that the same flags
//! give the same bytes.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use clap::{Command, ValueEnum};
use clap_complete::Shell;
use clap_mangen::Man;

fn main() -> Result<()> {
    let mut arguments = std::env::args_os().skip(1);
    let (Some(folder), None) = (arguments.next(), arguments.next()) else {
        bail!("usage: rxo-pages DIR");
    };
    write(&rxo_cli::definition(), Path::new(&folder))
}

/// Writes `completions/` with a file for each shell, and `man/` with a page for each command.
fn write(command: &Command, folder: &Path) -> Result<()> {
    let [completions, man] = ["completions", "man"].map(|name| folder.join(name));
    for folder in [&completions, &man] {
        fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    }
    for shell in Shell::value_variants() {
        clap_complete::generate_to(*shell, &mut command.clone(), NAME, &completions)
            .with_context(|| format!("cannot write the completions for {shell}"))?;
    }
    let mut command = command.clone().disable_help_subcommand(true);
    command.build();
    let source = format!("{NAME} {}", command.get_version().unwrap_or_default());
    pages(&command, &source, &man)
}

/// Writes a page for `command` and for each below it.
fn pages(command: &Command, source: &str, folder: &Path) -> Result<()> {
    for below in command.get_subcommands().filter(|one| !one.is_hide_set()) {
        pages(below, source, folder)?;
    }
    let page = Man::new(command.clone()).source(source).manual("rxo");
    page.generate_to(folder)
        .with_context(|| format!("cannot write a page in {}", folder.display()))?;
    Ok(())
}

/// The program that is completed.
const NAME: &str = "rxo";

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// The names of the pages that `command` and those below it need.
    fn names_of(command: &Command, prefix: &str) -> Vec<String> {
        let name = format!("{prefix}{}", command.get_name());
        let below = command.get_subcommands().filter(|one| !one.is_hide_set());
        let pages = below.flat_map(|one| names_of(one, &format!("{name}-")));
        pages.chain([format!("{name}.1")]).collect()
    }

    #[test]
    fn every_command_has_a_page_and_every_shell_its_completions() {
        let folder = std::env::temp_dir().join(format!("rxo-pages-{}", std::process::id()));
        let command = rxo_cli::definition();
        write(&command, &folder).unwrap();
        let mut expected = names_of(&command, "");
        expected.sort();
        assert_eq!(names(&folder.join("man")), expected);
        assert!(expected.len() > 15, "{expected:?}");
        assert_eq!(
            names(&folder.join("completions")),
            ["_rxo", "_rxo.ps1", "rxo.bash", "rxo.elv", "rxo.fish"]
        );
        let page = fs::read_to_string(folder.join("man/rxo-run.1")).unwrap();
        assert!(page.contains("take\\-over") && page.contains(".TH rxo-run 1  \"rxo 0."), "{page}");
        fs::remove_dir_all(&folder).unwrap();
    }
}
