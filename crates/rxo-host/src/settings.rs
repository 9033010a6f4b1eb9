//! The settings of connections: the configuration, adapted to the device.

use std::sync::Arc;

use rxo_device::{SinkCapabilities, SourceCapabilities};
use rxo_frame::{ConfigError, Duration, LinkKind};
use rxo_tcp::{Config, Connection, Secret, SynCookies};
use rxo_wire::FlowKey;

use crate::buffer::Buffer;
use crate::link::{Link, LinkConfig, LinkError};
use crate::memory::Share;
use crate::{HostConfig, HostError};

/// Settings that all connections of a host share.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// The addresses and routes of the host, copied from the worker's link.
    pub(crate) link: Link,
    v4: Arc<Config>,
    v6: Arc<Config>,
    secret: Secret,
    /// The generators of SYN cookies for IPv4 and IPv6; `None` if SYN cookies are disabled.
    cookies: Option<[SynCookies; 2]>,
    pub(crate) sockets: usize,
    /// The time for which a connection stays in TIME-WAIT.
    pub(crate) time_wait: Duration,
    /// The largest IP packet that the link carries, in bytes.
    pub(crate) mtu: u32,
    /// The capacity of the device's receive queue, in frames; `None` if unknown.
    pub(crate) queue_frames: Option<usize>,
}

impl Settings {
    pub(crate) fn new(
        config: &HostConfig,
        source: SourceCapabilities,
        sink: SinkCapabilities,
    ) -> Result<Self, HostError> {
        let mtu = sink.mtu.min(source.mtu);
        let v4 = Arc::new(fitted(&config.tcp, mtu, sink.gso_bytes, V4_HEADERS_BYTES)?);
        let v6 = Arc::new(fitted(&config.tcp, mtu, sink.gso_bytes, V6_HEADERS_BYTES)?);
        let secret = Secret(config.secret);
        let cookies = |tcp| SynCookies::new(tcp, secret).map_err(HostError::Tcp);
        let both = [cookies(Arc::clone(&v4))?, cookies(Arc::clone(&v6))?];
        Ok(Self {
            cookies: config.syn_cookies.then_some(both),
            link: link(config, source.link)?,
            v4,
            v6,
            secret,
            sockets: config.sockets,
            time_wait: config.tcp.time_wait,
            mtu,
            queue_frames: None,
        })
    }

    /// Sets the capacity of the device's receive queue, in frames; `None` if unknown.
    pub(crate) fn with_queue(self, queue_frames: Option<usize>) -> Self {
        Self { queue_frames, ..self }
    }

    /// Returns the secret of the host.
    pub(crate) fn secret(&self) -> Secret {
        self.secret
    }

    /// Returns the SYN cookies for connections that send as `pair`; `None` if cookies are disabled.
    pub(crate) fn cookies(&self, pair: &FlowKey) -> Option<&SynCookies> {
        let [v4, v6] = self.cookies.as_ref()?;
        Some(if pair.source().is_ipv4() { v4 } else { v6 })
    }

    /// Returns the settings of connections that send as `pair`, before the memory limits them.
    pub(crate) fn tcp(&self, pair: &FlowKey) -> &Arc<Config> {
        if pair.source().is_ipv4() { &self.v4 } else { &self.v6 }
    }

    /// Creates a connection in LISTEN with the memory in `share`.
    pub(crate) fn connection<B: AsRef<[u8]>>(
        &self,
        pair: FlowKey,
        share: Share,
    ) -> Result<Connection<Buffer<B>>, ConfigError> {
        Connection::open_passive(share.apply(self.tcp(&pair)), pair, self.secret)
    }
}

fn link(config: &HostConfig, kind: LinkKind) -> Result<Link, LinkError> {
    Link::new(LinkConfig {
        kind,
        mac: config.ethernet_address(),
        addresses: config.addresses.clone(),
        routes: config.routes.clone(),
        neighbours: config.neighbours,
        seed: config.secret[1],
    })
}

fn fitted(config: &Config, mtu: u32, gso_bytes: u32, headers: u32) -> Result<Config, HostError> {
    let mut fitted = config.clone();
    let room = mtu.saturating_sub(headers);
    let mss = u16::try_from(room).unwrap_or(u16::MAX).min(config.maximum_segment_size);
    fitted.maximum_segment_size = mss;
    if gso_bytes > 0 {
        // If the device takes no GSO frames, the host splits large sends itself, and only the path limits
        // their size.
        let large = gso_bytes.saturating_sub(headers + MOST_OPTIONS_BYTES);
        fitted.large_send_bytes = config.large_send_bytes.min(large);
    }
    if u32::from(mss) < LEAST_SEGMENT_BYTES {
        return Err(HostError::SmallMtu { mtu, least: LEAST_SEGMENT_BYTES + headers });
    }
    fitted.check().map_err(HostError::Tcp)?;
    Ok(fitted)
}

const V4_HEADERS_BYTES: u32 = 40;
const V6_HEADERS_BYTES: u32 = 60;
const MOST_OPTIONS_BYTES: u32 = 40;
const LEAST_SEGMENT_BYTES: u32 = 64;
