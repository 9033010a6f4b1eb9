//! System packages that a step needs: checks for them and installs missing ones.
//!
//! As root this module installs a missing package and prints that it does; otherwise the error names the
//! command to run. Only Debian's package names are listed, because the README promises no other system.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use crate::sh::{self, Program};

/// A system package, and a probe that shows if it is installed.
#[derive(Clone, Copy)]
pub(crate) struct Package {
    name: &'static str,
    probe: Probe,
    why: &'static str,
}

#[derive(Clone, Copy)]
enum Probe {
    /// A program of that name in `PATH`.
    Program(&'static str),
    /// A library that `pkg-config --exists` finds.
    Library(&'static str),
    /// A file or folder at that path.
    File(&'static str),
}

/// Compiles C and C++ programs that use librxo, and libFuzzer, which is C++.
pub(crate) const CXX: Package =
    Package::program("g++", "g++", "compiles programs with librxo, and libFuzzer");

/// Counts instructions, and checks the memory accesses of C programs.
pub(crate) const VALGRIND: Package =
    Package::program("valgrind", "valgrind", "counts instructions, and watches programs in C");

/// Finds the headers and libraries of C.
pub(crate) const PKG_CONFIG: Package =
    Package::program("pkg-config", "pkg-config", "finds the headers and libraries of C");

/// Builds programs whose projects use CMake.
pub(crate) const CMAKE: Package =
    Package::program("cmake", "cmake", "builds a program with librxo as a CMake project does");

/// Tests the Python package in virtual environments.
pub(crate) const PYTHON: Package =
    Package::program("python3-venv", "python3", "tests the Python package");

/// DPDK: the rival in the engine's benchmark, and the source of mbufs in its tests.
pub(crate) const DPDK: Package = Package {
    name: "libdpdk-dev",
    probe: Probe::Library("libdpdk"),
    why: "the rival beside which the engine is measured, and mbufs for librxo",
};

/// Renders the HTML report in a browser.
pub(crate) const CHROMIUM: Package =
    Package::program("chromium", "chromium", "looks at the HTML report");

/// Reads capture files independently of our reader.
pub(crate) const TSHARK: Package =
    Package::program("tshark", "tshark", "reads captures beside us, and those that we write");

/// Compiles and runs packet filters.
pub(crate) const LIBPCAP: Package =
    Package::file("libpcap0.8", "/usr/share/doc/libpcap0.8", "compiles and runs packet filters");

/// Checks the metrics that we write, and the alert rules for them.
pub(crate) const PROMTOOL: Package =
    Package::program("prometheus", "promtool", "reads our metrics, and the rules for them");

/// Requests files from the example file server with a common client.
pub(crate) const CURL: Package = Package::program("curl", "curl", "asks the file server for files");

/// The file server to which ours is compared.
pub(crate) const NGINX: Package = Package {
    name: "nginx-light",
    probe: Probe::Program("nginx"),
    why: "is the file server beside which ours is measured",
};

/// The HTTP load generator that measures both file servers.
pub(crate) const WRK: Package = Package::program("wrk", "wrk", "asks both file servers");

/// Packs for Debian, and installs into a folder.
pub(crate) const DPKG: Package = Package::program("dpkg", "dpkg-deb", "packs for Debian");

/// Checks Debian packages against Debian's policy.
pub(crate) const LINTIAN: Package =
    Package::program("lintian", "lintian", "judges packages of Debian");

/// Shows manual pages.
pub(crate) const MAN: Package = Package::program("man-db", "man", "shows manual pages");

/// The shells that read our completions.
pub(crate) const ZSH: Package = Package::program("zsh", "zsh", "reads its completions");
pub(crate) const FISH: Package = Package::program("fish", "fish", "reads its completions");

/// Sets up networks as the README does.
pub(crate) const IPROUTE: Package =
    Package::program("iproute2", "ip", "runs the README's commands");

/// Filters packets that a test's host sends.
pub(crate) const NFT: Package =
    Package::program("nftables", "nft", "filters what a test's host sends");

/// Configures WireGuard's programs as their users do.
pub(crate) const WIREGUARD_TOOLS: Package =
    Package::program("wireguard-tools", "wg", "drives the tunnel as it drives WireGuard's others");

/// Serves DHCP leases in the tests.
pub(crate) const DNSMASQ: Package =
    Package::program("dnsmasq-base", "dnsmasq", "leases addresses to a test's host");

/// The DHCP client of many distributions.
pub(crate) const DHCPCD: Package =
    Package::program("dhcpcd-base", "dhcpcd", "asks for an address beside rxo");

/// The DHCP client of small systems, part of busybox.
pub(crate) const UDHCPC: Package =
    Package::program("busybox", "busybox", "asks for an address beside rxo");

/// Starts the service unit of `packaging/`.
pub(crate) const SYSTEMD: Package =
    Package::file("systemd", "/lib/systemd/systemd", "runs the unit of packaging/");

/// Detects duplicate replies to a packet.
pub(crate) const PING: Package =
    Package::program("iputils-ping", "ping", "sees whether each packet is answered once");

/// A second implementation of the device side of a virtio ring.
pub(crate) const TESTPMD: Package = Package {
    name: "dpdk-dev",
    probe: Probe::Program("dpdk-testpmd"),
    why: "is the device on the other side of a ring",
};

/// Emulates the machine on which guests run.
pub(crate) const QEMU: Package =
    Package::program("qemu-system-x86", "qemu-system-x86_64", "emulates the machine of guests");

/// All programs of a guest, in one static binary. The package `busybox` has a binary of the same name that
/// needs the C library; a guest does not start with it.
pub(crate) const BUSYBOX: Package =
    Package::file("busybox-static", "/usr/share/doc/busybox-static", "is the programs of guests");

/// Runs tests that are compiled for other processors.
pub(crate) const QEMU_USER: Package =
    Package::program("qemu-user", "qemu-s390x", "runs the tests of foreign processors");

/// Linkers for the foreign processors, each with the target's C library.
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
    /// Returns a package whose probe is the file or folder `path`.
    const fn file(name: &'static str, path: &'static str, why: &'static str) -> Self {
        Self { name, probe: Probe::File(path), why }
    }

    /// Returns a package whose probe is the program `program`.
    const fn program(name: &'static str, program: &'static str, why: &'static str) -> Self {
        Self { name, probe: Probe::Program(program), why }
    }

    /// Returns `true` if the package is installed.
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

/// Installs every package of `wanted` that is missing.
///
/// # Errors
/// A package is missing and cannot be installed by this process; the error names the command to run.
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

/// Unpacks `package` into `folder` and returns the folder of its programs. For packages whose installation
/// would start a service. Needs no privilege, and does nothing if `folder` already has the programs.
///
/// # Errors
/// apt is missing, or cannot download the package; the error names the command to run.
pub(crate) fn unpack(package: &Package, folder: &Path) -> Result<PathBuf> {
    let (parts, programs) = (folder.join("parts"), folder.join("usr/bin"));
    if programs.exists() {
        return Ok(programs);
    }
    eprintln!("unpacking the system package {} ({})", package.name, package.why);
    // Remains of an interrupted run.
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
    // The rename comes last, so that `folder` is complete or absent.
    fs::rename(unpacked.join("usr"), folder.join("usr"))?;
    fs::remove_dir_all(parts)?;
    fs::remove_dir_all(unpacked)?;
    Ok(programs)
}

/// Makes apt update its list of packages.
///
/// # Errors
/// This process is not root, or apt is missing or fails.
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
