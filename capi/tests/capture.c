/* Writes a pcap file: four flows that send 200 segments each, eight in turn. */
#include <stdio.h>

#include "../examples/packets.h"

enum { FLOWS = 4, SEGMENTS = 200, IN_TURN = 8, ETHERNET_BYTES = 14 };

static void put(FILE *file, const void *bytes, size_t len)
{
    if (fwrite(bytes, len, 1, file) != 1)
        perror("fwrite");
}

int main(int argc, char **argv)
{
    static const uint32_t head[6] = {0xa1b2c3d4, 2 | 4 << 16, 0, 0, 65535, 1};
    uint8_t frame[ETHERNET_BYTES + PACKET_BYTES] = {2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0};
    FILE *file = argc == 2 ? fopen(argv[1], "wb") : NULL;

    if (!file)
        return 1;
    put(file, head, sizeof(head));
    for (uint32_t turn = 0; turn < SEGMENTS / IN_TURN; turn++)
        for (uint16_t flow = 0; flow < FLOWS; flow++)
            for (uint32_t index = 0; index < IN_TURN; index++) {
                uint32_t us = (turn * FLOWS + flow) * IN_TURN + index;
                uint32_t record[4] = {1767225600, us, sizeof(frame), sizeof(frame)};

                make_segment(frame + ETHERNET_BYTES, (uint16_t)(4000 + flow), turn * IN_TURN + index);
                put(file, record, sizeof(record));
                put(file, frame, sizeof(frame));
            }
    return fclose(file) == 0 ? 0 : 1;
}
