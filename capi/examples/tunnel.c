/*
 * A tunnel's two directions without a network: packets that came from a peer are coalesced and written to
 * a TUN device; what is read from a TUN device is segmented. Here a pipe plays the TUN.
 *
 *   cc tunnel.c $(pkg-config --cflags --libs rxo) && ./a.out [CAPTURE]
 *
 * With a capture it also says what coalescing would do to it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <rxo.h>

#include "packets.h"

enum { PACKETS = 24, VIRTIO_BYTES = 10 };

static uint8_t packets[PACKETS][PACKET_BYTES];
static unsigned given_back;

static void fail(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, rxo_error());
    exit(1);
}

/* The engine needs the packet no more: a real tunnel puts its buffer back into a pool. */
static void give_back(void *cookie)
{
    (void)cookie;
    given_back++;
}

/* A packet as the kernel gives it: cut it into what the network carries, and compare with what came. */
static unsigned receive(rxo_segmenter *s, const uint8_t *bytes, size_t len, unsigned at)
{
    uint8_t segment[PACKET_BYTES];
    unsigned count = 0;
    int written;

    if (rxo_segment_vnet(s, bytes, VIRTIO_BYTES, bytes + VIRTIO_BYTES, len - VIRTIO_BYTES) < 0)
        fail("rxo_segment_vnet");
    while ((written = rxo_segment_next(s, segment, sizeof(segment))) > 0) {
        if (written != PACKET_BYTES || memcmp(segment, packets[at + count], PACKET_BYTES) != 0) {
            fprintf(stderr, "segment %u is not what was pushed\n", at + count);
            exit(1);
        }
        count++;
    }
    if (written < 0)
        fail("rxo_segment_next");
    return count;
}

static void study(const char *path)
{
    rxo_study *s = rxo_analyze(&path, 1, "linux-gro", "time:50us");

    if (!s)
        fail("rxo_analyze");
    printf("%s: %llu packets, %llu eliminated\n", path, (unsigned long long)rxo_study_packets(s),
           (unsigned long long)rxo_study_eliminated(s));
    rxo_study_free(s);
}

int main(int argc, char **argv)
{
    static uint8_t read_back[1 << 16];
    rxo_engine *e = rxo_new("linux-gro max_segments=16", RXO_IP, 256);
    rxo_segmenter *s = rxo_segmenter_new(RXO_IP);
    unsigned deliveries = 0, segments = 0;
    rxo_delivery d;
    int tun[2];

    if (!e || !s || pipe(tun) != 0)
        fail("start");
    for (unsigned index = 0; index < PACKETS; index++) {
        make_segment(packets[index], 4000, index);
        if (rxo_push(e, packets[index], PACKET_BYTES, 1000 * index, packets[index]) != RXO_OK)
            fail("rxo_push");
    }
    if (rxo_end_of_poll(e, 1000 * PACKETS) != RXO_OK)
        fail("rxo_end_of_poll");
    while (rxo_next(e, &d)) {
        ssize_t written = writev(tun[1], d.iov, (int)d.niov);
        ssize_t got = read(tun[0], read_back, sizeof(read_back));

        if (written < 0 || got != written || (size_t)written != VIRTIO_BYTES + d.bytes)
            fail("writev");
        segments += receive(s, read_back, (size_t)got, segments);
        deliveries++;
    }
    rxo_release(e, give_back);
    printf("%u packets in %u deliveries; %u segments came back, %u buffers\n", PACKETS, deliveries,
           segments, given_back);
    if (deliveries != 2 || segments != PACKETS || given_back != PACKETS)
        return 1;
    if (argc > 1)
        study(argv[1]);
    rxo_segmenter_free(s);
    rxo_free(e);
    close(tun[0]);
    close(tun[1]);
    return 0;
}
