//! Compares random traffic between a nic and guests with a table of the receivers of each frame.

use proptest::prelude::*;
use rxo::Policy;

use crate::world::{BROADCAST, Event, PEER, World, fixed, mac, plain};

const GUESTS: u8 = 4;

/// Generates sender, receiver and time of each frame; the number `GUESTS` stands for the peer, and the number
/// after it for all of them.
fn sends() -> impl Strategy<Value = Vec<(u8, u8, u64)>> {
    prop::collection::vec((0..=GUESTS, 0..=GUESTS + 1, 0..3_000_u64), 1..400)
}

proptest! {
    /// Each receiver gets all frames addressed to it, in the order in which each sender sent them, and
    /// nothing else.
    #[test]
    fn everybody_gets_what_is_theirs(sends in sends()) {
        let world = World::new(&fixed(GUESTS));
        let mut sends = sends;
        sends.sort_by_key(|(_, _, at)| *at);
        let mut expected = vec![Vec::new(); usize::from(GUESTS) + 1];
        let address = |who| match who {
            GUESTS => PEER,
            guest if guest < GUESTS => mac(guest),
            _ => BROADCAST,
        };
        for (n, (from, to, at)) in sends.into_iter().enumerate() {
            let text = [&[from][..], &(n as u32).to_be_bytes()].concat();
            let frame = plain(address(to), address(from), &text);
            world.at_us(at, match from {
                GUESTS => Event::FromNic(frame),
                guest => Event::FromGuest(guest.into(), frame),
            });
            for (who, texts) in expected.iter_mut().enumerate() {
                let who = who as u8;
                if who != from && (to == who || to > GUESTS) {
                    texts.push(text.clone());
                }
            }
        }
        let ended = world.run(Policy::linux_gro());
        let got = ended.to_guests.iter().chain([&ended.to_nic]);
        for (who, (got, expected)) in got.zip(&mut expected).enumerate() {
            let mut texts: Vec<_> = got.iter().map(|sent| sent.bytes[14..].to_vec()).collect();
            for from in 0..=GUESTS {
                let of = |texts: &[Vec<u8>]| -> Vec<Vec<u8>> {
                    texts.iter().filter(|text| text[0] == from).cloned().collect()
                };
                prop_assert_eq!(of(&texts), of(expected), "{} to {}", from, who);
            }
            texts.sort();
            expected.sort();
            prop_assert_eq!(texts, expected.clone());
        }
    }
}
