//! Static rules: decide whether a frame may be coalesced at all.
//!
//! These rules use one frame and the policy, never the held segments. Separate from the verdict so that each
//! reason can be tested by itself.

use rxo_frame::{ChecksumStatus, Frame, VlanTag};
use rxo_wire::tcp::{self, FixedHeader, OptionLayout, Timestamp};
use rxo_wire::{
    Ip, IpVersion, Offsets, Parsed, SeqNumber, TcpFlags, TcpSegment, Transport, class_and_length,
};

use crate::shape::Shape;
use crate::{BypassReason, CeRule, EceRule, FinRule, Kind, OptionRule, Policy};

/// The longest merged header, in bytes: Ethernet with two tags, IPv6 with extension headers, TCP with all
/// options. A frame with a longer header is not coalesced.
pub const MAX_HEADER_BYTES: usize = 192;

/// A segment or datagram that may be coalesced: a newly received one, which is compared with the held segments of
/// its flow, or the last one that its flow holds.
#[derive(Clone, Copy, Debug)]
pub struct Candidate<'a> {
    /// The IP header.
    pub ip: Ip,
    /// The TCP header; all fields are 0 for a datagram.
    pub tcp: TcpSegment,
    /// `true` for a UDP datagram.
    pub is_datagram: bool,
    /// The offsets of the headers and the payload.
    pub at: Offsets,
    /// The bytes of the frame, for rules that compare byte for byte.
    pub bytes: &'a [u8],
    /// The checksum status that the frame arrived with.
    pub checksum: ChecksumStatus,
    /// The VLAN tag that the device removed from the frame; `None` if it removed none.
    pub vlan: Option<VlanTag>,
}

impl<'a> Candidate<'a> {
    /// Creates the candidate for the TCP segment in `frame`, with its headers in `parsed` and `tcp`.
    #[inline]
    #[must_use]
    pub fn new<B: AsRef<[u8]>>(parsed: &Parsed, tcp: &TcpSegment, frame: &'a Frame<B>) -> Self {
        let Frame { checksum, vlan, .. } = *frame;
        let (ip, at, bytes) = (parsed.ip, parsed.at, frame.bytes());
        Self { ip, tcp: *tcp, is_datagram: false, at, bytes, checksum, vlan }
    }

    /// Creates the candidate for the UDP datagram in `frame`, with the IP header `ip` and the offsets `at`.
    #[inline]
    #[must_use]
    pub fn datagram<B: AsRef<[u8]>>(ip: Ip, at: Offsets, frame: &'a Frame<B>) -> Self {
        let Frame { checksum, vlan, .. } = *frame;
        Self { ip, tcp: NO_TCP, is_datagram: true, at, bytes: frame.bytes(), checksum, vlan }
    }

    /// Returns the kind of the candidate: data, pure ACK or datagram.
    #[inline]
    #[must_use]
    pub const fn kind(&self) -> Kind {
        Kind::of_candidate(self.at.payload_bytes(), self.is_datagram)
    }

    /// Reads the segment in `frame` from fixed offsets. Its IP header begins at `network` and has neither
    /// options nor extension headers; its IP checksum is assumed to be right. `None` if it has TCP options
    /// other than the timestamp in its usual layout, or a header is truncated.
    #[inline(always)]
    pub(crate) fn ordinary<S: Shape, B: AsRef<[u8]>>(
        frame: &'a Frame<B>,
        network: usize,
    ) -> Option<Self> {
        let packet = frame.bytes().get(network..)?;
        let (_, packet_bytes) = class_and_length(packet)?;
        let segment = packet.get(S::IP_BYTES..)?;
        let header = FixedHeader::of(segment)?;
        let header_bytes = header.header_bytes();
        let (options, timestamp) = match segment.get(tcp::MIN_HEADER_BYTES..header_bytes)? {
            [] => (OptionLayout::None, Timestamp::default()),
            options @ [1, 1, 8, 10, ..] if options.len() == TIMESTAMP_BYTES => {
                (OptionLayout::AlignedTimestamp, Timestamp::find(options)?)
            }
            _ => return None,
        };
        let tcp = TcpSegment {
            seq: header.seq(),
            ack: header.ack(),
            flags: header.flags(),
            window: header.window(),
            checksum: header.checksum(),
            urgent: header.urgent(),
            options,
            timestamp,
        };
        let transport = (network + S::IP_BYTES) as u32;
        let at = Offsets {
            network: network as u32,
            transport,
            payload: transport + header_bytes as u32,
            end: (network + packet_bytes) as u32,
        };
        let Frame { checksum, vlan, .. } = *frame;
        let (ip, bytes) = (S::ip(packet)?, frame.bytes());
        Some(Self { ip, tcp, is_datagram: false, at, bytes, checksum, vlan })
    }

