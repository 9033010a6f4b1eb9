//! The parts of a guest: QEMU, busybox, and Debian's kernel for clouds with its drivers.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::archive::Archive;
use super::programs::{self, BUSYBOX, COMPILER, QEMU, bytes, output};
use rxo_testbed::error::{Context, LabError, Result, failed};

/// Debian package that depends on the newest kernel for clouds.
const KERNEL_PACKAGE: &str = "linux-image-cloud-amd64";
const FLAVOUR: &str = "-cloud-amd64";
const INIT: &[u8] = include_bytes!("init.sh");

/// Extension of compressed modules, which busybox must unpack.
const COMPRESSED_ENDING: &str = "ko.xz";

/// Modules of the card's driver.
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

/// The programs and files from which guests are made.
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
    /// Returns the file of a module; `None` if there is none. Debian 13 compresses modules.
    fn module(&self, name: &str) -> Option<PathBuf> {
        let files = ["ko", COMPRESSED_ENDING].map(|ending| format!("{name}.{ending}"));
        files.iter().map(|file| self.modules.join(file)).find(|file| file.is_file())
    }

    fn has_modules(&self) -> bool {
        MODULES.iter().all(|name| self.module(name).is_some())
    }
}

impl GuestImage {
    /// Installs QEMU and busybox with apt-get if they are missing and this process is root, after passing one
    /// line to `say`. Otherwise does nothing; [`GuestImage::find`] then names the missing program. Call it
    /// before [`become_root_in_user_namespace`](rxo_testbed::become_root_in_user_namespace): that root cannot
    /// install packages.
    ///
    /// # Errors
    /// If apt-get fails. The message is one line and names the packages.
    pub fn install_programs(say: impl FnOnce(&str)) -> Result<()> {
        programs::install_missing(say)
    }

    /// Finds the programs and a kernel. If no kernel for clouds is installed, downloads Debian's package
    /// once and unpacks it, without installing it, in the user's cache directory.
    ///
    /// # Errors
    /// If a program or the kernel is missing. The message is one line and names the package.
    pub fn find() -> Result<Self> {
        let qemu = QEMU.find()?;
        let busybox = BUSYBOX.find()?;
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

    /// Finds the system's C compiler, which is needed to count a guest's instructions.
    ///
    /// # Errors
    /// If the compiler is missing. The message is one line and names the package.
    pub fn compiler() -> Result<PathBuf> {
        COMPILER.find()
    }

    pub(super) fn kernel(&self) -> &Path {
        &self.kernel.file
    }

    /// Returns the first file system of a guest, with additional `programs`.
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
            let path = self.kernel.module(module).ok_or_else(|| gone(module))?;
            let name = format!("{}.ko", module.rsplit('/').next().unwrap_or(module));
            let is_compressed = path.extension() == Some(OsStr::new("xz"));
            let content = if is_compressed { self.unpacked(&path)? } else { read(&path)? };
            archive.file(&format!("modules/{name}"), &content);
            order += &format!("{name}\n");
        }
        archive.file("modules/order", order.as_bytes());
        Ok(archive.finish())
    }

    /// Returns the content of a compressed module, because the guest's `insmod` accepts no compressed ones.
    fn unpacked(&self, path: &Path) -> Result<Vec<u8>> {
        let unpacked = bytes(Command::new(&self.busybox).args(["unxz", "-c"]).arg(path));
        unpacked.map_err(|why| failed(format!("cannot unpack {}: {why}", path.display())))
    }
}

/// Returns the newest kernel for clouds below `root` that has its modules; `None` if there is none.
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
    // Debian 13's package has the modules below `usr`, without the symbolic link of an installed system.
    let places = ["lib/modules", "usr/lib/modules"].map(|place| root.join(place).join(version));
    let modules = places.into_iter().find(|place| place.is_dir())?.join("kernel");
    version.ends_with(FLAVOUR).then(|| Kernel { file: root.join("boot").join(name), modules })
}

/// Returns the kernel of an earlier download, or downloads it now.
fn cached() -> Result<Kernel> {
    let cache = env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let home = env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache"));
    let cache = cache.or(home).unwrap_or_else(env::temp_dir).join("rxo");
    let root = cache.join("guest-kernel");
    if root.is_dir() {
        return installed(&root).ok_or_else(|| unusable(&root));
    }
    // Another process may be downloading too: the first to finish puts its directory in place.
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

/// Returns the error for a download in `root` without a usable kernel.
fn unusable(root: &Path) -> LabError {
    let root = root.display();
    LabError::Unsupported(format!(
        "guests need drivers that the kernel in {root} lacks; remove {root} to download it again"
    ))
}

fn gone(module: &str) -> LabError {
    failed(format!("the kernel for guests has no module {module} any more"))
}

/// Downloads the package of the newest kernel for clouds and unpacks it into `root`.
fn download(root: &Path) -> Result<()> {
    let output = |command: &mut Command| output(command).map_err(|why| missing(&why));
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

fn missing(why: &str) -> LabError {
    failed(format!(
        "guests need a kernel, and the package {KERNEL_PACKAGE} cannot be fetched ({why}); \
         try apt-get update"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes a kernel below `root` whose modules are in `place`, with this extension.
    fn put_kernel(root: &Path, (place, version): (&str, &str), ending: &str) {
        let modules = root.join(place).join(version).join("kernel");
        let files = MODULES.map(|name| modules.join(format!("{name}.{ending}")));
        for file in [root.join("boot").join(format!("vmlinuz-{version}"))].iter().chain(&files) {
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, "compressed module").unwrap();
        }
    }

    fn root(name: &str) -> PathBuf {
        env::temp_dir().join(format!("rxo-image-{name}-{}", std::process::id()))
    }

    #[test]
    fn a_kernel_that_lacks_modules_is_passed_over() {
        let root = root("lacks");
        put_kernel(&root, ("lib/modules", "6.12.1-cloud-amd64"), "ko.zst");
        assert!(installed(&root).is_none());
        let line = unusable(&root).to_string();
        assert!(line.contains("download it again") && !line.contains('\n'), "{line}");
        put_kernel(&root, ("lib/modules", "6.1.0-cloud-amd64"), "ko");
        let found = installed(&root).unwrap().file;
        assert!(found.ends_with("boot/vmlinuz-6.1.0-cloud-amd64"), "{}", found.display());
        fs::remove_dir_all(root).unwrap();
    }

    /// The layout is that of Debian 13's package. Instead of busybox, which may be missing, a program prints
    /// its arguments.
    #[test]
    fn compressed_modules_are_unpacked_for_the_guest() {
        let root = root("compressed");
        put_kernel(&root, ("usr/lib/modules", "6.12.1+deb13-cloud-amd64"), "ko.xz");
        let kernel = installed(&root).unwrap();
        let image = GuestImage { qemu: PathBuf::new(), busybox: "/bin/echo".into(), kernel };
        let archive = image.archive(&[]).unwrap();
        let count = |part: &[u8]| archive.windows(part.len()).filter(|it| *it == part).count();
        for module in MODULES {
            let path = image.kernel.module(module).unwrap();
            assert_eq!(count(format!("unxz -c {}\n", path.display()).as_bytes()), 1, "{module}");
        }
        assert_eq!(count(b"modules/virtio_net.ko\0"), 1, "insmod knows it by this name");
        let broken = GuestImage { busybox: "/bin/false".into(), ..image };
        let line = broken.archive(&[]).unwrap_err().to_string();
        assert!(line.contains("virtio_ring.ko.xz: false") && !line.contains('\n'), "{line}");
        fs::remove_dir_all(root).unwrap();
    }
}
