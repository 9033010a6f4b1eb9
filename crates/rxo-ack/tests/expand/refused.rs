use rxo_ack::{AckNumbers, AckSlot, AckTemplate, IdRule, NoRoom, NotATemplate};
use rxo_frame::{ChecksumStatus, LinkKind};
use rxo_testkit::{Packet, arp, seg, udp};

fn refusal(packet: Packet) -> Option<NotATemplate> {
    let frame = packet.frame();
    AckTemplate::new(frame.borrowed(), LinkKind::Ethernet, &[], IdRule::Keep).err()
}

#[test]
fn what_is_no_pure_ack_is_no_template() {
    let ack = || seg().pure_ack();
    let refused = [
        seg(),
        udp(),
        arp(),
        ack().cut(5),
        ack().psh(),
        ack().fin(),
        ack().syn(),
        ack().rst(),
        ack().urg(),
        ack().no_ack(),
        ack().flags(0x210),
        ack().fragment(0, true),
        ack().already_aggregated(100),
    ];
    for packet in refused {
        assert_eq!(refusal(packet.clone()), Some(NotATemplate::NotAPureAck), "{packet:?}");
    }
    assert_eq!(refusal(ack()), None);
}

#[test]
fn only_the_timestamp_in_its_usual_place_is_taken() {
    let ack = || seg().pure_ack();
    for packet in [ack().sack(&[(1, 2)]), ack().ts_first(1, 2), ack().options(&[1, 1, 1, 1])] {
        assert_eq!(refusal(packet), Some(NotATemplate::Options));
    }
}

#[test]
fn what_does_not_fit_into_a_slot_is_refused() {
    let long = seg().pure_ack().ts(1, 2).ip_options(&[1; 40]);
    assert_eq!(refusal(long), Some(NotATemplate::TooLong));
    let late = seg().pure_ack().v6().extension(60, &[0; 6]).vlan(1).vlan(2);
    assert_eq!(refusal(late), Some(NotATemplate::TooLong));
    assert_eq!(refusal(seg().pure_ack().v6().ts(1, 2).vlan(1).vlan(2)), None);
}

#[test]
fn a_seed_elsewhere_is_refused() {
    let mut frame = seg().pure_ack().partial().frame();
    frame.checksum = ChecksumStatus::Partial { start: 14, offset: 10 };
    let made = AckTemplate::new(frame.borrowed(), LinkKind::Ethernet, &[], IdRule::Keep);
    assert_eq!(made.err(), Some(NotATemplate::Checksum));
}

#[test]
fn too_little_memory_is_an_error_and_untouched() {
    let frame = seg().pure_ack().frame();
    let later = [AckNumbers::default(); 3];
    let template =
        AckTemplate::new(frame.borrowed(), LinkKind::Ethernet, &later, IdRule::Keep).unwrap();
    let mut memory = [AckSlot::EMPTY; 3];
    let refused = template.expand(&mut memory).err();
    assert_eq!(refused, Some(NoRoom { needed: 4, given: 3 }));
    assert_eq!(format!("{memory:?}"), format!("{:?}", [AckSlot::EMPTY; 3]));
}