    /// Returns the payload length, in bytes.
    #[inline]
    #[must_use]
    pub const fn payload_bytes(&self) -> u32 {
        self.at.payload_bytes()
    }
}

/// The value of [`Candidate::tcp`] for datagrams, with all fields 0.
const NO_TCP: TcpSegment = TcpSegment {
    seq: SeqNumber(0),
    ack: SeqNumber(0),
    flags: TcpFlags::from_bits(0),
    window: 0,
    checksum: 0,
    urgent: 0,
    options: OptionLayout::None,
    timestamp: Timestamp { value: 0, echo: 0 },
};

/// The length of the timestamp option with its padding, in bytes.
const TIMESTAMP_BYTES: usize = 12;

/// Flags that do not by themselves prevent coalescing.
const HARMLESS: TcpFlags = TcpFlags::ACK.union(TcpFlags::PSH);

/// Applies the static rules to one frame and returns its TCP header. The TCP checksum is not verified here: that
/// needs the payload.
///
/// # Errors
/// The first rule that the frame breaks, as the reason to deliver the frame untouched.
///
/// # Examples
/// ```
/// use rxo_coalesce::{BypassReason, Policy, candidate};
/// use rxo_wire::parse_ip;
/// # use rxo_wire::build::{Ipv4Header, TcpHeader, write_tcp_checksum};
/// # use rxo_wire::{TcpFlags, checksum::Summer};
/// # let tcp = TcpHeader { flags: TcpFlags::ACK, ..TcpHeader::default() };
/// # let ip = Ipv4Header { protocol: 6, payload_bytes: 20 + 1_000, ..Ipv4Header::default() };
/// # let mut segment = vec![0; 40 + 1_000];
/// # let rest = ip.write(&mut segment)?;
/// # tcp.write(rest)?;
/// # write_tcp_checksum(rest, ip.pseudo_header(), Summer::detect())?;
///
/// let parsed = parse_ip(&segment).map_err(|_| "unreadable")?;
/// assert!(candidate(&parsed, &Policy::linux_gro()).is_ok());
/// segment[8] ^= 1;
/// let parsed = parse_ip(&segment).map_err(|_| "unreadable")?;
/// assert_eq!(candidate(&parsed, &Policy::linux_gro()).err(), Some(BypassReason::BadIpChecksum));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[inline]
pub fn candidate<'a>(parsed: &'a Parsed, policy: &Policy) -> Result<&'a TcpSegment, BypassReason> {
    let tcp = transport(&parsed.transport)?;
    if !parsed.ip.checksum_ok {
        return Err(BypassReason::BadIpChecksum);
    }
    if parsed.ip.has_options || parsed.ip.reserved_bit {
        check_ip(parsed, policy)?;
    }
    if are_odd(tcp.flags) {
        check_flags(tcp.flags, parsed.payload_bytes() == 0, policy)?;
    }
    if tcp.urgent != 0 {
        return Err(BypassReason::Urg);
    }
    if parsed.payload_bytes() == 0 {
        return Err(BypassReason::PureAck);
    }
    with_payload((&parsed.ip, tcp, parsed.at), policy)?;
    Ok(tcp)
}

/// Applies the static rules to a segment with payload. The caller has already checked IP header, flags and urgent
/// pointer.
///
/// # Errors
/// The first rule that the segment breaks, as in [`candidate`].
#[inline]
pub(crate) fn with_payload(
    (ip, tcp, at): (&Ip, &TcpSegment, Offsets),
    policy: &Policy,
) -> Result<(), BypassReason> {
    if is_marked_ce(ip) && policy.ce == CeRule::Bypass {
        return Err(BypassReason::CeMark);
    }
    if policy.refuses_plain() {
        rare_rules(ip, tcp, policy)?;
    }
    options(tcp, policy)?;
    if at.end - at.network > policy.max_bytes || at.payload_bytes() > policy.buffer_bytes {
        return Err(BypassReason::TooLarge);
    }
    if policy.coalesce { Ok(()) } else { Err(BypassReason::CoalescingOff) }
}

