//! Counts a guest's instructions: those of its kernel and programs, without the emulator's.
//!
//! QEMU translates the guest's code in blocks. A plugin (`plugin.c`), compiled when the guest starts, counts
//! each block that is executed. The counts are in a file that is mapped into QEMU and read here, so counting
//! executes nothing in the guest. A block that an exception leaves early counts completely; this error is
//! below one percent.

mod layout;
mod symbols;

use std::collections::HashMap;
use std::fs::File;
use std::io::Read;
use std::os::fd::AsRawFd;
use std::process::{Command, Stdio};

use super::image::GuestImage;
use super::{BRIEF, CARD, Guest, nameless};
use crate::folder::Folder;
use layout::Blocks;
use rxo_testbed::error::{Context, Result, failed};
pub use symbols::Symbols;

const PLUGIN: &str = include_str!("plugin.c");
const GRO: &str = include_str!("gro.c");

/// The plugin and its counts, as open files without names.
#[derive(Debug)]
pub(super) struct Counter {
    plugin: File,
    counts: File,
}

impl Counter {
    /// Compiles the plugin for the image's QEMU.
    pub(super) fn new(image: &GuestImage) -> Result<Self> {
        let counts = nameless("count", &[])?;
        counts
            .set_len(layout::FILE_BYTES)
            .context(|| "cannot make the file of a guest's counts".to_owned())?;
        Ok(Self { plugin: compile_plugin(image)?, counts })
    }

    /// Returns the argument of QEMU's `-plugin`. Both files must stay open until the guest has started.
    pub(super) fn argument(&self) -> String {
        let path = |file: &File| format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd());
        format!("{},counts={}", path(&self.plugin), path(&self.counts))
    }
}

/// Instructions that a guest has executed since its start, by code address.
#[derive(Clone, Debug, Default)]
pub struct Profile(Blocks);

impl Profile {
    /// Returns the instructions executed between `before` and this profile.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        let earlier = |address| before.0.kernel.get(address).copied().unwrap_or(0);
        let grown =
            self.0.kernel.iter().map(|(address, &count)| (*address, count - earlier(address)));
        let kernel = grown.filter(|&(_, count)| count > 0).collect();
        Self(Blocks { user: self.0.user - before.0.user, kernel })
    }

    /// Returns the instructions outside the kernel.
    #[must_use]
    pub fn user(&self) -> u64 {
        self.0.user
    }

    /// Returns the instructions of the kernel.
    #[must_use]
    pub fn kernel(&self) -> u64 {
        self.0.kernel.values().sum()
    }

    /// Returns the instructions of each kernel function, in descending order. Code without a name is `?`.
    #[must_use]
    pub fn functions<'s>(&self, symbols: &'s Symbols) -> Vec<(&'s str, u64)> {
        let mut sums: HashMap<&str, u64> = HashMap::new();
        for (&address, &count) in &self.0.kernel {
            *sums.entry(symbols.name(address).unwrap_or("?")).or_default() += count;
        }
        let mut sums: Vec<_> = sums.into_iter().collect();
        sums.sort_by(|one, other| other.1.cmp(&one.1).then(one.0.cmp(other.0)));
        sums
    }
}

impl Guest {
    /// Returns the instructions that the guest has executed since its start, in and outside its kernel.
    /// Reading costs the guest nothing.
    ///
    /// # Errors
    /// If the guest was not started with [`Processor::Counted`](super::Processor::Counted).
    pub fn instructions(&self) -> Result<u64> {
        layout::read_total(&self.counter()?.counts)
    }

    /// Returns the instructions that the guest has executed, by code address. Reading costs the guest
    /// nothing.
    ///
    /// # Errors
    /// If the guest was not started with [`Processor::Counted`](super::Processor::Counted).
    pub fn profile(&self) -> Result<Profile> {
        layout::read_blocks(&self.counter()?.counts).map(Profile)
    }

    /// Returns the functions of the guest's kernel. The guest prints some megabytes on its serial port for
    /// this, which takes seconds.
    ///
    /// # Errors
    /// If the guest does not answer, or hides its addresses.
    pub fn symbols(&mut self) -> Result<Symbols> {
        let text = self.run("grep -i ' [tw] ' /proc/kallsyms", BRIEF)?;
        let symbols = Symbols::parse(&text);
        match symbols.is_empty() {
            true => Err(failed("the guest names no functions of its kernel".to_owned())),
            false => Ok(symbols),
        }
    }

