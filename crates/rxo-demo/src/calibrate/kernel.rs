//! Measures the kernel's own path, without rxo: a stream at a limited rate, which the kernel merges and delivers itself.
//!
//! The processor time of two threads is counted: the kernel's thread that polls the interface, and the reader. The kernel's
//! merging stays on: without it a veth has no such thread, and the sender's thread would pay. Its cost is therefore part of
//! the cost of each packet. The limit on aggregates varies the deliveries, and the length of bursts varies the wake-ups, so that
//! the fit can distinguish them.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use rxo_testbed::traffic::{BulkConfig, BulkTransfer};
use rxo_testbed::{CpuMeter, KernelGro, Lab, LabOptions, times_slept};

use super::plan::{Pace, Plan, Setting};
use super::run::Sample;
use super::window::{Counted, Counts, Reserve};

/// A private network in which a thread of the kernel polls the receiving interface.
#[derive(Debug)]
pub(super) struct KernelPath {
    lab: Lab,
    poller: u32,
}

impl KernelPath {
    /// Builds the network. `None` if the kernel does not poll in a thread that this process can see, as in a container and
    /// before Linux 5.12.
    ///
    /// # Errors
    /// If the network cannot be built.
    pub(super) fn open() -> Result<Option<Self>> {
        let lab = Lab::direct_with(KernelGro::On, LabOptions::default())?;
        // Old kernels and some containers refuse a thread.
        let poller = lab.host().interface(Lab::HOST_INTERFACE).receive_in_thread();
        Ok(poller.ok().flatten().map(|poller| Self { lab, poller }))
    }

    /// Measures `setting` once, at `pace`. Returns the sample.
    ///
    /// # Errors
    /// If the interface refuses the MTU, or the transfer fails or delivers wrong bytes.
    pub(super) fn measure(
        &self,
        setting: Setting,
        pace: Pace,
        plan: &Plan,
        reserve: &Reserve,
    ) -> Result<Sample> {
        let Self { lab, poller } = self;
        self.apply(setting, pace)?;
        let limit_bytes_per_s = Some(pace.bytes_per_s);
        let config = BulkConfig { limit_bytes_per_s, ..BulkConfig::default() };
        let transfer = BulkTransfer::start(lab.peer(), lab.host(), lab.host_address(), &config)?;
        let meter =
            CpuMeter::new().threads(READER, transfer.receiver_threads()).process(POLLER, *poller);
        transfer.measure(plan.warm_up, &meter)?;
        let counted = reserve.filled(plan.kernel_window, FEWEST_PACKETS, |time| {
            Counted::of(&transfer, &meter, time, || self.counts())
        });
        if !transfer.stop()?.is_intact() {
            bail!("bytes arrived that were not sent; please report this");
        }
        let counted = counted?;
        let parts = [READER, POLLER].iter().map(|part| counted.window.cpu.part(part));
        let used: Option<Duration> = parts.sum();
        Ok(counted.sample(used.context("the receiver was not measured")?))
    }

    /// Sets the MTU, the limit on aggregates and the sender's bursts. Old kernels know no limit, and have fine bursts always; the
    /// sample counts what was delivered.
    fn apply(&self, setting: Setting, pace: Pace) -> Result<()> {
        let Setting { mtu, max_segments, .. } = setting;
        // 0 lets no short round-trip time lengthen the bursts.
        _ = self.lab.peer().set_sysctl(BURSTS, if pace.is_fine { "0" } else { "9" });
        let host = self.lab.host().interface(Lab::HOST_INTERFACE);
        for end in [&host, &self.lab.peer().interface(Lab::PEER_INTERFACE)] {
            end.set_mtu(mtu)?;
        }
        // Space for headers and the full segments, but not for one more segment.
        let bytes = u32::from(max_segments) * mtu + mtu / 2;
        Ok(host.set_coalesced_bytes(bytes.min(MOST_BYTES))?)
    }

    fn counts(&self) -> Result<Counts> {
        let sleeps = times_slept(self.poller).context("the kernel's polling thread has ended")?;
        Ok(Counts { sleeps, ..Counts::now(&self.lab)? })
    }
}

/// The setting by which a sender's bursts grow over short paths; 9 is the kernel's default.
const BURSTS: &str = "net.ipv4.tcp_tso_rtt_log";
const READER: &str = "reader";
const POLLER: &str = "poller";
/// The number of packets below which no cost per packet is computed: the slow rate has few large ones.
const FEWEST_PACKETS: u64 = 100;
/// The kernel's default for the length of an aggregate, in bytes.
const MOST_BYTES: u32 = 65_536;
