//! DHCP clients, with the shortest leases of their server: two minutes.

use std::fs;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rxo_testbed::{Lab, LabOptions, Namespace};

use super::{end, start};
use crate::Test;
use crate::at_once::at_once;
use crate::process::{signal, wait_until};
use crate::report::Scratch;
use crate::takeover::sorted;

/// Tests that take longer than a lease.
pub(crate) const LONG_TESTS: &[Test] =
    &[("hostlife_clients_of_dhcp_renew_their_lease", clients_renew)];

/// The clients: name, and the shell line that starts it. `DIRECTORY` stands for a folder for its files.
const CLIENTS: [(&str, &str); 2] = [
    (
        "udhcpc",
        "printf '%s\\n' '#!/bin/sh' 'case $1 in' \
         'bound|renew) ip address replace $ip/24 dev $interface valid_lft $lease preferred_lft $lease;;' \
         'deconfig) ip -4 address flush dev $interface;;' esac > DIRECTORY/script; \
         chmod +x DIRECTORY/script; exec busybox udhcpc -f -i eth1 -s DIRECTORY/script",
    ),
    (
        "dhcpcd",
        "mount -t tmpfs none /run && mount -t tmpfs none /var/lib/dhcpcd && \
         printf '%s\\n' duid noarp noipv6 nodev 'nohook resolv.conf' 'denyinterfaces *-nic rxo*' \
         > DIRECTORY/conf; exec dhcpcd -B -4 -f DIRECTORY/conf",
    ),
];

/// The shortest lease that `dnsmasq` supports.
const LEASE: Duration = Duration::from_secs(120);

/// A process that is ended together with its children on drop.
struct Ended(Child);

impl Ended {
    fn start(namespace: &Namespace, line: &str) -> Self {
        // In its own mount namespace, with its own files.
        let mut shell = Command::new("unshare");
        shell.args(["--mount", "sh", "-c", line]);
        shell.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Self(namespace.run(|| shell.spawn()).unwrap().expect("unshare, of the package util-linux"))
    }
}

impl Drop for Ended {
    fn drop(&mut self) {
        // SIGTERM lets it end its children; SIGKILL would leave them.
        signal("TERM", self.0.id());
        let begin = Instant::now();
        while self.0.try_wait().is_ok_and(|status| status.is_none()) && begin.elapsed() < SETTLED {
            thread::sleep(Duration::from_millis(10));
        }
        _ = self.0.kill();
        _ = self.0.wait();
    }
}

fn clients_renew() {
    at_once(CLIENTS, |(name, line)| {
        let scratch = Scratch::new(&format!("dhcp-{name}"));
        let directory = scratch.file("files");
        fs::create_dir(&directory).unwrap();
        let directory = directory.to_str().unwrap();
        let lab = Lab::with_bare_nic(LabOptions::default()).unwrap();
        let server = format!(
            "exec dnsmasq -k -p 0 -u root -i eth0 -F 10.77.0.100,10.77.0.110,255.255.255.0,120s \
             -l {directory}/leases --pid-file={directory}/pid"
        );
        let _server = Ended::start(lab.peer(), &server);
        let _client = Ended::start(lab.host(), &line.replace("DIRECTORY", directory));
        let has = || sorted(&lab, "ip -o -4 address show dev eth1").contains(" 10.77.0.1");
        wait_until("the client has an address", has);
        let rxo = start(&lab, true);
        let begin = Instant::now();
        // A client that restarts when the name moves to another interface has an address again after some
        // seconds.
        wait_until("the client has an address beside rxo", || has() && begin.elapsed() > SETTLED);
        while begin.elapsed() < LEASE + LEASE / 4 {
            assert!(has(), "{name}: no address after {:?}", begin.elapsed());
            thread::sleep(Duration::from_millis(500));
        }
        end(rxo);
        let begin = Instant::now();
        wait_until("the client has an address afterwards", || has() && begin.elapsed() > SETTLED);
        while begin.elapsed() < LEASE + LEASE / 4 {
            assert!(has(), "{name}: no address {:?} after the end", begin.elapsed());
            thread::sleep(Duration::from_millis(500));
        }
    });
}

const SETTLED: Duration = Duration::from_secs(10);
