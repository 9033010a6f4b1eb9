/*
 * A loop like that of DPDK's testpmd: mbufs come from a port, are coalesced, and leave by the same port as
 * chained mbufs. No payload is copied: the chain is made of the mbufs that came.
 *
 *   cc forward.c $(pkg-config --cflags --libs rxo libdpdk) -o forward
 *   ./forward --no-huge --no-pci --vdev net_pcap0,rx_pcap=in.pcap,tx_pcap=out.pcap -- "linux-gro max_bytes=9000"
 *
 * The policy is that of rxo_new. DPDK's pcap port cuts packets off at 9,728 bytes, hence the limit.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include <rxo.h>

enum { PORT = 0, BURST = 64, MBUFS = 4095, IDLE_POLLS = 1000 };

static void fail(const char *what, const char *why)
{
    fprintf(stderr, "%s: %s\n", what, why);
    exit(1);
}

static void start_port(struct rte_mempool *pool)
{
    struct rte_eth_conf conf = {0};

    if (rte_eth_dev_configure(PORT, 1, 1, &conf) != 0 ||
        rte_eth_rx_queue_setup(PORT, 0, 256, SOCKET_ID_ANY, NULL, pool) != 0 ||
        rte_eth_tx_queue_setup(PORT, 0, 256, SOCKET_ID_ANY, NULL) != 0 || rte_eth_dev_start(PORT) != 0)
        fail("the port", rte_strerror(rte_errno));
}

/* Nanoseconds of the processor's clock. */
static uint64_t now_ns(void)
{
    return (uint64_t)((double)rte_rdtsc() * 1e9 / (double)rte_get_tsc_hz());
}

/* The mbufs of a delivery as one packet: the merged headers in the first, payload alone in the others. */
static struct rte_mbuf *chained(const rxo_delivery *d)
{
    struct rte_mbuf *first = d->cookies[0];

    if (d->header_bytes == 0) {
        /* A frame as it came; or pure ACKs, of which the last speaks for all. */
        for (size_t index = 0; index + 1 < d->nframes; index++)
            rte_pktmbuf_free(d->cookies[index]);
        return d->cookies[d->nframes - 1];
    }
    memcpy(rte_pktmbuf_mtod(first, void *), d->iov[1].iov_base, d->header_bytes);
    for (size_t index = 0; index < d->nframes; index++) {
        struct rte_mbuf *next = d->cookies[index];
        uint16_t payload_bytes = (uint16_t)d->iov[2 + index].iov_len;
        uint16_t header_bytes = index == 0 ? d->header_bytes : 0;

        if (index > 0 && !rte_pktmbuf_adj(next, d->header_bytes))
            fail("a frame", "it is shorter than its headers");
        /* Ethernet pads short frames. */
        next->data_len = (uint16_t)(header_bytes + payload_bytes);
        next->pkt_len = next->data_len;
        if (index > 0 && rte_pktmbuf_chain(first, next) != 0)
            fail("a chain", "too many mbufs");
    }
    /* For a card that segments; this port takes the packet as it is, with a complete checksum. */
    first->tso_segsz = d->gso_size;
    return first;
}

static unsigned send_all(rxo_engine *e)
{
    unsigned sent = 0;
    rxo_delivery d;

    while (rxo_next(e, &d)) {
        struct rte_mbuf *packet = chained(&d);

        if (rte_eth_tx_burst(PORT, 0, &packet, 1) != 1)
            rte_pktmbuf_free(packet);
        else
            sent++;
    }
    /* The mbufs are in the chains now. */
    rxo_release(e, NULL);
    return sent;
}

int main(int argc, char **argv)
{
    struct rte_mbuf *burst[BURST];
    unsigned received = 0, sent = 0, idle = 0;

    int parsed = rte_eal_init(argc, argv);

    if (parsed < 0)
        fail("rte_eal_init", rte_strerror(rte_errno));
    struct rte_mempool *pool =
        rte_pktmbuf_pool_create("frames", MBUFS, 0, 0, RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
    const char *policy = argc - parsed > 1 ? argv[parsed + 1] : "linux-gro";
    rxo_engine *e = rxo_new(policy, RXO_ETHERNET | RXO_COMPLETE, BURST);

    if (!pool || !e)
        fail("start", pool ? rxo_error() : rte_strerror(rte_errno));
    start_port(pool);
    while (idle < IDLE_POLLS) {
        uint16_t count = rte_eth_rx_burst(PORT, 0, burst, BURST);
        uint64_t now = now_ns();

        for (uint16_t index = 0; index < count; index++) {
            struct rte_mbuf *m = burst[index];
            bool is_good = (m->ol_flags & RTE_MBUF_F_RX_L4_CKSUM_MASK) == RTE_MBUF_F_RX_L4_CKSUM_GOOD;

            if (rxo_push_checked(e, rte_pktmbuf_mtod(m, uint8_t *), m->data_len, now, m,
                                 is_good ? RXO_CHECKSUM_VERIFIED : RXO_CHECKSUM_UNKNOWN) != RXO_OK)
                fail("rxo_push_checked", rxo_error());
        }
        rxo_end_of_poll(e, now);
        sent += send_all(e);
        received += count;
        idle = count ? 0 : idle + 1;
    }
    rte_eth_dev_stop(PORT);
    rte_eth_dev_close(PORT);
    printf("%u mbufs came, %u packets left, %u mbufs are in use\n", received, sent,
           rte_mempool_in_use_count(pool));
    rxo_free(e);
    rte_eal_cleanup();
    return received > 0 && sent > 0 ? 0 : 1;
}
