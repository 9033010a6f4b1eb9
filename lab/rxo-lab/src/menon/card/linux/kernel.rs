//! Assigns functions of a guest's kernel to the paper's categories.

use super::part::Part;

/// Returns the category of a kernel function, by its name.
pub(super) fn part(function: &str) -> Part {
    let is = |names: &[&str]| names.iter().any(|name| function.contains(name));
    let begins = |names: &[&str]| {
        let plain = function.trim_start_matches('_');
        names.iter().any(|name| plain.starts_with(name))
    };
    // The order matters: a name may match several lists, and the first match counts.
    match () {
        () if is(&COPIES) => Part::PerByte,
        () if begins(&CARD) => Part::Netfront,
        () if is(&TRANSMIT) => Part::TcpTx,
        () if begins(&PROTOCOL) => Part::TcpRx,
        () if is(&PASSING) => Part::NonProto,
        () if is(&MEMORY) => Part::Buffer,
        () => Part::Misc,
    }
}

const COPIES: [&str; 5] =
    ["copy_user", "copy_to_iter", "copy_datagram", "rep_movs", "csum_partial"];
const CARD: [&str; 14] = [
    "virtnet",
    "virtqueue",
    "virtio",
    "vring",
    "vp_",
    "receive_buf",
    "receive_mergeable",
    "page_to_skb",
    "start_xmit",
    "xmit_skb",
    "free_old_xmit",
    "skb_xmit_done",
    "try_fill_recv",
    "detach_buf",
];
const TRANSMIT: [&str; 17] = [
    "xmit",
    "transmit",
    "tcp_send_ack",
    "tcp_options_write",
    "tcp_established_options",
    "select_window",
    "tcp_v4_send_check",
    "tcp_cleanup_rbuf",
    "tcp_release_cb",
    "ip_output",
    "ip_finish_output",
    "ip_local_out",
    "ip_send_check",
    "qdisc",
    "fq_codel",
    "netif_skb_features",
    "neigh",
];
const PROTOCOL: [&str; 8] = ["tcp", "ip_", "inet", "ipv4", "fib_", "sock_", "sk_", "bictcp"];
const PASSING: [&str; 9] =
    ["netif_", "napi", "net_rx", "softirq", "gro_", "_gro", "eth_type_trans", "irq", "interrupt"];
const MEMORY: [&str; 10] =
    ["skb", "kmem", "kfree", "kmalloc", "slab", "page", "alloc", "free", "frag", "lru_add"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_has_the_part_of_its_name() {
        let rows = [
            ("copy_user_generic_string", Part::PerByte),
            ("_copy_to_iter", Part::PerByte),
            ("virtnet_poll", Part::Netfront),
            ("virtqueue_get_buf_ctx_split", Part::Netfront),
            ("page_to_skb", Part::Netfront),
            ("start_xmit", Part::Netfront),
            ("__tcp_transmit_skb", Part::TcpTx),
            ("__dev_queue_xmit", Part::TcpTx),
            ("__tcp_send_ack.part.0", Part::TcpTx),
            ("tcp_rcv_established", Part::TcpRx),
            ("ip_rcv_core", Part::TcpRx),
            ("__inet_lookup_established", Part::TcpRx),
            ("__netif_receive_skb_core.constprop.0", Part::NonProto),
            ("net_rx_action", Part::NonProto),
            ("dev_gro_receive", Part::NonProto),
            ("skb_release_data", Part::Buffer),
            ("kmem_cache_alloc_node", Part::Buffer),
            ("__alloc_pages", Part::Buffer),
            ("do_syscall_64", Part::Misc),
            ("?", Part::Misc),
        ];
        for (function, expected) in rows {
            assert_eq!(part(function), expected, "{function}");
        }
    }
}
