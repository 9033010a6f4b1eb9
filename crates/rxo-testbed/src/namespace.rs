//! A network namespace: its own interfaces, addresses, routes and sockets.
//!
//! A namespace has no name in the file system, and exists as long as this process holds it open. When the last
//! handle is closed, the kernel removes the namespace with all its interfaces. This also happens when the
//! process is killed, so no run leaves anything behind that could disturb the next run.

use std::fs::{self, File};
use std::io;
use std::net::UdpSocket;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rxo_netlink::Netlink;

use crate::error::{Context, Result};
use crate::link::Interface;
use crate::sys;

/// A network namespace of this process. The kernel removes it once this value is dropped and no thread or
/// socket is left in it.
#[derive(Debug)]
pub struct Namespace {
    label: String,
    handle: File,
    /// A netlink socket that was opened inside the namespace. Requests on this socket act on the namespace from
    /// any thread.
    netlink: Netlink,
    /// A socket of the namespace through which offloads are set. Any kind of socket would do.
    control: UdpSocket,
}

impl Namespace {
    /// Creates a network namespace in which only the loopback interface is up. `label` appears in messages.
    ///
    /// # Errors
    /// If the process lacks the privilege. The message names the remedy.
    pub fn new(label: &str) -> Result<Self> {
        let namespace = on_new_thread("lab-namespace", || {
            sys::unshare(sys::Unshare::Network)?;
            Ok(Self::current(label))
        })
        .context(|| {
            format!("cannot make the network namespace \"{label}\"; run as root, or allow user namespaces")
        })??;
        if namespace.has_ipv6() {
            for setting in IPV6_SWITCHED_OFF {
                namespace.set_sysctl(&format!("net.ipv6.conf.default.{setting}"), "0")?;
            }
        }
        namespace.interface("lo").up()?;
        Ok(namespace)
    }

    /// Opens the network namespace of the calling thread, to connect it with others. Dropping the handle
    /// removes that namespace only if the process was started in it and no other process holds it.
    ///
    /// # Errors
    /// If the process lacks the privilege to open it.
    pub fn current(label: &str) -> Result<Self> {
        let open = || Ok((File::open("/proc/thread-self/ns/net")?, Netlink::route()?));
        let (handle, netlink) = open().context(|| cannot_open(label))?;
        let control = UdpSocket::bind("0.0.0.0:0").context(|| cannot_open(label))?;
        Ok(Self { label: label.to_owned(), handle, netlink, control })
    }

    /// Returns the label with which the namespace was created.
    #[must_use]
    pub fn label(&self) -> &str {
        &self.label
    }

