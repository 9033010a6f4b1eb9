"""The parts of a report as classes. Made by ``py/tests/generated.py`` from the types of the report in Rust."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Costs:
    """The processor time for receiving packets, in nanoseconds."""

    #: The cost of each packet that the stack handles, whatever its size, in nanoseconds. An aggregate counts as
    #: one.
    packet_ns: float
    #: The cost of each byte on the wire, in nanoseconds.
    byte_ns: float
    #: The cost of each packet that coalescing examines, in nanoseconds; 0 if a card does it, and in the costs of a
    #: kernel, whose measurement cannot distinguish it from ``device_ns``.
    coalesce_ns: float
    #: The cost of each packet from the device, coalesced or not, in nanoseconds. Menon's figures call it the
    #: driver.
    device_ns: float
    #: The cost of each time that packets arrive after the receiving side had nothing to do, in nanoseconds: the
    #: interrupt, and waking whoever reads. It matters at low rates.
    wake_ns: float
    #: The largest additional cost of such a time, in nanoseconds, after a long idle time: caches are cold then, and
    #: the processor has slept. After 5 ms without packets it is half of that, and after 0.1 ms almost nothing.
    cold_ns: float


@dataclass(frozen=True)
class Receiver:
    """The effect of coalescing on the packets that one address receives, for the chosen policy and poll rule. Only
    packets of TCP and UDP flows count."""

    #: The receiving address; both addresses of a host with IPv4 and IPv6.
    address: str
    #: ``True`` if the capture was taken on the host with this address.
    is_host: bool
    #: The number of packets that the address receives.
    packets: int
    #: The number of bytes on the wire that the address receives, link-layer headers included.
    bytes: int
    #: The number of deliveries to the stack of the address.
    deliveries: int
    #: The share of the received packets that never reach the stack, from 0 to 1.
    fewer_packets: float
    #: The number of cores that are busy with receiving at the capture's mean rate without coalescing; ``None`` if
    #: the capture has no rate.
    cores_without: float | None
    #: The number of cores that are busy with receiving with coalescing; ``None`` if ``cores_without`` is.
    cores_with: float | None


@dataclass(frozen=True)
class Decision:
    """The decision whether coalescing is worth it, for the chosen policy and poll rule."""

    #: The decision and its reason, in a sentence or two.
    sentence: str
    #: ``True`` if coalescing saves 1 % of a core or more at the capture's mean rate; ``None`` if the capture has no
    #: rate or cannot answer, if the figures are no prediction, or if the answer depends on the receiving host.
    is_worth_it: bool | None
    #: The number of packets that the decision is for: those that one host receives, if the capture shows this host.
    packets: int
    #: The number of deliveries to the host's stack for the packets that the decision is for.
    deliveries: int
    #: The share of the packets that never reach the host's stack, from 0 to 1.
    fewer_packets: float
    #: ``True`` if the figures are no prediction: polls of a number of packets wait longer than any host would.
    is_hypothetical: bool
    #: The number of cores that are busy with receiving at the capture's mean rate without coalescing; 0.5 is half a
    #: core. ``None`` if no time passes between the first packet and the last.
    cores_without: float | None
    #: The number of cores that are busy with receiving at the capture's mean rate with coalescing; ``None`` if
    #: ``cores_without`` is.
    cores_with: float | None
    #: The time that 99 % of the first segments of aggregates wait at most, in nanoseconds.
    hold_p99_ns: int
    #: The poll rule of the decision, as the user would type it.
    poll: str
    #: The costs of receiving that were assumed or given.
    costs: Costs
    #: The origin of the costs, as reports name it.
    costs_from: str
    #: The host on which the capture was taken, then the addresses that receive a tenth of the packets or more.
    #: Empty if the records state which packets the host sent, because the decision is then for all other packets.
    receivers: tuple[Receiver, ...]


@dataclass(frozen=True)
class Encapsulation:
    """A kind of encapsulation, such as GRE or MPLS."""

    #: The name of the encapsulation.
    name: str
    #: The number of packets in it.
    packets: int


@dataclass(frozen=True)
class SenderOffload:
    """A sender that was captured before its card completed checksums."""

    #: The address of the sender.
    address: str
    #: The number of the sender's packets with unfinished checksums.
    unfinished: int
    #: The number of all TCP and UDP packets of the sender.
    packets: int


@dataclass(frozen=True)
class Checksums:
    """The status of the traffic's TCP and UDP checksums."""

    #: The way in which checksums were checked: ``auto``, ``verify``, ``partial`` or ``trust``.
    mode: str
    #: The number of correct checksums.
    right: int
    #: The number of wrong checksums, without unfinished ones.
    wrong: int
    #: The number of unfinished checksums, which are only the pseudo-header's sum: the sender's card was to complete
    #: them.
    unfinished: int
    #: The number of checksums in truncated packets, which cannot be verified.
    cut: int
    #: The senders of unfinished checksums, in descending order of their number of unfinished checksums.
    sender_offload: tuple[SenderOffload, ...]


