"""Captures made here: bursts of TCP segments between two hosts, as pcap bytes."""

import struct

SEGMENT_BYTES = 1448
START_S = 1_767_225_600


def checksum(data):
    """The Internet checksum (RFC 1071)."""
    if len(data) % 2:
        data += b"\0"
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def segment(port, seq, payload, flags=0x10, ident=0):
    """An Ethernet frame with one TCP segment from 10.0.0.1 to 10.0.0.2."""
    hosts = bytes([10, 0, 0, 1, 10, 0, 0, 2])
    tcp = struct.pack("!HHIIBBHHH", port, 443, seq, 1, 5 << 4, flags, 512, 0, 0)
    pseudo = hosts + struct.pack("!BBH", 0, 6, len(tcp) + len(payload))
    tcp = tcp[:16] + struct.pack("!H", checksum(pseudo + tcp + payload)) + tcp[18:]
    length = 20 + len(tcp) + len(payload)
    ip = struct.pack("!BBHHHBBH", 0x45, 0, length, ident, 0x4000, 64, 6, 0) + hosts
    ip = ip[:10] + struct.pack("!H", checksum(ip)) + ip[12:]
    return bytes(12) + b"\x08\x00" + ip + tcp + payload


def frames(bursts=10, segments=16, flows=2):
    """Frames with their times in nanoseconds: in each burst each flow sends so many segments in turn."""
    result = []
    for burst in range(bursts):
        for index in range(segments):
            for flow in range(flows):
                number = burst * segments + index
                flags = 0x18 if index == segments - 1 else 0x10
                payload = bytes([number % 251]) * SEGMENT_BYTES
                frame = segment(1000 + flow, number * SEGMENT_BYTES, payload, flags, number)
                at = burst * 1_000_000 + (index * flows + flow) * 1_200
                result.append((at, frame))
    return result


def pcap(packets):
    """A pcap file in nanoseconds."""
    parts = [struct.pack("<IHHIIII", 0xA1B23C4D, 2, 4, 0, 0, 65535, 1)]
    for at, frame in packets:
        seconds, rest = divmod(at, 1_000_000_000)
        parts.append(struct.pack("<IIII", START_S + seconds, rest, len(frame), len(frame)))
        parts.append(frame)
    return b"".join(parts)
