//! A host with its link and its sent packets.

use std::net::{Ipv4Addr, Ipv6Addr};

use rxo_device::middleware::WireSource;
use rxo_device::{FrameSource, MemoryLink, MemoryOptions, MemorySink, MemorySource};
use rxo_frame::{Frame, Instant, LinkKind};
use rxo_host::{ConnectionView, Host, HostConfig, HostError, IpCidr, Route, TcpStream};

use super::{Packet, Settings};

/// A host that runs on a link in memory.
#[derive(Debug)]
pub(super) struct Running {
    pub(super) host: Host<MemorySource, MemorySink>,
    /// Settings with which the host was made.
    pub(super) settings: Settings,
    to_host: MemoryLink,
    /// The link to which the host sends. Its other end segments GSO frames and completes checksums, like a
    /// device.
    from_host: MemoryLink,
    wire: WireSource<MemorySource>,
}

impl Running {
    pub(super) fn new(settings: Settings) -> Result<Self, HostError> {
        let options = MemoryOptions {
            link: LinkKind::RawIp,
            mtu: settings.mtu.into(),
            ..MemoryOptions::default()
        };
        let (to_host, from_host) = (MemoryLink::new(options), MemoryLink::new(options));
        let host = Host::new(to_host.source(), from_host.sink(), config(&settings)?)?;
        let wire = WireSource::new(from_host.source(), false);
        Ok(Self { host, settings, to_host, from_host, wire })
    }

    pub(super) fn next_timer(&self) -> Option<Instant> {
        self.host.poll_at()
    }

    /// Runs the host's turns until one is idle.
    pub(super) fn turn(&mut self, now: Instant) {
        self.from_host.set_now(now);
        for _ in 0..MOST_TURNS {
            // A link in memory cannot fail.
            if self.host.turn(now).is_ok_and(|turn| turn.is_idle()) {
                return;
            }
        }
    }

    pub(super) fn deliver(&mut self, packet: &[u8], now: Instant) {
        self.to_host.push(&Frame::new(packet, now));
        self.turn(now);
    }

    pub(super) fn take_packet(&mut self) -> Option<Packet> {
        let mut frames = Vec::with_capacity(1);
        self.wire.receive(&mut frames, 1).ok()?;
        let frame = frames.pop()?;
        Some(Packet { at: frame.arrived_at, bytes: frame.bytes().to_vec() })
    }

    /// Returns the host's view of the connection of `stream`; `None` if it is over.
    pub(super) fn view(&self, stream: &TcpStream) -> Option<ConnectionView> {
        let (local, peer) = (stream.local_addr().ok()?, stream.peer_addr().ok()?);
        let views = self.host.connections(0, usize::MAX).look();
        views.into_iter().find(|view| (view.local, view.peer) == (local, peer))
    }

    /// Returns `true` if the host has no connections, not even in TIME-WAIT.
    pub(super) fn is_unused(&mut self) -> bool {
        let counters = self.host.counters();
        counters.connections == 0 && counters.time_waits == 0
    }
}

fn config(settings: &Settings) -> Result<HostConfig, HostError> {
    let v4 = IpCidr::new(settings.local_v4.into(), 16);
    let v6 = IpCidr::new(settings.local_v6.into(), 48);
    let addresses = [v4, v6].into_iter().filter_map(Result::ok).collect();
    let routes = vec![Route::default_by(GATEWAY_V4.into()), Route::default_by(GATEWAY_V6.into())];
    Ok(HostConfig {
        routes,
        tcp: settings.config.clone(),
        memory_bytes: MEMORY_BYTES,
        syn_cookies: settings.syn_cookies,
        time_waits: TIME_WAITS,
        ..HostConfig::new(addresses, SECRET)
    })
}

/// Most turns at one instant, far more than any work needs.
const MOST_TURNS: u32 = 10_000;
/// Memory limit of the host, so high that it never limits a buffer; only used memory is allocated.
const MEMORY_BYTES: u64 = 1 << 40;
/// Most connections in TIME-WAIT, more than a script has. Their memory is allocated with the host, and
/// scripts make many hosts.
const TIME_WAITS: usize = 64;
/// Secret of the host, constant so that a script has one outcome.
const SECRET: [u64; 2] = [0x7061_636b_6574, 0x0064_7269_6c6c];
const GATEWAY_V4: Ipv4Addr = Ipv4Addr::new(192, 168, 0, 2);
const GATEWAY_V6: Ipv6Addr = Ipv6Addr::new(0xfd3d, 0xfa7b, 0xd17d, 0, 0, 0, 0, 2);
