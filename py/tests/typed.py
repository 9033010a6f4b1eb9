"""A program that mypy accepts in strict mode; it is not run."""

from __future__ import annotations

import io
import pathlib

import rxo


def report(path: pathlib.Path) -> tuple[int, str | None]:
    study = rxo.analyze(
        [path, "b.pcap", b"", io.BytesIO()], poll=["time:50us"], settings={"flows": 8}, sweep=["hold=10us,20us"]
    )
    study.report("report.html", flows=3)
    flows: rxo.Table = study.flows()
    print(len(flows), flows.column_names)
    share: float = study.decision.fewer_packets
    cores: float | None = study.with_costs({"packet_ns": 800}).decision.cores_with
    addresses: list[object] = flows["source_address"]
    print(share, cores, addresses, flows[0]["packets"], len(flows[:5]), study.traffic.checksums.right, study.notes)
    print(rxo.packets(path.parent.glob("*.pcap")).column_names, rxo.analyze(path, costs=path, dedup=True, progress=False))
    return study.eliminated, study.partial


def coalesced(path: pathlib.Path) -> bool:
    done: rxo.Coalesced = rxo.coalesce(path, "coalesced.pcapng", policy="remember")
    rxo.expand("coalesced.pcapng", path)
    return done.aggregates > 0 and rxo.verify(path, "coalesced.pcapng").equal


def engine(frames: list[bytes]) -> list[bytes]:
    deliveries: list[rxo.Delivery] = rxo.Engine(link="ip").poll(frames, 0)
    return [delivery.data for delivery in deliveries]
