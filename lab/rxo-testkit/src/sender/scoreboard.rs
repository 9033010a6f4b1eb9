//! The scoreboard: ranges that SACK reports as arrived out of order.

/// Disjoint ranges beyond SND.UNA in order, and the number of duplicate reports.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scoreboard {
    /// Left and right edge of each range.
    pub ranges: Vec<(u32, u32)>,
    /// Number of reports of duplicate segments (RFC 2883).
    pub duplicates: u64,
}

impl Scoreboard {
    /// Processes the blocks of an ACK with number `ack`, in their order.
    pub(super) fn take(&mut self, blocks: &[(u32, u32)], ack: u32) {
        let is_duplicate = match blocks {
            [first, ..] if offset(first.1, ack) <= 0 => true,
            [first, second, ..] => contains(*second, *first),
            _ => false,
        };
        self.duplicates += u64::from(is_duplicate);
        self.ranges.extend(blocks.iter().skip(usize::from(is_duplicate)));
    }

    /// Removes acknowledged ranges, and joins adjacent ones.
    pub(super) fn advance(&mut self, una: u32) {
        let mut ranges: Vec<(i32, i32)> = self
            .ranges
            .iter()
            .map(|(left, right)| (offset(*left, una).max(0), offset(*right, una)))
            .filter(|(left, right)| left < right)
            .collect();
        ranges.sort_unstable();
        let mut joined: Vec<(i32, i32)> = Vec::new();
        for (left, right) in ranges {
            match joined.last_mut() {
                Some(last) if left <= last.1 => last.1 = last.1.max(right),
                _ => joined.push((left, right)),
            }
        }
        let place = |offset: i32| una.wrapping_add(offset as u32);
        self.ranges = joined.iter().map(|(left, right)| (place(*left), place(*right))).collect();
    }
}

/// Returns the signed distance from `from` to `edge`.
const fn offset(edge: u32, from: u32) -> i32 {
    edge.wrapping_sub(from) as i32
}

const fn contains(outer: (u32, u32), inner: (u32, u32)) -> bool {
    offset(inner.0, outer.0) >= 0 && offset(outer.1, inner.1) >= 0
}
