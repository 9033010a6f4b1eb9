//! The program as `wg` and `wg-quick` drive it, between private networks. The sockets are in a `/run` of this
//! process alone.
#![allow(clippy::unwrap_used, reason = "tests, which the lint does not see without the harness")]

mod background;
#[path = "../common/mod.rs"]
mod common;
mod ecn;
mod life;
#[path = "../common/node.rs"]
mod node;
mod peers;
mod quick;
mod settings;

use std::process::ExitCode;

use libtest_mimic::Trial;

fn main() -> ExitCode {
    let tests: [(&str, fn()); 13] = [
        ("wg_shows_what_wg_has_set", settings::what_is_set_is_shown),
        ("wg_syncconf_changes_only_what_differs", settings::sync_changes_only_what_differs),
        ("a_port_in_use_is_refused_and_the_old_one_stays", settings::a_port_in_use_is_refused),
        ("clients_that_say_nothing_delay_nobody", settings::silent_clients_delay_nobody),
        ("each_of_two_peers_has_its_own_addresses", peers::each_has_its_own_addresses),
        ("a_peer_that_moves_is_answered_where_it_is", peers::a_peer_moves),
        ("a_larger_mtu_is_followed", peers::a_larger_mtu_is_followed),
        ("a_peer_is_removed_while_it_sends_and_comes_back", peers::a_peer_is_removed),
        ("marks_of_the_way_reach_the_packet_inside", ecn::marks_reach_the_packet_inside),
        ("it_runs_in_the_background_until_interface_or_socket_is_gone", life::background),
        ("a_variable_keeps_it_in_the_foreground", life::a_variable_keeps_it_in_the_foreground),
        ("a_socket_that_was_left_behind_is_replaced", life::a_socket_left_behind_is_replaced),
        ("wg_quick_takes_all_traffic_and_gives_it_back", quick::takes_all_and_gives_it_back),
    ];
    node::prepare();
    common::run(
        tests
            .map(|(name, test)| {
                Trial::test(name, move || {
                    test();
                    Ok(())
                })
            })
            .into(),
    )
}
