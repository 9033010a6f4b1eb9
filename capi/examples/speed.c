/*
 * How many frames a second the engine takes through librxo: polls of 64 segments of 1,400 bytes of one flow,
 * with and without verifying their checksums. `speed.rs` does it in Rust. `cargo xtask bench bindings` runs both. An
 * argument chooses what is measured, so that callgrind counts it alone: "verified" or "trusted".
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <rxo.h>

#include "packets.h"

enum { POLL = 64, POLLS = 20000 };

static uint8_t bytes[POLL][PACKET_BYTES];
static rxo_packet packets[POLL];

static uint64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* One poll: its frames in, its deliveries out. Returns how many packets the host gets. */
static unsigned poll(rxo_engine *e, uint64_t now)
{
    rxo_delivery d;
    unsigned deliveries = 0;

    if (rxo_push_many(e, packets, POLL, now) != POLL || rxo_end_of_poll(e, now) != RXO_OK)
        exit(1);
    while (rxo_next(e, &d))
        deliveries += d.bytes > 0;
    rxo_release(e, NULL);
    return deliveries;
}

static void measure(const char *name, uint32_t flags)
{
    rxo_engine *e = rxo_new("linux-gro", RXO_IP | flags, POLL);
    unsigned deliveries = 0;
    uint64_t start = now_ns();

    for (unsigned round = 0; round < POLLS; round++)
        deliveries += poll(e, round);
    if (deliveries != 2 * POLLS)
        exit(1);
    printf("%s\t%.0f\n", name, POLLS * (double)POLL * 1e9 / (double)(now_ns() - start));
    rxo_free(e);
}

int main(int argc, char **argv)
{
    const char *chosen = argc > 1 ? argv[1] : "";

    for (unsigned index = 0; index < POLL; index++) {
        make_segment(bytes[index], 4000, index);
        packets[index] = (rxo_packet){.data = bytes[index], .len = PACKET_BYTES, .cookie = bytes[index]};
    }
    if (strcmp(chosen, "trusted") != 0)
        measure("engine, checksums verified", 0);
    if (strcmp(chosen, "verified") != 0)
        measure("engine, checksums trusted", RXO_TRUST);
    return 0;
}
