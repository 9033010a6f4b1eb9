//! The two servers and the directory that both serve.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context, Result, bail, ensure};
use rxo_peers::Folder;
use rxo_testbed::Lab;
use rxo_testbed::traffic::Pattern;

use super::SIZES;
use super::client::{self, Asked};
use crate::live_tcp::Place;
use crate::process::Process;

/// The temporary directory of both servers.
pub(super) struct Site(Folder);

impl Site {
    pub(super) fn new() -> Result<Self> {
        let site = Self(Folder::new("bench-serve")?);
        fs::create_dir_all(site.www())?;
        for bytes in SIZES {
            let path = site.www().join(bytes.to_string());
            fs::write(&path, Pattern::of_port(80).file(bytes))?;
            let long_ago = SystemTime::now() - Duration::from_secs(3_600);
            File::options().write(true).open(path)?.set_modified(long_ago)?;
        }
        Ok(site)
    }

    pub(super) fn www(&self) -> PathBuf {
        self.path("www")
    }

    /// Returns the path of a file beside the served directory.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.0.file(name)
    }

    /// Returns the command of nginx that serves the directory.
    pub(super) fn nginx(&self) -> Result<Command> {
        let mut command = Command::new("nginx");
        command.arg("-e").arg(self.path("errors")).arg("-c").arg(self.nginx_settings()?);
        Ok(command)
    }

    /// Writes the configuration of nginx. It runs as one process, so that its processor time can be read, and
    /// writes a log, as rxo does; both logs are discarded.
    fn nginx_settings(&self) -> Result<PathBuf> {
        let folder = self.0.path().display();
        let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
            .map(|kind| format!("{kind}_temp_path {folder}/{kind};\n"))
            .concat();
        let text = format!(
            "user root;\nmaster_process off;\npid {folder}/pid;\nerror_log {folder}/errors;\ndaemon off;\n\
             events {{ worker_connections 16384; }}\nhttp {{\nsendfile on;\ntcp_nopush on;\n\
             keepalive_requests 1000000000;\naccess_log /dev/null;\n{temporary}\
             server {{ listen 80; root {folder}/www; }}\n}}\n"
        );
        let path = self.0.file("nginx.conf");
        fs::write(&path, text)?;
        Ok(path)
    }
}

/// A running server. Dropping this ends it, before its place.
pub(super) struct Running {
    pub(super) name: &'static str,
    process: Process,
    place: Place,
}

impl Running {
    pub(super) fn nginx(place: Place, site: &Site) -> Result<Self> {
        Self::start("nginx", place, site.nginx()?)
    }

    pub(super) fn rxo(place: Place, site: &Site) -> Result<Self> {
        let address = format!("{}/24", Lab::HOST_ADDRESSES.0);
        let command = rxo_serve(&place.rxo, site, &format!("packet:{}", Lab::NIC), &address);
        Self::start("rxo", place, command)
    }

    fn start(name: &'static str, place: Place, command: Command) -> Result<Self> {
        let process = Process::start(place.namespace(), command)?;
        Ok(Self { name, process, place })
    }

    /// Waits until the server answers, then fetches and compares every file.
    pub(super) fn check(&mut self, site: &Site) -> Result<()> {
        let deadline = Instant::now() + TIMEOUT;
        while self.fetch(SIZES[0], "2")?.is_none() {
            self.process.check()?;
            if Instant::now() > deadline {
                bail!("no answer in {TIMEOUT:?}");
            }
            thread::sleep(Duration::from_millis(50));
        }
        for bytes in SIZES {
            let got =
                self.fetch(bytes, "60")?.with_context(|| format!("no file of {bytes} bytes"))?;
            let kept = fs::read(site.www().join(bytes.to_string()))?;
            ensure!(got == kept, "of {bytes} bytes {} have come, or others", got.len());
        }
        Ok(())
    }

    fn fetch(&self, bytes: usize, seconds: &str) -> Result<Option<Vec<u8>>> {
        let mut command = Command::new("curl");
        command.args(["--silent", "--fail", "--max-time", seconds, &url(bytes)]);
        command.stderr(Stdio::null());
        let output = self.place.peer().run(|| command.output())?;
        let output = output.context("cannot run curl (Debian: curl)")?;
        Ok(output.status.success().then_some(output.stdout))
    }

    /// Runs the client on the file of `bytes` bytes.
    pub(super) fn ask(&mut self, bytes: usize, connections: u32, seconds: u32) -> Result<Asked> {
        self.process.check()?;
        client::ask(self.place.peer(), self.process.id(), &url(bytes), connections, seconds)
    }
}

/// Returns the command of `rxo serve`, with its output discarded.
pub(super) fn rxo_serve(rxo: &Path, site: &Site, nic: &str, address: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", "exec \"$0\" \"$@\" > /dev/null"]).arg(rxo);
    command.arg("serve").arg(site.www()).args(["--nic", nic]);
    command.args(["--ip", address, "--per-peer", "10000"]);
    command
}

fn url(bytes: usize) -> String {
    format!("http://{}/{bytes}", Lab::HOST_ADDRESSES.0)
}

const TIMEOUT: Duration = Duration::from_secs(60);
