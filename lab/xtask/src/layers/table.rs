//! The table of permitted imports, and of the files that may have `unsafe`. Data only; `rules` applies it.
//!
//! Each edge has its reason beside it. To add one, add its line; `cargo xtask layers` then checks that it
//! points down.

/// The row of a crate.
pub(crate) struct Layer {
    pub(crate) name: &'static str,
    /// Level of the crate; it may import only crates of lower levels.
    pub(crate) level: u8,
    /// Set if the crate does no input or output; each external dependency then needs a row in
    /// docs/dependencies.md.
    pub(crate) is_pure: bool,
    /// Workspace crates that it may import, each with the reason.
    pub(crate) imports: &'static [(&'static str, &'static str)],
}

/// Returns a row; shorter to write than a struct literal.
const fn layer(
    name: &'static str,
    level: u8,
    is_pure: bool,
    imports: &'static [(&'static str, &'static str)],
) -> Layer {
    Layer { name, level, is_pure, imports }
}

const PURE: bool = true;
const MAY_DO_IO: bool = false;

/// Every crate, from the bottom up.
pub(crate) const LAYERS: &[Layer] = &[
    layer("rxo-wire", 1, PURE, &[]),
    layer("rxo-frame", 1, PURE, &[]),
    layer(
        "rxo-coalesce",
        2,
        PURE,
        &[
            ("rxo-wire", "reads headers, writes the aggregate's header"),
            ("rxo-frame", "an aggregate is made of frames"),
        ],
    ),
    layer(
        "rxo-ack",
        2,
        PURE,
        &[
            ("rxo-wire", "reads an ACK, changes its checksums"),
            ("rxo-frame", "expanded ACKs are frames"),
        ],
    ),
    layer(
        "rxo-tcp",
        2,
        PURE,
        &[
            ("rxo-wire", "sequence numbers, options, the header of what leaves, records of ACKs"),
            ("rxo-frame", "text stays in the buffer it came in; instants"),
        ],
    ),
    layer(
        "rxo-device",
        2,
        MAY_DO_IO,
        &[
            ("rxo-frame", "sources yield frames, sinks take what can be gathered"),
            ("rxo-wire", "middleware segments what it impairs"),
        ],
    ),
    layer("rxo-confine", 2, MAY_DO_IO, &[]),
    layer("rxo-console", 2, MAY_DO_IO, &[]),
    layer("rxo-control", 2, MAY_DO_IO, &[]),
    layer("rxo-netlink", 2, MAY_DO_IO, &[]),
    layer("rxo-serve", 2, PURE, &[]),
    layer("rxo-virtqueue", 2, PURE, &[]),
    layer(
        "rxo-vnet",
        2,
        PURE,
        &[
            ("rxo-frame", "what the header says of a frame"),
            ("rxo-wire", "segments what a TUN gives, and completes its checksum"),
        ],
    ),
    layer("rxo-capture", 2, MAY_DO_IO, &[("rxo-frame", "instants, link kinds, VLAN tags")]),
    layer(
        "rxo-driver",
        3,
        MAY_DO_IO,
        &[
            ("rxo-device", "implements its traits"),
            ("rxo-frame", "fills pool buffers"),
            ("rxo-netlink", "addresses, routes and packet filters of interfaces"),
            ("rxo-virtqueue", "rings shared with guests, both sides"),
            ("rxo-vnet", "the header before each packet"),
            ("rxo-wire", "checksums and segmentation for a virtio peer that has neither"),
        ],
    ),
    layer(
        "rxo-host",
        3,
        MAY_DO_IO,
        &[
            ("rxo-wire", "reads what is not TCP, writes headers"),
            ("rxo-frame", "frames in, gathered packets out"),
            ("rxo-coalesce", "what arrives is coalesced before it reaches a connection"),
            ("rxo-ack", "templates of acknowledgements become frames"),
            ("rxo-tcp", "the connections it runs"),
            ("rxo-device", "what it receives from and transmits to"),
        ],
    ),
    layer(
        "rxo-testkit",
        3,
        MAY_DO_IO,
        &[("rxo-frame", "puts packets into frames, with no help from what is to be tested")],
    ),
    layer(
        "rxo-trace",
        3,
        MAY_DO_IO,
        &[
            ("rxo-coalesce", "the engine, unchanged, over captured packets"),
            ("rxo-capture", "reads and writes captures"),
            ("rxo-console", "numbers and tables of the report as text"),
            ("rxo-frame", "a captured packet becomes a frame"),
            ("rxo-vnet", "segments the frames of a live host as they arrived"),
            ("rxo-wire", "looks at flows whatever the policy"),
        ],
    ),
    layer(
        "rxo-testbed",
        4,
        MAY_DO_IO,
        &[("rxo-netlink", "makes interfaces, addresses and routes")],
    ),
    layer(
        "rxo-packetdrill",
        4,
        MAY_DO_IO,
        &[
            ("rxo-wire", "builds and reads the packets of scripts"),
            ("rxo-frame", "virtual time"),
            ("rxo-tcp", "settings and states of connections"),
            ("rxo-device", "the link in memory that scripts are on"),
            ("rxo-host", "the host that scripts are about"),
        ],
    ),
    layer(
        "rxo",
        4,
        MAY_DO_IO,
        &[
            ("rxo-wire", "part of what an embedder sees"),
            ("rxo-frame", "part of what an embedder sees"),
            ("rxo-coalesce", "the engine it runs"),
            ("rxo-ack", "splits what the host answers to aggregates"),
            ("rxo-capture", "traces what passes a device"),
            ("rxo-console", "figures as text"),
            ("rxo-device", "what its worker loop runs between"),
            ("rxo-driver", "opens devices by name"),
            ("rxo-tcp", "part of what an embedder sees"),
            ("rxo-host", "hosts on devices by name"),
            ("rxo-vnet", "part of what an embedder sees"),
        ],
    ),
    layer(
        "rxo-demo",
        5,
        MAY_DO_IO,
        &[
            ("rxo", "the worker that is measured"),
            ("rxo-console", "prints what was found, refuses what was typed wrongly"),
            ("rxo-coalesce", "policies by name, and the engine alone"),
            ("rxo-device", "impairments"),
            ("rxo-driver", "names of devices"),
            ("rxo-frame", "the clock's instants"),
            ("rxo-testbed", "private networks with Linux peers"),
            ("rxo-trace", "costs of receiving"),
        ],
    ),
    layer(
        "rxo-cli",
        6,
        MAY_DO_IO,
        &[
            ("rxo", "the worker it commands"),
            ("rxo-console", "prints, and tells usage from failure"),
            ("rxo-confine", "gives up what it needs no more, before it reads from the network"),
            ("rxo-control", "is asked while it runs, and asks"),
            ("rxo-demo", "the demo, the calibration"),
            ("rxo-coalesce", "policies by name, counters by reason"),
            ("rxo-capture", "opens captures, reports what is wrong with them"),
            ("rxo-device", "what devices say of themselves, and their counters"),
            ("rxo-driver", "opens what was typed, names what is wrong with it"),
            ("rxo-frame", "the clock's instants"),
            ("rxo-host", "the host that serve, cat, sink and source run on"),
            (
                "rxo-testbed",
                "its errors: whose fault they are; the bytes that sink and source check",
            ),
            ("rxo-serve", "HTTP, around which serve puts threads and a host"),
            ("rxo-trace", "studies of captures"),
        ],
    ),
    layer(
        "rxo-capi",
        6,
        MAY_DO_IO,
        &[
            ("rxo-capture", "opens captures by path"),
            ("rxo-coalesce", "the engine"),
            ("rxo-frame", "buffers that belong to the program in C"),
            ("rxo-trace", "studies of captures"),
            ("rxo-vnet", "the header before each packet"),
            ("rxo-wire", "the segmenter"),
        ],
    ),
    layer(
        "rxo-py",
        6,
        MAY_DO_IO,
        &[
            ("rxo-capture", "opens captures that Python names"),
            ("rxo-coalesce", "policies by name, the engine for scripts"),
            ("rxo-console", "files that are complete or absent"),
            ("rxo-frame", "frames that are bytes objects"),
            ("rxo-trace", "studies of captures"),
            ("rxo-wire", "headers as rules in Python see them"),
        ],
    ),
    layer(
        "rxo-tunnel",
        6,
        MAY_DO_IO,
        &[("rxo", "as an embedder sees it: the engine, the segmenter, TUN and UDP")],
    ),
    layer(
        "rxo-peers",
        5,
        MAY_DO_IO,
        &[
            ("rxo", "the driver's side of a card, as its guest"),
            ("rxo-testbed", "networks of guests and tunnels"),
        ],
    ),
    layer(
        "rxo-bench",
        6,
        MAY_DO_IO,
        &[
            ("rxo-testkit", "its workloads"),
            ("rxo", "its workers, measured side by side"),
            ("rxo-wire", "measured"),
            ("rxo-frame", "measured"),
            ("rxo-ack", "measured"),
            ("rxo-coalesce", "measured"),
            ("rxo-demo", "rounds in turns, the load, medians"),
            ("rxo-tcp", "measured, beside smoltcp"),
            ("rxo-device", "the link in memory under a measured host"),
            ("rxo-driver", "trains of datagrams through tunnels"),
            ("rxo-host", "measured, as a program uses it"),
            ("rxo-peers", "guests whose instructions are counted, tunnels of others"),
            ("rxo-testbed", "private networks"),
        ],
    ),
    layer(
        "rxo-fuzz",
        6,
        MAY_DO_IO,
        &[
            ("rxo-testkit", "turns bytes into traffic, and the oracle"),
            ("rxo", "under test: the switch"),
            ("rxo-wire", "under test"),
            ("rxo-frame", "under test"),
            ("rxo-ack", "under test"),
            ("rxo-coalesce", "under test"),
            ("rxo-tcp", "under test"),
            ("rxo-host", "under test: the link, the fast path"),
            ("rxo-device", "links in memory for hosts under test"),
            ("rxo-capture", "under test"),
            ("rxo-driver", "under test: the messages of vhost-user"),
            ("rxo-serve", "under test"),
            ("rxo-trace", "under test"),
            ("rxo-virtqueue", "under test"),
            ("rxo-vnet", "under test"),
        ],
    ),
    layer(
        "rxo-lab",
        7,
        MAY_DO_IO,
        &[
            ("rxo", "the worker and the host that are measured"),
            ("rxo-bench", "the benchmarks, as commands"),
            ("rxo-cli", "the command, as a process of the same build"),
            ("rxo-console", "prints what was found, refuses what was typed wrongly"),
            ("rxo-control", "asks the live server of paro"),
            ("rxo-coalesce", "policies by name, and the engine alone"),
            ("rxo-capture", "captures of senders"),
            ("rxo-demo", "measures in turns, and reports"),
            ("rxo-device", "links in memory, impairments"),
            ("rxo-driver", "names of devices, packet sockets that capture"),
            ("rxo-frame", "the clock's instants"),
            ("rxo-host", "the host that receives in menon, and sends in paro"),
            ("rxo-peers", "Linux guests, callgrind, a sender that counts ACKs"),
            ("rxo-testbed", "private networks with Linux peers"),
            ("rxo-serve", "HTTP of the server whose instructions are counted"),
            ("rxo-tcp", "the room in which its casts are tested, for cast"),
            ("rxo-testkit", "frames of attackers"),
            ("rxo-trace", "studies of captures, figures, costs"),
            ("rxo-wire", "the segments of that room"),
        ],
    ),
    layer("rxo-pages", 7, MAY_DO_IO, &[("rxo-cli", "its flags, as completions and manual pages")]),
    layer("xtask", 6, MAY_DO_IO, &[]),
];

