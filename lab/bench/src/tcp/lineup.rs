//! The races: their contenders and settings.

use clap::ValueEnum;
use serde::Serialize;

use super::floor::Floor;
use super::host::Hosted;
use super::rxo::{Rxo, Variant};
use super::smoltcp::Smoltcp;
use super::stack::{Reading, Setting, Stack};

/// The measured direction of a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Kind {
    /// The stack receives from the generator; its turns are timed.
    Receive,
    /// The stack sends to another stack of its kind; the turns of both are timed.
    EndToEnd,
}

/// The name of a race on the command line; `-checked` computes checksums in software, `-seen` reads in place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Name {
    Receive,
    ReceiveChecked,
    ReceiveSeen,
    ReceiveSeenChecked,
    Send,
    SendChecked,
    SendLarge,
    SendLargeSeen,
    /// A host with and without shards, with 400 or 10,000 connections.
    Shards,
    Menon,
    /// With 1 to 10,000 connections.
    Curve,
}

/// A comparison of contenders on one setting.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Race {
    pub(crate) name: Name,
    pub(crate) kind: Kind,
    pub(crate) checksums: bool,
    pub(crate) timestamps: bool,
    pub(crate) connections: u16,
    pub(crate) reading: Reading,
    /// `true` if GSO frames cross the link whole.
    pub(crate) takes_large: bool,
    pub(crate) contenders: &'static [Contender],
}

/// One stack in one configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Contender {
    Smoltcp,
    Rxo(Variant),
    /// The minimal copies of any stack, with almost no other work.
    Floor,
    /// `Offload`, `Stretch` or `Lent` with a complete host around it.
    Host(Variant),
    /// A host in two shards.
    Shards,
    /// `Host` on a device that says how much waits in its queue, as a packet socket does.
    Queued(Variant),
}

impl Contender {
    /// Returns the contender's name in tables.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Smoltcp => "smoltcp",
            Self::Floor => "no stack, its copies",
            Self::Host(Variant::Lent) => "rxo-host, lent",
            Self::Host(Variant::Stretch) => "rxo-host, stretch ACKs",
            Self::Host(_) => "rxo-host",
            Self::Shards => "two shards",
            Self::Queued(Variant::Lent) => "rxo-host, queue, lent",
            Self::Queued(_) => "rxo-host, queue",
            Self::Rxo(Variant::Original) => "rxo, original",
            Self::Rxo(Variant::LimitOne) => "rxo, limit 1",
            Self::Rxo(Variant::Aggregation) => "rxo, aggregation",
            Self::Rxo(Variant::Offload) => "rxo",
            Self::Rxo(Variant::Stretch) => "rxo, stretch ACKs",
            Self::Rxo(Variant::Lent) => "rxo, lent",
        }
    }

    pub(crate) fn stack(self, setting: Setting) -> Box<dyn Stack> {
        match self {
            Self::Smoltcp => Box::new(Smoltcp::new(setting)),
            Self::Floor => Box::new(Floor::new(setting)),
            Self::Host(variant) => Box::new(Hosted::new(setting, variant, 1)),
            Self::Shards => Box::new(Hosted::new(setting, Variant::Offload, 2)),
            Self::Queued(variant) => Box::new(Hosted::new(setting, variant, 1).with_queue()),
            Self::Rxo(variant) => Box::new(Rxo::new(setting, variant)),
        }
    }
}

const OFFLOAD: Contender = Contender::Rxo(Variant::Offload);
/// One ACK for everything that arrived together, as smoltcp sends it.
const STRETCH: Contender = Contender::Rxo(Variant::Stretch);
const HOST: Contender = Contender::Host(Variant::Offload);
const HOST_STRETCH: Contender = Contender::Host(Variant::Stretch);
/// Contenders of the comparison with smoltcp.
const STACKS: &[Contender] = &[Contender::Smoltcp, OFFLOAD, STRETCH, HOST, HOST_STRETCH];
/// Contenders for sending: the application copies its data, or lends it. The last is the lower bound of any
/// stack that copies.
const SENDING: &[Contender] = &[
    Contender::Smoltcp,
    OFFLOAD,
    STRETCH,
    HOST,
    HOST_STRETCH,
    Contender::Rxo(Variant::Lent),
    Contender::Host(Variant::Lent),
    Contender::Floor,
];
/// Contenders for sending without the lower bound, which computes no checksums.
const SENDING_CHECKED: &[Contender] = SENDING.split_at(SENDING.len() - 1).0;
/// Contenders of the comparison with smoltcp, with the lower bound of any stack.
const WITH_FLOOR: &[Contender] =
    &[Contender::Smoltcp, OFFLOAD, STRETCH, HOST, HOST_STRETCH, Contender::Floor];
/// Beside the rows with 400 connections.
const BESIDE: &[Contender] = &[OFFLOAD, HOST];
/// What it costs to be in shards.
const SHARDS: &[Contender] = &[HOST, Contender::Shards];
/// How the cost grows with the connections. Without a limit 10,000 windows wait in the link, which are gigabytes.
const CURVE: &[Contender] =
    &[Contender::Queued(Variant::Stretch), Contender::Queued(Variant::Lent)];
/// The steps of Menon 2008, figures 7, 11 and 12.
const STEPS: &[Contender] = &[
    Contender::Rxo(Variant::Original),
    Contender::Rxo(Variant::LimitOne),
    Contender::Rxo(Variant::Aggregation),
    OFFLOAD,
];

const ALONE: Race = Race {
    name: Name::Receive,
    kind: Kind::Receive,
    checksums: false,
    timestamps: false,
    connections: 1,
    reading: Reading::Copied,
    takes_large: false,
    contenders: WITH_FLOOR,
};
const SEEN: Race = Race { name: Name::ReceiveSeen, reading: Reading::InPlace, ..ALONE };
const PAIR: Race = Race { name: Name::Send, kind: Kind::EndToEnd, contenders: SENDING, ..ALONE };
/// Sending between guests, where GSO frames stay whole.
const GUESTS: Race = Race { name: Name::SendLarge, takes_large: true, ..PAIR };
const MANY: Race = Race { name: Name::Curve, contenders: CURVE, ..PAIR };
const MENON: Race = Race { name: Name::Menon, timestamps: true, contenders: STEPS, ..ALONE };

/// All races.
pub(crate) const RACES: [Race; 22] = [
    ALONE,
    Race { name: Name::ReceiveChecked, checksums: true, contenders: STACKS, ..ALONE },
    SEEN,
    Race { name: Name::ReceiveSeenChecked, checksums: true, contenders: STACKS, ..SEEN },
    PAIR,
    Race { name: Name::SendChecked, checksums: true, contenders: SENDING_CHECKED, ..PAIR },
    GUESTS,
    Race { name: Name::SendLargeSeen, reading: Reading::InPlace, contenders: STACKS, ..GUESTS },
    Race { name: Name::Shards, connections: 400, contenders: SHARDS, ..ALONE },
    Race { name: Name::Shards, connections: 400, contenders: SHARDS, ..PAIR },
    MENON,
    Race { checksums: true, ..MENON },
    Race { connections: 400, ..MENON },
    Race { connections: 10_000, contenders: BESIDE, ..MENON },
    Race { checksums: true, connections: 400, ..MENON },
    MANY,
    Race { connections: 4, ..MANY },
    Race { connections: 16, ..MANY },
    Race { connections: 64, ..MANY },
    Race { connections: 400, ..MANY },
    Race { connections: 2_000, ..MANY },
    Race { connections: 10_000, ..MANY },
];
