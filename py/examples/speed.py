"""How many packets a second the package takes: a capture given as a path, and polls of 64 packets in memory.

``cargo xtask bench bindings`` runs it beside the same in Rust and in C.
"""

import struct
import sys
import time

import rxo

POLL = 64
POLLS = 2_000
PAYLOAD_BYTES = 1_400


def checksum(data: bytes) -> int:
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def segment(index: int) -> bytes:
    """The segment with this number of one flow, as an IP packet."""
    addresses = bytes([10, 0, 0, 1, 10, 0, 0, 2])
    length = 20 + PAYLOAD_BYTES
    ip = struct.pack("!BBHHHBBH", 0x45, 0, 20 + length, index, 0x4000, 64, 6, 0) + addresses
    ip = ip[:10] + struct.pack("!H", checksum(ip)) + ip[12:]
    tcp = struct.pack("!HHIIBBHHH", 4_000, 443, index * PAYLOAD_BYTES, 1, 0x50, 0x10, 512, 0, 0)
    tcp += bytes([index]) * PAYLOAD_BYTES
    sum_of = checksum(addresses + struct.pack("!HH", 6, length) + tcp)
    return ip + tcp[:16] + struct.pack("!H", sum_of) + tcp[18:]


def engine(name: str, *, trust_checksums: bool) -> None:
    packets = [segment(index) for index in range(POLL)]
    engine = rxo.Engine(link="ip", trust_checksums=trust_checksums, batch=POLL)
    start = time.perf_counter()
    deliveries = sum(len(engine.poll(packets, now_ns=now)) for now in range(POLLS))
    seconds = time.perf_counter() - start
    assert deliveries == 2 * POLLS, deliveries
    print(f"{name}\t{POLL * POLLS / seconds:.0f}")


def whole(name: str, run, packets: int) -> None:
    start = time.perf_counter()
    run()
    print(f"{name}\t{packets / (time.perf_counter() - start):.0f}")


def main(capture: str, packets: int) -> None:
    engine("engine, checksums verified", trust_checksums=False)
    engine("engine, checksums trusted", trust_checksums=True)
    whole("analyze", lambda: rxo.analyze(capture), packets)
    whole("coalesce", lambda: rxo.coalesce(capture, "/dev/null"), packets)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