/// Folder of the laboratory. Crates outside may not import crates from it, except in tests.
pub(crate) const LABORATORY: &str = "lab";

/// Crates that tests of every crate may use, besides the imports of the crate itself.
pub(crate) const FOR_TESTS: &[(&str, &str)] = &[
    ("rxo-testkit", "packets, traffic and the oracle"),
    ("rxo-peers", "Linux guests, tunnels of others"),
    ("rxo-testbed", "private networks with real Linux peers"),
];

/// Crates that no crate may import, whatever the rows permit.
pub(crate) const IMPORTED_BY_NOBODY: &[&str] = &[
    "rxo-capi",
    "rxo-py",
    "rxo-lab",
    "rxo-fuzz",
    "rxo-packetdrill",
    "rxo-pages",
    "rxo-tunnel",
    "xtask",
];

/// Imports that are forbidden at all levels and in all tables of the manifest.
pub(crate) const NEVER: &[(&str, &str, &str)] = &[
    ("rxo-tcp", "rxo-coalesce", "an aggregate reaches it as a segment with a payload chain"),
    ("rxo-coalesce", "rxo-tcp", "the engine knows segments, not connections"),
    ("rxo-device", "libc", "the operating system belongs to rxo-driver"),
    ("rxo-host", "libc", "the operating system belongs to rxo-driver"),
];

