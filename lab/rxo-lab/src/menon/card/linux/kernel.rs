//! Assigns functions of a guest's kernel to the paper's categories for a guest (section 2.4).

/// Returns the category of a kernel function, by its name; the first row that fits counts.
pub(super) fn part(function: &str) -> &'static str {
    let plain = function.trim_start_matches('_');
    let fits = |(_, kind, names): &&(&str, Kind, &str)| match kind {
        Kind::Contains => names.split(' ').any(|name| function.contains(name)),
        Kind::Begins => names.split(' ').any(|name| plain.starts_with(name)),
    };
    PARTS.iter().find(fits).map_or("misc", |(part, ..)| part)
}

enum Kind {
    Contains,
    /// The name begins so, behind underscores.
    Begins,
}

const PARTS: [(&str, Kind, &str); 6] = [
    ("per-byte", Kind::Contains, "copy_user copy_to_iter copy_datagram rep_movs csum_partial"),
    (
        "netfront",
        Kind::Begins,
        "virtnet virtqueue virtio vring vp_ receive_buf receive_mergeable page_to_skb start_xmit xmit_skb \
         free_old_xmit skb_xmit_done try_fill_recv detach_buf",
    ),
    (
        "tcp tx",
        Kind::Contains,
        "xmit transmit tcp_send_ack tcp_options_write tcp_established_options select_window tcp_v4_send_check \
         tcp_cleanup_rbuf tcp_release_cb ip_output ip_finish_output ip_local_out ip_send_check qdisc fq_codel \
         netif_skb_features neigh",
    ),
    ("tcp rx", Kind::Begins, "tcp ip_ inet ipv4 fib_ sock_ sk_ bictcp"),
    (
        "non-proto",
        Kind::Contains,
        "netif_ napi net_rx softirq gro_ _gro eth_type_trans irq interrupt",
    ),
    ("buffer", Kind::Contains, "skb kmem kfree kmalloc slab page alloc free frag lru_add"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_has_the_part_of_its_name() {
        let rows = [
            ("_copy_to_iter", "per-byte"),
            ("virtqueue_get_buf_ctx_split", "netfront"),
            ("page_to_skb", "netfront"),
            ("start_xmit", "netfront"),
            ("__tcp_transmit_skb", "tcp tx"),
            ("__tcp_send_ack.part.0", "tcp tx"),
            ("ip_rcv_core", "tcp rx"),
            ("__inet_lookup_established", "tcp rx"),
            ("__netif_receive_skb_core.constprop.0", "non-proto"),
            ("dev_gro_receive", "non-proto"),
            ("skb_release_data", "buffer"),
            ("__alloc_pages", "buffer"),
            ("do_syscall_64", "misc"),
        ];
        for (function, expected) in rows {
            assert_eq!(part(function), expected, "{function}");
        }
    }
}
