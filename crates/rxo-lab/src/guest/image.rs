//! What a guest is made of: QEMU, busybox, and Debian's kernel for clouds with its drivers.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::archive::Archive;
use crate::error::{Context, LabError, Result, failed};

const QEMU: (&str, &str) = ("qemu-system-x86_64", "qemu-system-x86");
const BUSYBOX: (&str, &str) = ("busybox", "busybox-static");
/// Compiles what counts instructions.
const COMPILER: (&str, &str) = ("cc", "gcc");
/// Debian's package that names the newest kernel for clouds.
const KERNEL_PACKAGE: &str = "linux-image-cloud-amd64";
const FLAVOUR: &str = "-cloud-amd64";
const INIT: &[u8] = include_bytes!("init.sh");

/// The drivers of the card.
const MODULES: [&str; 8] = [
    "drivers/virtio/virtio_ring",
    "drivers/virtio/virtio",
    "drivers/virtio/virtio_pci_modern_dev",
    "drivers/virtio/virtio_pci_legacy_dev",
    "drivers/virtio/virtio_pci",
    "net/core/failover",
    "drivers/net/net_failover",
    "drivers/net/virtio_net",
];

/// The programs and files that guests are made of.
#[derive(Clone, Debug)]
pub struct GuestImage {
    qemu: PathBuf,
    busybox: PathBuf,
    kernel: Kernel,
}

/// A kernel and the directory of its modules.
#[derive(Clone, Debug)]
struct Kernel {
    file: PathBuf,
    modules: PathBuf,
}

impl Kernel {
    fn module(&self, name: &str) -> PathBuf {
        self.modules.join(format!("{name}.ko"))
    }

    /// Whether busybox can load its modules: Debian 13 compresses them (`.ko.xz`).
    fn has_modules(&self) -> bool {
        MODULES.iter().all(|name| self.module(name).is_file())
    }
}

impl GuestImage {
    /// Finds the programs and a kernel. If no kernel for clouds is installed, downloads Debian's package
    /// once and unpacks it, without installing it, in the user's cache directory.
    ///
    /// # Errors
    /// If a program or the kernel is missing. The message is one line and names the package.
    pub fn find() -> Result<Self> {
        let qemu = program(QEMU)?;
        let busybox = program(BUSYBOX)?;
        let kernel = match installed(Path::new("/")) {
            Some(kernel) => kernel,
            None => cached()?,
        };
        Ok(Self { qemu, busybox, kernel })
    }

    pub(super) fn qemu(&self) -> &Path {
        &self.qemu
    }

    pub(super) fn busybox(&self) -> &Path {
        &self.busybox
    }

    /// Finds the system's C compiler, without which no guest's instructions are counted.
    ///
    /// # Errors
    /// If it is missing. The message is one line and names the package.
    pub fn compiler() -> Result<PathBuf> {
        program(COMPILER)
    }

    pub(super) fn kernel(&self) -> &Path {
        &self.kernel.file
    }

    /// The first file system of a guest, with further programs.
    pub(super) fn archive(&self, programs: &[(&str, Vec<u8>)]) -> Result<Vec<u8>> {
        let read = |path: &Path| {
            fs::read(path).context(|| format!("cannot read {} for a guest", path.display()))
        };
        let mut archive = Archive::default();
        for directory in ["bin", "dev", "proc", "sys", "tmp", "modules"] {
            archive.directory(directory);
        }
        archive.program("init", INIT);
        archive.program("bin/busybox", &read(&self.busybox)?);
        for (name, program) in programs {
            archive.program(&format!("bin/{name}"), program);
        }
        let mut order = String::new();
        for module in MODULES {
            let path = self.kernel.module(module);
            let name = format!("{}.ko", module.rsplit('/').next().unwrap_or(module));
            archive.file(&format!("modules/{name}"), &read(&path)?);
            order += &format!("{name}\n");
        }
        archive.file("modules/order", order.as_bytes());
        Ok(archive.finish())
    }
}

/// A program in the directories where programs are.
fn program((name, package): (&str, &str)) -> Result<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let places = env::split_paths(&path).map(|directory| directory.join(name));
    places.into_iter().find(|place| place.is_file()).ok_or_else(|| {
        LabError::Unsupported(format!(
            "{name} is not installed, and guests need it: apt-get install {package}"
        ))
    })
}

