//! The splitter: records the segments that the host received, and returns the ACKs to insert before each of
//! the host's frames.

use rxo_frame::{ConfigError, Frame, LinkKind};
use rxo_wire::tcp::OptionLayout;
use rxo_wire::{FlowKey, IpVersion, Parsed, TcpFlags, TcpSegment, Transport, parse, parse_ip};

use super::counters::SplitCounters;
use super::delivered::Delivered;
use super::due::{MAX_INSERTED, due};
use super::flow::{Advance, Flow};
use super::reason::PassReason;
use super::table::{MAX_FLOWS, Table};
use super::window::{Offer, window};
use crate::pattern::Pattern;
use crate::{AckNumbers, AckTemplate, NotATemplate};

/// The configuration of a splitter. The number of flows determines the memory: about 700 bytes per flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SplitConfig {
    /// The number of full-sized segments per ACK, 1 to 64; RFC 9293 requires 2.
    pub every: u16,
    /// The link type of the frames in both directions: the header with which each frame begins.
    pub link: LinkKind,
    /// The maximum number of flows, 1 to 16,384. Beyond it, the least recently used flow is evicted.
    pub flows: u16,
    /// Seed of the flow hash.
    pub seed: u64,
}

impl SplitConfig {
    /// Creates a configuration with one ACK per second segment, Ethernet, and 1,024 flows. `seed` must be
    /// random and new for each splitter, which has no randomness of its own; a fixed seed is safe only if
    /// every sender is trusted, as in tests.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self { every: 2, link: LinkKind::Ethernet, flows: 1_024, seed }
    }
}

/// Builds templates of the ACKs to insert before the host's stretch ACKs; see the crate's documentation.
///
/// # Examples
/// ```
/// use rxo_ack::{AckSlot, SplitConfig, Splitter};
/// use rxo_frame::{Frame, Instant};
///
/// // From the system's randomness.
/// # let seed = 7;
/// let mut splitter = Splitter::new(SplitConfig::new(seed))?;
/// let (to_host, from_host) = ([0; 60], [0; 60]);
/// splitter.delivered_frame(Frame::new(&to_host[..], Instant::ZERO));
///
/// let mut memory = [AckSlot::EMPTY; rxo_ack::MAX_ACKS_PER_STRETCH];
/// let frame = Frame::new(&from_host[..], Instant::ZERO);
/// if let Some(template) = splitter.split(frame) {
///     for ack in template.expand(&mut memory)?.iter() {
///         println!("send {} bytes", ack.bytes.len());
///     }
/// }
/// println!("then the frame itself, {} bytes", frame.bytes.len());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Splitter {
    config: SplitConfig,
    table: Table,
    counters: SplitCounters,
    /// The [`AckNumbers`] of the most recently inserted ACKs.
    numbers: [AckNumbers; MAX_INSERTED],
}

/// The maximum number of segments per ACK.
const MAX_EVERY: u16 = 64;

impl Splitter {
    /// Creates a splitter. Only this function allocates.
    ///
    /// # Errors
    /// [`ConfigError`] if a field of `config` is out of range.
    pub fn new(config: SplitConfig) -> Result<Self, ConfigError> {
        ConfigError::check([
            ("every", config.every.into(), 1, MAX_EVERY.into()),
            ("flows", config.flows.into(), 1, MAX_FLOWS.into()),
        ])?;
        let table = Table::new(config.flows, config.seed);
        let numbers = [AckNumbers::default(); MAX_INSERTED];
        Ok(Self { config, table, counters: SplitCounters::default(), numbers })
    }

    /// Returns the configuration.
    #[must_use]
    pub const fn config(&self) -> SplitConfig {
        self.config
    }

    /// Returns the counters since the splitter was created.
    #[must_use]
    pub fn counters(&self) -> SplitCounters {
        let mut counters = self.counters.clone();
        counters.evicted = self.table.evicted;
        counters
    }

    /// Records that an aggregate is delivered to the host. `key` is its flow, in the direction to the host.
    pub fn delivered(&mut self, key: &FlowKey, delivered: &Delivered) {
        let flow = self.table.find_or_add(&key.with_tag_in_bytes());
        self.counters.segments += u64::from(flow.deliver(delivered));
    }