/// Packages that a crate must not depend on, directly or not, without its default features: crate, external
/// package, reason.
pub(crate) const LEAN: &[(&str, &str, &str)] = &[
    ("rxo", "flate2", "gzip comes with the feature `capture`"),
    ("rxo", "ruzstd", "zstd comes with the feature `capture`"),
    ("rxo", "etherparse", "ARP and ICMP come with the feature `host`"),
    ("rxo", "rustix", "sockets come with the feature `host`"),
    ("rxo", "io-uring", "the operating system comes with the feature `driver`"),
    ("rxo-capi", "flate2", "captures come with the feature `trace`, which makes librxo-trace"),
    ("rxo-capi", "serde_json", "reports come with the feature `trace`, which makes librxo-trace"),
    ("rxo-host", "tokio", "sockets for tasks come with the feature `tokio`"),
    ("rxo-host", "atomic-waker", "sockets for tasks come with the feature `tokio`"),
    ("rxo-host", "reed-solomon-simd", "the erasure code of casts comes with the feature `parity`"),
    ("rxo", "reed-solomon-simd", "the erasure code of casts comes with the feature `parity`"),
    ("rxo", "bytes", "frames in `Bytes` come with the feature `bytes`"),
    ("rxo", "tokio", "sockets for tasks come with the feature `tokio`"),
    ("rxo-cli", "parquet", "Parquet comes with the feature `parquet`"),
    ("rxo-cli", "arrow-array", "tables for Arrow come with the feature `parquet`"),
    ("rxo-device", "flate2", "implementing a sink needs no decompressor"),
    ("rxo-device", "ruzstd", "implementing a sink needs no decompressor"),
];

