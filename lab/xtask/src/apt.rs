//! System packages: what a step needs, whether it is there, and how it comes there.
//!
//! As root a missing package is installed, and said to be; otherwise the command to run is the
//! error. Only Debian's package names are known, because that is what the README promises.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use crate::sh::{self, Program};

/// A system package and how to see that it is there.
#[derive(Clone, Copy)]
pub(crate) struct Package {
    name: &'static str,
    probe: Probe,
    why: &'static str,
}

#[derive(Clone, Copy)]
enum Probe {
    /// A program of that name is in `PATH`.
    Program(&'static str),
    /// `pkg-config --exists` knows that library.
    Library(&'static str),
    /// That file or folder is there.
    File(&'static str),
}

/// Compiles programs in C and C++ with librxo, and libFuzzer, which is C++.
pub(crate) const CXX: Package =
    Package::program("g++", "g++", "compiles programs with librxo, and libFuzzer");

/// Counts instructions, and watches programs in C.
pub(crate) const VALGRIND: Package =
    Package::program("valgrind", "valgrind", "counts instructions, and watches programs in C");

/// Finds the headers and libraries of C.
pub(crate) const PKG_CONFIG: Package =
    Package::program("pkg-config", "pkg-config", "finds the headers and libraries of C");

/// Tests the Python package in virtual environments.
pub(crate) const PYTHON: Package =
    Package::program("python3-venv", "python3", "tests the Python package");

/// The rival in the engine's benchmark, and what mbufs come from.
pub(crate) const DPDK: Package = Package {
    name: "libdpdk-dev",
    probe: Probe::Library("libdpdk"),
    why: "the rival beside which the engine is measured, and mbufs for librxo",
};

/// Shows the HTML report as a reader's browser would.
pub(crate) const CHROMIUM: Package =
    Package::program("chromium", "chromium", "looks at the HTML report");

/// The second opinion on capture files.
pub(crate) const TSHARK: Package =
    Package::program("tshark", "tshark", "reads captures beside us, and those that we write");

/// Reads the metrics that we write, and the rules for them.
pub(crate) const PROMTOOL: Package =
    Package::program("prometheus", "promtool", "reads our metrics, and the rules for them");

/// Asks the file server as others do.
pub(crate) const CURL: Package = Package::program("curl", "curl", "asks the file server for files");

/// The file server beside which ours is measured.
pub(crate) const NGINX: Package = Package {
    name: "nginx-light",
    probe: Probe::Program("nginx"),
    why: "is the file server beside which ours is measured",
};

/// The client of both.
pub(crate) const WRK: Package = Package::program("wrk", "wrk", "asks both file servers");

/// Packs for Debian, and installs in a folder.
pub(crate) const DPKG: Package = Package::program("dpkg", "dpkg-deb", "packs for Debian");

/// Judges packages of Debian.
pub(crate) const LINTIAN: Package =
    Package::program("lintian", "lintian", "judges packages of Debian");

/// Shows manual pages.
pub(crate) const MAN: Package = Package::program("man-db", "man", "shows manual pages");

/// Shells whose completions are made.
pub(crate) const ZSH: Package = Package::program("zsh", "zsh", "reads its completions");
pub(crate) const FISH: Package = Package::program("fish", "fish", "reads its completions");

/// Sets up networks as the README does.
pub(crate) const IPROUTE: Package =
    Package::program("iproute2", "ip", "runs the README's commands");

/// Filters what a test's host sends.
pub(crate) const NFT: Package =
    Package::program("nftables", "nft", "filters what a test's host sends");

/// Leases addresses.
pub(crate) const DNSMASQ: Package =
    Package::program("dnsmasq-base", "dnsmasq", "leases addresses to a test's host");

/// Asks for one, as many systems do.
pub(crate) const DHCPCD: Package =
    Package::program("dhcpcd-base", "dhcpcd", "asks for an address beside rxo");

/// Asks for one, as small systems do.
pub(crate) const UDHCPC: Package =
    Package::program("busybox", "busybox", "asks for an address beside rxo");

/// Runs the unit of `packaging/`.
pub(crate) const SYSTEMD: Package =
    Package::file("systemd", "/lib/systemd/systemd", "runs the unit of packaging/");

/// Sees whether a packet is answered once.
pub(crate) const PING: Package =
    Package::program("iputils-ping", "ping", "sees whether each packet is answered once");

/// The other device side of a virtio ring.
pub(crate) const TESTPMD: Package = Package {
    name: "dpdk-dev",
    probe: Probe::Program("dpdk-testpmd"),
    why: "is the device on the other side of a ring",
};

/// Emulates the guests' machine.
pub(crate) const QEMU: Package =
    Package::program("qemu-system-x86", "qemu-system-x86_64", "emulates the machine of guests");

/// All programs of a guest, in one that needs no library. The package `busybox` has a program of that name too, which
/// needs the C library: with it a guest does not start.
pub(crate) const BUSYBOX: Package =
    Package::file("busybox-static", "/usr/share/doc/busybox-static", "is the programs of guests");

/// Runs the tests of foreign processors.
pub(crate) const QEMU_USER: Package =
    Package::program("qemu-user", "qemu-s390x", "runs the tests of foreign processors");

/// Links them, with the C library that each needs.
pub(crate) const FOREIGN_LINKERS: [Package; 4] = [
    Package::program("gcc-s390x-linux-gnu", "s390x-linux-gnu-gcc", "links tests for s390x"),
    Package::file(
        "libc6-dev-s390x-cross",
        "/usr/s390x-linux-gnu/include",
        "the C library of s390x",
    ),
    Package::program("gcc-arm-linux-gnueabihf", "arm-linux-gnueabihf-gcc", "links tests for armv7"),
    Package::file(
        "libc6-dev-armhf-cross",
        "/usr/arm-linux-gnueabihf/include",
        "the C library of armv7",
    ),
];

impl Package {
    /// A package that is there if the file or folder `path` is.
    const fn file(name: &'static str, path: &'static str, why: &'static str) -> Self {
        Self { name, probe: Probe::File(path), why }
    }

    /// A package that is there if the program `program` is.
    const fn program(name: &'static str, program: &'static str, why: &'static str) -> Self {
        Self { name, probe: Probe::Program(program), why }
    }

    /// True when it need not be installed.
    pub(crate) fn is_there(&self) -> bool {
        match self.probe {
            Probe::Program(program) => sh::has_program(program),
            Probe::File(path) => Path::new(path).exists(),
            Probe::Library(library) => {
                Program::new(Path::new("/"), "pkg-config", ["--exists", library]).output().is_ok()
            }
        }
    }
}

/// Makes sure that every package of `wanted` is there.
///
/// # Errors
/// A package is missing and cannot be installed by this process; the error says what to run.
pub(crate) fn ensure(wanted: &[Package]) -> Result<()> {
    let missing: Vec<&Package> = wanted.iter().filter(|package| !package.is_there()).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let names: Vec<&str> = missing.iter().map(|package| package.name).collect();
    if !sh::is_root() || !sh::has_program("apt-get") {
        bail!("{}", remedy(&missing));
    }
    for package in &missing {
        eprintln!("installing the system package {} ({})", package.name, package.why);
    }
    update()?;
    apt_get(&[&["install", "-y", "-qq", "--no-install-recommends"], names.as_slice()].concat())
}

/// Unpacks `package` into `folder` and returns where its programs are then: for a package whose installation would start a
/// service. Needs no privilege. Does nothing if it is there.
///
/// # Errors
/// There is no apt, or it cannot get the package; the error says what to run.
pub(crate) fn unpack(package: &Package, folder: &Path) -> Result<PathBuf> {
    let (parts, programs) = (folder.join("parts"), folder.join("usr/bin"));
    if programs.exists() {
        return Ok(programs);
    }
    eprintln!("unpacking the system package {} ({})", package.name, package.why);
    // What an interrupted run left.
    _ = fs::remove_dir_all(folder);
    fs::create_dir_all(&parts)?;
    let got = Program::new(&parts, "apt-get", ["download", "-qq", package.name]).run_aside();
    if let Err(error) = got {
        bail!("{error:#}; {}", remedy(&[package]));
    }
    let unpacked = folder.join("unpacked");
    for part in fs::read_dir(&parts)? {
        let part = part?.path();
        let arguments = [OsStr::new("-x"), part.as_os_str(), unpacked.as_os_str()];
        Program::new(folder, "dpkg-deb", arguments).run_aside()?;
    }
    // Whole or not there.
    fs::rename(unpacked.join("usr"), folder.join("usr"))?;
    fs::remove_dir_all(parts)?;
    fs::remove_dir_all(unpacked)?;
    Ok(programs)
}

/// Lets apt read anew which packages there are.
///
/// # Errors
/// This process is not root, there is no apt, or it fails.
pub(crate) fn update() -> Result<()> {
    if !sh::is_root() || !sh::has_program("apt-get") {
        bail!("the list of packages may be old: run `sudo apt-get update`");
    }
    apt_get(&["update", "-qq"])
}

fn apt_get(arguments: &[&str]) -> Result<()> {
    Program::new(Path::new("/"), "apt-get", arguments)
        .env("DEBIAN_FRONTEND", "noninteractive")
        .run_aside()
}

fn remedy(missing: &[&Package]) -> String {
    let list = |field: fn(&Package) -> &'static str, separator: &str| {
        missing.iter().map(|package| field(package)).collect::<Vec<_>>().join(separator)
    };
    let names = list(|package| package.name, " ");
    let reasons = list(|package| package.why, "; ");
    format!(
        "missing system packages ({reasons}): run \
         `sudo apt-get update && sudo apt-get install -y {names}`"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const ABSENT: Package = Package::program("no-such-package", "no-such-program-here", "a test");

    #[test]
    fn a_program_that_is_there_needs_nothing() {
        let shell = Package::program("dash", "sh", "a test");
        assert!(shell.is_there());
        ensure(&[shell]).unwrap();
    }

    #[test]
    fn the_remedy_names_command_and_reason() {
        assert!(!ABSENT.is_there());
        assert_eq!(
            remedy(&[&ABSENT, &CXX]),
            "missing system packages (a test; compiles programs with librxo, and libFuzzer): run \
             `sudo apt-get update && sudo apt-get install -y no-such-package g++`"
        );
    }
}
