/* Makes TCP segments over IPv4, so that the programs here need no network. */
#ifndef PACKETS_H
#define PACKETS_H

#include <stdint.h>
#include <string.h>

enum { HEADER_BYTES = 40, PAYLOAD_BYTES = 1400, PACKET_BYTES = HEADER_BYTES + PAYLOAD_BYTES };

static uint32_t sum_of(const uint8_t *bytes, size_t len, uint32_t sum)
{
    for (size_t at = 0; at < len; at++)
        sum += (uint32_t)bytes[at] << (at % 2 ? 0 : 8);
    return sum;
}

static void put_sum(uint8_t *to, uint32_t sum)
{
    while (sum >> 16)
        sum = (sum & 0xffff) + (sum >> 16);
    to[0] = (uint8_t)(~sum >> 8);
    to[1] = (uint8_t)~sum;
}

/* The segment number `index` of the flow from port `port`. */
static void make_segment(uint8_t *packet, uint16_t port, uint32_t index)
{
    static const uint8_t start[HEADER_BYTES] = {
        0x45, 0, PACKET_BYTES >> 8, PACKET_BYTES & 0xff, 0, 0, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, 1,
        10, 0, 0, 2, 0, 0, 1, 0xbb, 0, 0, 0, 0, 0, 0, 0, 1, 0x50, 0x10, 2, 0, 0, 0, 0, 0,
    };
    uint32_t seq = index * PAYLOAD_BYTES;
    uint16_t segment_bytes = PACKET_BYTES - 20;

    memcpy(packet, start, HEADER_BYTES);
    memset(packet + HEADER_BYTES, (int)(index + port), PAYLOAD_BYTES);
    packet[4] = (uint8_t)(index >> 8);
    packet[5] = (uint8_t)index;
    packet[20] = (uint8_t)(port >> 8);
    packet[21] = (uint8_t)port;
    for (int byte = 0; byte < 4; byte++)
        packet[24 + byte] = (uint8_t)(seq >> (24 - 8 * byte));
    put_sum(packet + 10, sum_of(packet, 20, 0));
    put_sum(packet + 36, sum_of(packet + 12, 8 + segment_bytes, 6u + segment_bytes));
}

#endif