    /// Records that `frame` is delivered to the host. Only data, SYN and RST have an effect; any other frame
    /// is only parsed. The frame may be a GSO frame.
    pub fn delivered_frame(&mut self, frame: Frame<&[u8]>) {
        let Some((parsed, tcp)) = self.read(frame) else { return };
        let key = key_of(&parsed, frame);
        if tcp.flags.intersects(TcpFlags::SYN | TcpFlags::RST) {
            self.delivered_event(&key, frame, &parsed, &tcp);
        } else if parsed.payload_bytes() > 0 {
            self.delivered(&key, &Delivered::of(frame, &parsed, &tcp));
        }
    }

    #[cold]
    fn delivered_event(
        &mut self,
        key: &FlowKey,
        frame: Frame<&[u8]>,
        parsed: &Parsed,
        tcp: &TcpSegment,
    ) {
        if tcp.flags.contains(TcpFlags::SYN) {
            let offer = Offer::read(options_of(frame, parsed));
            let is_answer = tcp.flags.contains(TcpFlags::ACK);
            self.table.find_or_add(key).peer_syn(offer, is_answer);
        } else if let Some(flow) = self.table.find(key) {
            *flow = Flow::default();
        }
    }

    /// Returns the ACKs to send before `frame`, as a template of at most 31 ACKs; `None` if no ACK is to be
    /// inserted. The caller then sends `frame` itself unchanged. Must be called for every frame of the host, in
    /// order. Costs one parse of the frame, and O(inserted ACKs).
    pub fn split<'s>(&'s mut self, frame: Frame<&'s [u8]>) -> Option<AckTemplate<'s>> {
        self.counters.frames += 1;
        match self.insert(frame) {
            Ok((pattern, count)) => {
                self.counters.templates += 1;
                self.counters.inserted += count as u64;
                AckTemplate::like(pattern, &self.numbers[..count])
            }
            Err(reason) => {
                self.counters.pass(reason);
                None
            }
        }
    }

    /// Writes the missing ACKs into `numbers` and returns their number. The error is the reason for which no
    /// ACK is inserted.
    fn insert<'f>(&mut self, frame: Frame<&'f [u8]>) -> Result<(Pattern<'f>, usize), PassReason> {
        let (parsed, tcp) = self.read(frame).ok_or(PassReason::NotTcp)?;
        let refused = refusal(frame, &parsed, &tcp);
        let is_pure = parsed.payload_bytes() == 0 && !tcp.flags.intersects(CONNECTION);
        self.counters.acks += u64::from(is_pure && tcp.flags.contains(TcpFlags::ACK));
        let key = key_of(&parsed, frame).reversed();
        if tcp.flags.intersects(TcpFlags::SYN | TcpFlags::RST) {
            self.host_event(&key, frame, &parsed, &tcp);
            return Err(PassReason::Flags);
        }
        let Some(flow) = self.table.find(&key) else {
            return Err(refused.unwrap_or(PassReason::UnknownFlow));
        };
        let is_stretch = is_pure && flow.is_stretch(tcp.ack, self.config.every);
        self.counters.stretch_acks += u64::from(is_stretch);
        let found = match refused {
            Some(reason) => Err(reason),
            None => missing(&mut self.numbers, flow, &tcp, self.config.every),
        };
        // Recorded only now, because the search compares this ACK with the one before.
        if tcp.flags.contains(TcpFlags::ACK) {
            flow.note(tcp.ack, tcp.window);
        }
        let count = found?;
        Ok((pattern(frame, &parsed)?, count))
    }

    #[cold]
    fn host_event(
        &mut self,
        key: &FlowKey,
        frame: Frame<&[u8]>,
        parsed: &Parsed,
        tcp: &TcpSegment,
    ) {
        if tcp.flags.contains(TcpFlags::RST) {
            if let Some(flow) = self.table.find(key) {
                *flow = Flow::default();
            }
            return;
        }
        let ack = tcp.flags.contains(TcpFlags::ACK).then_some(tcp.ack);
        let offer = Offer::read(options_of(frame, parsed));
        self.table.find_or_add(key).host_syn(offer, ack, tcp.window);
    }

    fn read(&self, frame: Frame<&[u8]>) -> Option<(Parsed, TcpSegment)> {
        let parsed = self.config.link.read(frame.bytes, parse, parse_ip);
        let parsed = parsed.ok()?;
        match parsed.transport {
            Transport::Tcp(tcp) => Some((parsed, tcp)),
            _ => None,
        }
    }
}