    /// Switches the GRO of the guest's kernel, which is initially on.
    ///
    /// # Errors
    /// If the guest was not started with [`Processor::Counted`](super::Processor::Counted).
    pub fn set_coalescing(&mut self, on: bool) -> Result<()> {
        self.counter()?;
        self.run(&format!("gro {CARD} {}", u8::from(on)), BRIEF).map(|_| ())
    }

    fn counter(&self) -> Result<&Counter> {
        let none = || failed("this guest's instructions are not counted".to_owned());
        self.counter.as_ref().ok_or_else(none)
    }
}

/// Compiles the plugin into a file without a name.
fn compile_plugin(image: &GuestImage) -> Result<File> {
    let defines =
        [format!("-DAPI={}", api(&version(image)?)), format!("-DSLOTS={}", layout::SLOTS)];
    let flags = ["-shared", "-fPIC"].into_iter().chain(defines.iter().map(String::as_str));
    compile(PLUGIN, flags)
}

/// Compiles `source` with the system's compiler into a file without a name.
fn compile<'f>(source: &str, flags: impl Iterator<Item = &'f str>) -> Result<File> {
    let compiler = GuestImage::compiler()?;
    let folder = Folder::new("compiled")?;
    let path = folder.file("compiled");
    let mut command = Command::new(&compiler);
    command.args(flags).args(["-O2", "-s", "-x", "c", "-o"]).arg(&path).arg("-");
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let output = super::run_with_input(&mut command, source.as_bytes());
    let output = output.context(|| format!("cannot run {}", compiler.display()))?;
    if !output.status.success() {
        let errors = String::from_utf8_lossy(&output.stderr);
        let first = errors.lines().find(|line| line.contains("error")).unwrap_or_default();
        return Err(failed(format!("cannot compile what counts a guest's instructions: {first}")));
    }
    File::open(&path).context(|| format!("cannot open {}", path.display()))
}

/// Compiles the program that switches the GRO of a card.
pub(super) fn gro_program() -> Result<Vec<u8>> {
    let mut file = compile(GRO, ["-static"].into_iter())?;
    let mut program = Vec::new();
    file.read_to_end(&mut program).context(|| "cannot read a compiled program".to_owned())?;
    Ok(program)
}

/// Returns the version of QEMU.
fn version(image: &GuestImage) -> Result<String> {
    let run = Command::new(image.qemu()).arg("--version").output();
    let output = run.context(|| format!("cannot run {}", image.qemu().display()))?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Returns the version of the plugin interface for this version of QEMU: since 9.0 QEMU refuses versions
/// before 2.
fn api(version: &str) -> u32 {
    let digits = version.split_once("version ").map_or("", |(_, rest)| rest);
    let major = digits.split('.').next().and_then(|digits| digits.parse().ok()).unwrap_or(0);
    if major < 9 { 1 } else { 2 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interface_is_that_of_the_emulator() {
        assert_eq!(api("QEMU emulator version 7.2.22 (Debian 1:7.2+dfsg-7)\nCopyright"), 1);
        assert_eq!(api("QEMU emulator version 10.0.2"), 2);
    }

    #[test]
    fn functions_are_sums_of_their_blocks() {
        let symbols = Symbols::parse("ffff000000000100 T one\nffff000000000200 T two");
        let at = |low: u64| 0xffff_0000_0000_0000 + low;
        let blocks = |user, kernel: &[(u64, u64)]| {
            Profile(Blocks { user, kernel: kernel.iter().copied().collect() })
        };
        let before = blocks(7, &[(at(0x100), 10), (at(0x200), 5)]);
        let after = blocks(9, &[(at(0x100), 11), (at(0x110), 1), (at(0x200), 5), (at(0x240), 50)]);
        let between = after.since(&before);
        assert_eq!((between.user(), between.kernel()), (2, 52));
        assert_eq!(between.functions(&symbols), [("two", 50), ("one", 2)]);
    }
}
