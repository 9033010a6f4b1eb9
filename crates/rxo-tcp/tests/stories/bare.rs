//! What leaves while the owner has no room for text.

use crate::dsl::*;

/// Everything that leaves without room for text, a line each.
fn bare(scene: &mut Scene) -> Vec<String> {
    let iss = scene.iss();
    let mut lines = Vec::new();
    while let Some(transmit) = scene.tcp.poll_bare(scene.now) {
        lines.push(line(&transmit, iss));
    }
    lines
}

#[test]
fn an_acknowledgement_does_not_wait_for_the_text_that_would_carry_it() {
    let mut scene = Scene::established(plain());
    assert_eq!(scene.tcp.send(&[7; 500]), Ok(500));
    scene.gets(seg().len(MSS));
    scene.gets(seg().seq(1 + MSS).len(MSS));
    assert_eq!(bare(&mut scene), [". 1:1 ack 2001"]);
    assert!(scene.tcp.has_to_send(), "the text");
    assert_eq!(scene.out(), ["P. 1:501 ack 2001"]);
    assert!(!scene.tcp.has_to_send());
}

#[test]
fn lost_text_and_a_fin_wait_and_leave_when_there_is_room() {
    let mut scene = Scene::established(plain());
    assert_eq!(scene.sends(500), ["P. 1:501 ack 1"]);
    scene.tcp.shutdown().unwrap();
    for _ in 0..3 {
        scene.now = scene.tcp.poll_at().unwrap();
        scene.tcp.on_timeout(scene.now);
        assert_eq!(bare(&mut scene), [""; 0]);
    }
    assert!(scene.tcp.has_to_send());
    let said = scene.out();
    assert!(said.iter().any(|line| line.contains("1:501")), "{said:?}");
    let mut all = said;
    all.extend(scene.answers(seg().ack(501)));
    assert!(all.iter().any(|line| line.starts_with('F')), "{all:?}");
}

#[test]
fn a_reset_and_a_syn_leave() {
    let mut scene = Scene::established(plain());
    assert_eq!(scene.tcp.send(&[7; 500]), Ok(500));
    scene.tcp.abort();
    let said = bare(&mut scene);
    assert!(said.len() == 1 && said[0].starts_with('R'), "{said:?}");
    let mut scene = Scene::active(plain());
    let said = bare(&mut scene);
    assert!(said.len() == 1 && said[0].starts_with('S'), "{said:?}");
}