/// Files that may have `unsafe`: crate, path prefix inside it, reason.
pub(crate) const UNSAFE: &[(&str, &str, &str)] = &[
    ("rxo-wire", "src/arch/", "SIMD and prefetch instructions"),
    ("rxo-frame", "src/pool", "buffers that come back from any thread"),
    ("rxo-virtqueue", "src/memory", "memory shared with a guest"),
    ("rxo-capture", "src/filter/libpcap.rs", "calls libpcap"),
    ("rxo-driver", "", "system calls and memory-mapped rings"),
    ("rxo-coalesce", "tests/no_allocation/counting.rs", "an allocator that counts"),
    ("rxo-capi", "src/", "pointers of programs in C"),
    ("rxo-testbed", "src/sys", "namespaces and sockets"),
    (
        "rxo-confine",
        "tests/taken_over/raw.rs",
        "system calls as a program makes them that was taken over",
    ),
    ("rxo-bench", "src/contender/dpdk", "a rival written in C"),
    ("rxo-bench", "src/arch.rs", "flushes cache lines, so that packets are cold"),
];

/// Circles between top-level modules that still exist: crate, modules. No circle may be added.
pub(crate) const CIRCLES: &[(&str, &str)] = &[
    ("rxo-frame", "frame gather"),
    ("rxo-wire", "arch checksum ethernet flow ipv4 ipv6 offsets parse tcp tunnel udp"),
    ("rxo-device", "middleware source"),
    (
        "rxo-driver",
        "buffer device fault finding interface link_watch listener lock packet statistics tap vhost virtio virtio_net xdp",
    ),
    ("rxo-testbed", "link namespace"),
    ("rxo-host", "cast cell config fast ports post settings shard_openers shards socket worker"),
    ("rxo-tcp", "arrives config congestion connection receive recovery transmit"),
    ("rxo-trace", "advice projection report study sweep"),
];