    /// Returns a handle of the interface `name`, which need not exist yet.
    #[must_use]
    pub fn interface(&self, name: &str) -> Interface<'_> {
        Interface::new(self, name)
    }

    /// Runs `work` on a thread inside the namespace, and waits until `work` returns. Sockets that `work` opens
    /// belong to the namespace permanently, and may then be used from any thread.
    ///
    /// # Errors
    /// If the namespace cannot be entered.
    ///
    /// # Panics
    /// If `work` panics.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T> {
        let work = || sys::enter_network(&self.handle).map(|()| work());
        on_new_thread("lab-inside", work).context(|| self.cannot_enter())
    }

    /// Runs `work` as [`Namespace::run`] does, with a separate table of file descriptors: descriptors that
    /// `work` opens do not count against the limit of the process, and are closed when `work` returns. The
    /// table begins with copies of the descriptors that are already open.
    ///
    /// # Errors
    /// The errors of [`Namespace::run`].
    ///
    /// # Panics
    /// If `work` panics.
    pub fn run_apart<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T> {
        self.run(|| sys::unshare(sys::Unshare::Descriptors).map(|()| work()))?
            .context(|| self.cannot_enter())
    }

    /// Starts an independent thread inside the namespace. The namespace exists at least as long as the thread
    /// runs.
    ///
    /// # Errors
    /// If the thread cannot be started, or the namespace cannot be entered.
    pub fn spawn<T: Send + 'static>(
        &self,
        thread_name: &str,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<JoinHandle<Result<T>>> {
        let handle = self.handle.try_clone().context(|| self.cannot_enter())?;
        let cannot_enter = self.cannot_enter();
        thread::Builder::new()
            .name(thread_name.to_owned())
            .spawn(move || {
                sys::enter_network(&handle).context(|| cannot_enter)?;
                // From here on, the thread itself keeps the namespace alive.
                drop(handle);
                Ok(work())
            })
            .context(|| format!("cannot start the thread {thread_name}"))
    }

    /// Sets a kernel setting of this namespace, such as `net.ipv4.tcp_rmem`. The setting disappears with the
    /// namespace. Settings of the whole machine cannot be changed.
    ///
    /// # Errors
    /// If the namespace has no such setting, or the value is refused.
    pub fn set_sysctl(&self, name: &str, value: &str) -> Result<()> {
        self.run(|| fs::write(sysctl_path(name), value))?
            .context(|| format!("cannot set {name} to \"{value}\" in namespace \"{}\"", self.label))
    }

    /// Reads a kernel setting of this namespace.
    ///
    /// # Errors
    /// If the namespace has no such setting.
    pub fn sysctl(&self, name: &str) -> Result<String> {
        self.run(|| fs::read_to_string(sysctl_path(name)))?
            .map(|text| text.trim().to_owned())
            .context(|| format!("cannot read {name} in namespace \"{}\"", self.label))
    }

    /// Returns `true` if the kernel has IPv6, which can be disabled at boot.
    #[must_use]
    pub fn has_ipv6(&self) -> bool {
        self.sysctl("net.ipv6.conf.default.accept_ra").is_ok()
    }

    /// Waits until `interface` has its IPv6 link-local address. The kernel assigns the address some time
    /// after both ends of a wire are up.
    pub(crate) fn await_ipv6(&self, interface: &str) -> Result<()> {
        let has_one = || {
            let text = fs::read_to_string("/proc/thread-self/net/if_inet6").unwrap_or_default();
            text.lines().any(|line| is_usable(line, interface))
        };
        until(|| self.run(has_one))?
            .context(|| format!("{interface} gets no link-local address in \"{}\"", self.label))
    }

    /// Binds receive processing of the namespace to one core (0 to 31) by receive packet steering; `None` binds
    /// it to no core. Applies to interfaces created later. No effect on kernels before 6.3.
    ///
    /// # Errors
    /// If there is no such core, or the kernel refuses.
    pub fn receive_on(&self, core: Option<usize>) -> Result<()> {
        const STEERING: &str = "net.core.rps_default_mask";
        if self.sysctl(STEERING).is_err() {
            return Ok(());
        }
        let cores = core.map_or(0, |core| 1_u32 << core.min(31));
        self.set_sysctl(STEERING, &format!("{cores:x}"))
    }

    pub(crate) fn netlink(&self) -> &Netlink {
        &self.netlink
    }

    pub(crate) fn control(&self) -> &UdpSocket {
        &self.control
    }

    pub(crate) fn handle(&self) -> &File {
        &self.handle
    }

    fn cannot_enter(&self) -> String {
        format!("cannot enter the network namespace \"{}\"", self.label)
    }
}

/// Returns `true` if a line of `/proc/net/if_inet6` is a usable (not tentative) address of `interface`. The
/// columns are address, index, prefix length, scope, flags, name.
fn is_usable(line: &str, interface: &str) -> bool {
    const TENTATIVE: u32 = 0x40;
    let columns: Vec<&str> = line.split_whitespace().collect();
    let [.., flags, name] = columns.as_slice() else { return false };
    let flags = u32::from_str_radix(flags, 16);
    *name == interface && flags.is_ok_and(|flags| flags & TENTATIVE == 0)
}

/// Calls `is_so` every 10 ms until the function returns `true`. The inner error means that `is_so` did not
/// return `true` within a minute.
///
/// # Errors
/// Returns the first error of `is_so`.
pub fn until(is_so: impl Fn() -> Result<bool>) -> Result<io::Result<()>> {
    for _ in 0..MOST_CALLS {
        if is_so()? {
            return Ok(Ok(()));
        }
        thread::sleep(CHECK_INTERVAL);
    }
    Ok(Err(io::ErrorKind::TimedOut.into()))
}

/// IPv6 settings that are switched off. Otherwise, router solicitations and similar messages would disturb the
/// measured traffic, and a link-local address would become usable only after a random delay of up to a second.
const IPV6_SWITCHED_OFF: [&str; 4] =
    ["dad_transmits", "accept_ra", "router_solicitations", "router_solicitation_delay"];

/// The number of times that [`until`] calls its function: one call every 10 ms for a minute.
const MOST_CALLS: u32 = 6_000;
const CHECK_INTERVAL: Duration = Duration::from_millis(10);

fn cannot_open(label: &str) -> String {
    format!("cannot open the network namespace \"{label}\"")
}

/// Runs `work` on a new thread, because a thread that enters a namespace stays in it.
fn on_new_thread<T: Send>(
    name: &str,
    work: impl FnOnce() -> io::Result<T> + Send,
) -> io::Result<T> {
    thread::scope(|scope| {
        let thread = thread::Builder::new().name(name.to_owned()).spawn_scoped(scope, work)?;
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

fn sysctl_path(name: &str) -> String {
    format!("/proc/sys/{}", name.replace('.', "/"))
}