#[inline]
fn transport(transport: &Transport) -> Result<&TcpSegment, BypassReason> {
    match transport {
        Transport::Tcp(tcp) => Ok(tcp),
        Transport::Fragment => Err(BypassReason::Fragment),
        other if other.may_hide_tcp() => Err(BypassReason::UnknownHeader),
        Transport::Udp(_) | Transport::Other(_) => Err(BypassReason::NotTcp),
    }
}

/// Congestion Experienced (RFC 3168 section 5).
const CE: u8 = 3;

/// Returns `true` if the packet is marked CE.
#[inline]
pub(crate) const fn is_marked_ce(ip: &Ip) -> bool {
    ip.traffic_class & CE == CE
}

/// Applies two rules that only some policies have: DF must be set, and a timestamp echo must not be zero.
#[cold]
fn rare_rules(ip: &Ip, tcp: &TcpSegment, policy: &Policy) -> Result<(), BypassReason> {
    if policy.needs_df && !ip.dont_fragment {
        return Err(BypassReason::DfClear);
    }
    if !policy.zero_echo && tcp.options.has_timestamp() && tcp.timestamp.echo == 0 {
        return Err(BypassReason::ZeroEcho);
    }
    Ok(())
}

#[cold]
pub(crate) fn check_ip(parsed: &Parsed, policy: &Policy) -> Result<(), BypassReason> {
    if parsed.ip.reserved_bit {
        return Err(BypassReason::ReservedBit);
    }
    if parsed.ip.has_odd_extensions {
        return Err(BypassReason::ExtensionHeader);
    }
    let mergeable = parsed.ip.version == IpVersion::V6
        && policy.extension_headers
        && parsed.at.payload as usize <= MAX_HEADER_BYTES;
    if mergeable { Ok(()) } else { Err(BypassReason::IpOptions) }
}

/// Returns `true` unless the flags are ACK alone or ACK and PSH.
#[inline]
pub(crate) const fn are_odd(flags: TcpFlags) -> bool {
    !flags.contains(TcpFlags::ACK) || flags.without(HARMLESS).bits() != 0
}

/// Applies the static rules to flags other than ACK and PSH. Segments with ECE or AE may be merged if their flags
/// are equal; the verdict compares the flags.
#[cold]
pub(crate) fn check_flags(
    flags: TcpFlags,
    is_empty: bool,
    policy: &Policy,
) -> Result<(), BypassReason> {
    let refused = [
        (TcpFlags::SYN, BypassReason::Syn),
        (TcpFlags::RST, BypassReason::Rst),
        (TcpFlags::URG, BypassReason::Urg),
        (TcpFlags::CWR, BypassReason::Cwr),
        (TcpFlags::RESERVED, BypassReason::OddFlags),
    ];
    if let Some((_, reason)) = refused.iter().find(|(refused, _)| flags.intersects(*refused)) {
        return Err(*reason);
    }
    if !flags.contains(TcpFlags::ACK) {
        return Err(BypassReason::OddFlags);
    }
    if flags.contains(TcpFlags::FIN) && (is_empty || policy.fin == FinRule::Bypass) {
        return Err(BypassReason::Fin);
    }
    if policy.ece == EceRule::Bypass && flags.contains(TcpFlags::ECE) && !is_empty {
        return Err(BypassReason::Ece);
    }
    Ok(())
}

#[inline]
fn options(tcp: &TcpSegment, policy: &Policy) -> Result<(), BypassReason> {
    match (tcp.options, policy.options) {
        (OptionLayout::None | OptionLayout::AlignedTimestamp, _)
        | (OptionLayout::Other, OptionRule::Identical)
        | (OptionLayout::Timestamp, _) => Ok(()),
        (OptionLayout::Other | OptionLayout::Malformed, _) => Err(BypassReason::TcpOptions),
    }
}