const CONNECTION: TcpFlags = TcpFlags::SYN.union(TcpFlags::FIN).union(TcpFlags::RST);
const ECN: TcpFlags = TcpFlags::ECE.union(TcpFlags::CWR).union(TcpFlags::AE);

/// Returns the reason for which the frame can never be split, whatever its flow; `None` if the frame may be
/// split.
fn refusal(frame: Frame<&[u8]>, parsed: &Parsed, tcp: &TcpSegment) -> Option<PassReason> {
    if parsed.payload_bytes() > 0 || frame.gso.is_some() {
        return Some(PassReason::Data);
    }
    if tcp.flags.without(ECN) != TcpFlags::ACK || tcp.urgent != 0 {
        return Some(PassReason::Flags);
    }
    if tcp.flags.intersects(ECN) {
        return Some(PassReason::Ecn);
    }
    if !matches!(tcp.options, OptionLayout::None | OptionLayout::AlignedTimestamp) {
        return Some(PassReason::Options);
    }
    let may_be_fragmented = parsed.ip.version == IpVersion::V4 && !parsed.ip.dont_fragment;
    may_be_fragmented.then_some(PassReason::MayBeFragmented)
}

/// Creates the pattern of the frame, from which similar ACKs are written. Called after all other checks,
/// because most frames need no pattern.
fn pattern<'f>(frame: Frame<&'f [u8]>, parsed: &Parsed) -> Result<Pattern<'f>, PassReason> {
    Pattern::of(parsed, frame).map_err(|refused| match refused {
        NotATemplate::NotAPureAck => PassReason::Flags,
        NotATemplate::Options => PassReason::Options,
        NotATemplate::TooLong | NotATemplate::Checksum => PassReason::Form,
    })
}

/// Writes the ACKs that are missing before `tcp` and returns their number, which is never 0.
fn missing(
    numbers: &mut [AckNumbers; MAX_INSERTED],
    flow: &Flow,
    tcp: &TcpSegment,
    every: u16,
) -> Result<usize, PassReason> {
    let advance = flow.advance(tcp.ack, tcp.window)?;
    match fill(numbers, flow, advance, tcp, every) {
        0 => Err(PassReason::FewSegments),
        count => Ok(count),
    }
}

/// Writes the ACKs that were due before `tcp` and returns their number.
fn fill(
    numbers: &mut [AckNumbers; MAX_INSERTED],
    flow: &Flow,
    advance: Advance,
    tcp: &TcpSegment,
    every: u16,
) -> usize {
    let mut count = 0;
    due(&flow.runs, every, advance.until, |due| {
        let Some(slot) = numbers.get_mut(count) else { return };
        let mut timestamp = tcp.timestamp;
        timestamp.echo = due.echo.unwrap_or(timestamp.echo);
        *slot = AckNumbers {
            ack: due.ack,
            window: window(due.ack, tcp.window, advance.edges),
            timestamp,
        };
        count += 1;
    });
    count
}

/// Returns the flow key of the frame, including its VLAN tag from the bytes or the metadata.
fn key_of(parsed: &Parsed, frame: Frame<&[u8]>) -> FlowKey {
    frame.vlan.map_or(parsed.key, |tag| parsed.key.on_device_vlan(tag.tci).with_tag_in_bytes())
}

fn options_of<'f>(frame: Frame<&'f [u8]>, parsed: &Parsed) -> &'f [u8] {
    frame.bytes.get(parsed.at.tcp_options()).unwrap_or_default()
}