/// The newest kernel for clouds below `root` that has its modules.
fn installed(root: &Path) -> Option<Kernel> {
    let entries = fs::read_dir(root.join("boot")).ok()?;
    let mut found: Vec<_> = entries
        .filter_map(|entry| kernel_in(root, &entry.ok()?.file_name()))
        .filter(Kernel::has_modules)
        .collect();
    found.sort_by(|one, other| one.file.cmp(&other.file));
    found.pop()
}

fn kernel_in(root: &Path, name: &OsStr) -> Option<Kernel> {
    let version = name.to_str()?.strip_prefix("vmlinuz-")?;
    version.ends_with(FLAVOUR).then(|| Kernel {
        file: root.join("boot").join(name),
        modules: root.join("lib/modules").join(version).join("kernel"),
    })
}

/// The kernel of an earlier download, or of one now.
fn cached() -> Result<Kernel> {
    let cache = env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let home = env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache"));
    let cache = cache.or(home).unwrap_or_else(env::temp_dir).join("rxo");
    let root = cache.join("guest-kernel");
    if root.is_dir() {
        return installed(&root).ok_or_else(|| unusable(&root));
    }
    // Another process may be downloading too: whoever is first puts its directory there.
    let partial = cache.join(format!("guest-kernel.{}", std::process::id()));
    fs::create_dir_all(&partial).context(|| format!("cannot make {}", partial.display()))?;
    let downloaded = download(&partial);
    if downloaded.is_ok() {
        let _ = fs::rename(&partial, &root);
    }
    let _ = fs::remove_dir_all(&partial);
    downloaded?;
    installed(&root).ok_or_else(|| unusable(&root))
}

/// Why there is no kernel in what was downloaded to `root`.
fn unusable(root: &Path) -> LabError {
    let root = root.display();
    LabError::Unsupported(format!(
        "guests load modules that are not compressed, and the kernel in {root} lacks some: run \
         `find {root} -name '*.ko.xz' -exec unxz {{}} +`, or remove {root} to download it again"
    ))
}

/// Downloads the package of the newest kernel for clouds and unpacks it into `root`.
fn download(root: &Path) -> Result<()> {
    let depends = output(Command::new("apt-cache").args(["depends", KERNEL_PACKAGE]))?;
    let package = depends
        .lines()
        .filter_map(|line| line.trim().strip_prefix("Depends: "))
        .find(|name| name.ends_with(FLAVOUR))
        .ok_or_else(|| missing("apt-cache does not know it"))?
        .to_owned();
    output(Command::new("apt-get").args(["download", &package]).current_dir(root))?;
    let entries = fs::read_dir(root).context(|| format!("cannot read {}", root.display()))?;
    let archive = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .find(|path| path.extension() == Some(OsStr::new("deb")))
        .ok_or_else(|| missing("apt-get downloaded nothing"))?;
    output(Command::new("dpkg-deb").arg("-x").arg(&archive).arg(root))?;
    fs::remove_file(&archive).context(|| format!("cannot remove {}", archive.display()))
}

/// What a program printed.
fn output(command: &mut Command) -> Result<String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|error| missing(&format!("{name}: {error}")))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let errors = String::from_utf8_lossy(&output.stderr);
    let last = errors.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
    Err(missing(&format!("{name}: {}", last.trim())))
}

fn missing(why: &str) -> LabError {
    failed(format!(
        "guests need a kernel, and the package {KERNEL_PACKAGE} cannot be fetched ({why}); \
         try apt-get update"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A kernel below `root` whose modules have this ending.
    fn put_kernel(root: &Path, version: &str, ending: &str) {
        let modules = root.join("lib/modules").join(version).join("kernel");
        let files = MODULES.map(|name| modules.join(format!("{name}.{ending}")));
        for file in [root.join("boot").join(format!("vmlinuz-{version}"))].iter().chain(&files) {
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, "").unwrap();
        }
    }

    #[test]
    fn a_kernel_with_compressed_modules_is_passed_over() {
        let root = env::temp_dir().join(format!("rxo-image-{}", std::process::id()));
        put_kernel(&root, "6.12.1-cloud-amd64", "ko.xz");
        assert!(installed(&root).is_none());
        let line = unusable(&root).to_string();
        assert!(line.contains("-exec unxz {} +`") && !line.contains('\n'), "{line}");
        put_kernel(&root, "6.1.0-cloud-amd64", "ko");
        let found = installed(&root).unwrap().file;
        assert!(found.ends_with("boot/vmlinuz-6.1.0-cloud-amd64"), "{}", found.display());
        fs::remove_dir_all(root).unwrap();
    }
}
