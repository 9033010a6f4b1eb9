/*
 * A tunnel's two directions without a network: packets that came from a peer are coalesced and written to
 * a TUN device; what is read from a TUN device is segmented. Here a pair of sockets plays the TUN.
 *
 *   cc tunnel.c $(pkg-config --cflags --libs rxo) && ./a.out
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rxo.h>

#include "packets.h"

enum { PACKETS = 24, VIRTIO_BYTES = 10 };

static uint8_t bytes[PACKETS][PACKET_BYTES];
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
static unsigned receive(rxo_segmenter *s, const uint8_t *packet, size_t len, unsigned at)
{
    uint8_t segment[PACKET_BYTES];
    unsigned count = 0;
    int written;

    if (rxo_segment_vnet(s, packet, VIRTIO_BYTES, packet + VIRTIO_BYTES, len - VIRTIO_BYTES) < 0)
        fail("rxo_segment_vnet");
    while ((written = rxo_segment_next(s, segment, sizeof(segment))) > 0) {
        if (written != PACKET_BYTES || memcmp(segment, bytes[at + count], PACKET_BYTES) != 0) {
            fprintf(stderr, "segment %u is not what was pushed\n", at + count);
            exit(1);
        }
        count++;
    }
    if (written < 0)
        fail("rxo_segment_next");
    return count;
}

int main(void)
{
    static uint8_t read_back[1 << 16];
    rxo_engine *e = rxo_new("linux-gro max_segments=16", RXO_IP, 256);
    rxo_segmenter *s = rxo_segmenter_new(RXO_IP);
    rxo_packet packets[PACKETS];
    unsigned segments = 0;
    size_t deliveries;
    int tun[2];

    if (!e || !s || socketpair(AF_UNIX, SOCK_SEQPACKET, 0, tun) != 0)
        fail("start");
    for (unsigned index = 0; index < PACKETS; index++) {
        make_segment(bytes[index], 4000, index);
        packets[index] = (rxo_packet){.data = bytes[index], .len = PACKET_BYTES, .cookie = bytes[index]};
    }
    if (rxo_push_many(e, packets, PACKETS, 1000) != PACKETS)
        fail("rxo_push_many");
    if (rxo_poll_writev(e, tun[1], 1000, give_back, &deliveries) != RXO_OK)
        fail("rxo_poll_writev");
    for (size_t index = 0; index < deliveries; index++) {
        ssize_t got = read(tun[0], read_back, sizeof(read_back));

        if (got < VIRTIO_BYTES)
            fail("read");
        segments += receive(s, read_back, (size_t)got, segments);
    }
    printf("%u packets in %zu deliveries; %u segments came back, %u buffers\n", PACKETS, deliveries,
           segments, given_back);
    if (deliveries != 2 || segments != PACKETS || given_back != PACKETS)
        return 1;
    rxo_segmenter_free(s);
    rxo_free(e);
    close(tun[0]);
    close(tun[1]);
    return 0;
}