@dataclass(frozen=True)
class Traffic:
    """Totals of all captures together."""

    #: The number of packets.
    packets: int
    #: The number of bytes on the wire, link-layer headers included.
    bytes: int
    #: The time from the first packet to the last, in nanoseconds.
    duration_ns: int
    #: The time that rates are computed from, in nanoseconds: ``duration_ns``, with 10 ms in place of each pause.
    active_ns: int
    #: The number of pauses: times of more than a second without packets. Some may be errors of the capture's clock.
    pauses: int
    #: The time of the first packet, in nanoseconds since 1970 UTC.
    started_at_ns: int
    #: The number of TCP and UDP flows, one for each direction. There are more if ``untracked_packets`` is not 0.
    flows: int
    #: The number of UDP flows among ``flows``.
    udp_flows: int
    #: The number of TCP packets.
    tcp_packets: int
    #: The number of TCP packets with payload.
    data_segments: int
    #: The number of TCP packets without payload that acknowledge, and are neither SYN, FIN nor RST.
    pure_acks: int
    #: The number of pure ACKs that ACK aggregation could eliminate: they follow another ACK of their flow, advance
    #: its ACK number (or change only the window), and have no option but the timestamp.
    aggregatable_pure_acks: int
    #: The number of UDP packets, without fragments.
    udp_packets: int
    #: The number of packets that the capture truncated.
    cut_packets: int
    #: The number of packets that the capture calls complete, but that are shorter than their IP header states.
    #: Included in ``cut_packets``.
    short_packets: int
    #: The number of packets with more than 9,216 bytes of payload, which is more than any link carries: segments
    #: were merged before the capture, or not yet segmented.
    super_packets: int
    #: The bytes of ``super_packets``, on the wire.
    super_bytes: int
    #: The number of other packets that were merged from several segments before the capture, as the numbers of the
    #: next packets show.
    merged_packets: int
    #: The payload of ``merged_packets`` in bytes.
    merged_bytes: int
    #: The number of packets of an unknown link type, which belong to no flow and reach no engine.
    unknown_link_packets: int
    #: The number of packets of interfaces for which there was no memory, which reach no engine.
    unserved_packets: int
    #: The number of TCP and UDP packets of flows that are not tracked individually and not counted in ``flows``.
    untracked_packets: int
    #: The number of packets that the filter excluded. No other number of the traffic counts them.
    filtered_packets: int
    #: The number of packets that the capturing host sent, as their records say. No other number of the traffic
    #: counts them, because a host does not receive what it sends.
    sent_packets: int
    #: The number of packets that the capture has twice, as from a mirror port.
    duplicate_packets: int
    #: ``True`` if duplicates were left out; ``packets`` does not contain them then.
    are_duplicates_left_out: bool
    #: The encapsulations of packets, most frequent first. Each packet counts with its outermost one.
    encapsulations: tuple[Encapsulation, ...]
    #: The number of packets in an encapsulation that cannot be read, for example because it is encrypted.
    sealed_packets: int
    #: The number of packets whose time is before that of the previous packet in the file.
    steps_back: int
    #: The status of the TCP and UDP checksums. UDP packets without a checksum are not included.
    checksums: Checksums
