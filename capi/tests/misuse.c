/* What the library refuses, what it bounds, and that it allocates nothing while it runs. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rxo.h>

#include "../examples/packets.h"

#define CHECK(what)                                                                     \
    do {                                                                                \
        if (!(what)) {                                                                  \
            fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #what, rxo_error()); \
            exit(1);                                                                    \
        }                                                                               \
    } while (0)

enum { BATCH = 8 };

static uint8_t packets[4 * BATCH][PACKET_BYTES];
static void *last_cookie;
static unsigned count;

static void give_back(void *cookie)
{
    last_cookie = cookie;
    count++;
}

static unsigned drain(rxo_engine *e)
{
    rxo_delivery d;
    unsigned frames = 0;

    while (rxo_next(e, &d)) {
        size_t bytes = 0;

        for (size_t piece = 1; piece < d.niov; piece++)
            bytes += d.iov[piece].iov_len;
        CHECK(bytes == d.bytes && d.nframes > 0);
        frames += (unsigned)d.nframes;
    }
    return frames;
}

static void arguments(void)
{
    rxo_engine *e = rxo_new("linux-gro", RXO_IP, BATCH);
    rxo_counters counters = {0};
    rxo_delivery d;
    uint64_t at;

    CHECK(e);
    CHECK(!rxo_new(NULL, RXO_IP, BATCH) && !rxo_new("lro", RXO_IP, BATCH));
    CHECK(strstr(rxo_error(), "there is no policy 'lro'"));
    CHECK(!rxo_new("linux-gro flows", RXO_IP, BATCH) && !rxo_new("linux-gro flows=0", RXO_IP, BATCH));
    CHECK(!rxo_new("linux-gro tunnels=on", RXO_IP, BATCH));
    CHECK(strstr(rxo_error(), "set tunnels=off"));
    CHECK(!rxo_new("linux-gro", 1u << 20, BATCH) && !rxo_new("linux-gro", RXO_IP, 0));
    CHECK(rxo_push(e, NULL, 10, 0, NULL) == RXO_INVALID);
    CHECK(rxo_push(NULL, packets[0], PACKET_BYTES, 0, NULL) == RXO_INVALID);
    CHECK(rxo_push(e, packets[0], (size_t)-1, 0, NULL) == RXO_INVALID);
    CHECK(rxo_push_checked(e, packets[0], PACKET_BYTES, 0, NULL, 9) == RXO_INVALID);
    CHECK(rxo_end_of_poll(NULL, 0) == RXO_INVALID && !rxo_next(NULL, &d) && !rxo_next(e, NULL));
    CHECK(!rxo_next(e, &d) && !rxo_poll_at(e, &at) && !rxo_poll_at(NULL, &at));
    CHECK(rxo_count(e, &counters, sizeof(counters) + 8) == RXO_INVALID);
    CHECK(rxo_count(e, &counters, 8) == RXO_OK && counters.deliveries == 0);
    rxo_release(NULL, give_back);
    rxo_release(e, give_back);
    rxo_free(NULL);
    rxo_free(e);
}

/* A text of rxo_error is still the same when one more call has failed. */
static void texts_survive_a_call(void)
{
    const char *first, *second;
    char kept[200];

    CHECK(!rxo_new("lro", RXO_IP, BATCH));
    first = rxo_error();
    snprintf(kept, sizeof(kept), "%s", first);
    CHECK(!rxo_new("linux-gro", RXO_IP, 0));
    second = rxo_error();
    CHECK(strcmp(first, kept) == 0 && strcmp(first, second) != 0);
}

/* A caller that does not take its deliveries is refused, and loses nothing. */
static void bounds(void)
{
    rxo_engine *e = rxo_new("linux-gro", RXO_IP, BATCH);
    unsigned pushed = 0;

    count = 0;
    while (pushed < 4 * BATCH && rxo_push(e, packets[pushed], PACKET_BYTES, pushed, packets[pushed]) == RXO_OK)
        pushed++;
    CHECK(pushed == 2 * BATCH);
    CHECK(rxo_push(e, packets[pushed], PACKET_BYTES, pushed, NULL) == RXO_FULL);
    CHECK(rxo_end_of_poll(e, 100) == RXO_OK);
    CHECK(rxo_push(e, packets[pushed], PACKET_BYTES, pushed, NULL) == RXO_FULL);
    CHECK(drain(e) == 2 * BATCH);
    rxo_release(e, give_back);
    CHECK(count == 2 * BATCH && last_cookie == packets[2 * BATCH - 1]);
    rxo_release(e, give_back);
    CHECK(count == 2 * BATCH);
    CHECK(rxo_push(e, packets[pushed], PACKET_BYTES, pushed, NULL) == RXO_OK);
    CHECK(rxo_flush(e, 200) == RXO_OK && drain(e) == 1);
    rxo_free(e);
}

static rxo_packet packet_at(unsigned index)
{
    uint8_t *bytes = packets[index % (4 * BATCH)];

    return (rxo_packet){.data = bytes, .len = PACKET_BYTES, .cookie = bytes};
}

/* Several at once: what is taken is counted, and the first that was not taken says why. */
static void many_at_once(void)
{
    rxo_engine *e = rxo_new("linux-gro", RXO_IP, BATCH);
    rxo_packet many[4 * BATCH];

    for (unsigned index = 0; index < 4 * BATCH; index++)
        many[index] = packet_at(index);
    CHECK(rxo_push_many(e, NULL, 0, 0) == 0 && rxo_push_many(e, many, 0, 0) == 0);
    CHECK(rxo_push_many(e, NULL, 3, 0) == RXO_INVALID && rxo_push_many(NULL, many, 3, 0) == RXO_INVALID);
    /* Every way to be invalid, first and behind others. */
    for (unsigned fault = 0; fault < 2; fault++) {
        rxo_packet wrong = many[3];

        if (fault == 0)
            many[3].data = NULL;
        else
            many[3].len = (size_t)-1;
        CHECK(rxo_push_many(e, many, 5, 0) == 3 && rxo_push_many(e, many + 3, 2, 0) == RXO_INVALID);
        many[3] = wrong;
        CHECK(rxo_push_many(e, many + 3, 2, 0) == 2);
        CHECK(rxo_end_of_poll(e, 0) == RXO_OK && drain(e) == 5);
        count = 0;
        rxo_release(e, give_back);
        CHECK(count == 5 && last_cookie == packets[4]);
    }
    CHECK(rxo_push_many(e, many, 4 * BATCH, 0) == 2 * BATCH);
    CHECK(rxo_push_many(e, many + 2 * BATCH, 2 * BATCH, 0) == RXO_FULL);
    CHECK(rxo_flush(e, 0) == RXO_OK && drain(e) == 2 * BATCH);
    rxo_release(e, NULL);
    CHECK(rxo_push_many(e, many, (size_t)-1, 0) == 2 * BATCH);
    rxo_free(e);
}

/* The packets that can be read from `fd`, each of which must be the next. */
static unsigned read_in_order(int fd, unsigned from)
{
    uint8_t bytes[10 + PACKET_BYTES];

    for (; read(fd, bytes, sizeof(bytes)) == (ssize_t)sizeof(bytes); from++)
        CHECK(memcmp(bytes + 10, packets[from % (4 * BATCH)], PACKET_BYTES) == 0);
    return from;
}

/* A descriptor without room keeps nobody waiting: what is left stays in order, and nothing is written twice. */
static void a_full_descriptor(void)
{
    rxo_engine *e = rxo_new("none", RXO_IP, BATCH);
    unsigned pushed = 0, got = 0, refused = 0;
    struct mallinfo2 before = {0};
    size_t written, all = 0;
    int fds[2];

    CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, fds) == 0);
    CHECK(setsockopt(fds[0], SOL_SOCKET, SO_SNDBUF, &(int){5000}, sizeof(int)) == 0);
    count = 0;
    for (unsigned round = 0; round < 1000; round++) {
        int code;

        for (rxo_packet next = packet_at(pushed); rxo_push_many(e, &next, 1, round) == 1; next = packet_at(pushed))
            pushed++;
        CHECK(pushed - count == 2 * BATCH);
        code = rxo_poll_writev(e, fds[0], round, give_back, &written);
        all += written;
        CHECK(code == RXO_AGAIN && written < 2 * BATCH && all == count);
        CHECK(all == 0 || last_cookie == packets[(all - 1) % (4 * BATCH)]);
        refused += written == 0;
        if (round % 2)
            got = read_in_order(fds[1], got);
        if (round == 10)
            before = mallinfo2();
    }
    CHECK(refused > 100 && got > 1000);
    CHECK(mallinfo2().uordblks <= before.uordblks + 200);
    while (rxo_poll_writev(e, fds[0], 1000, give_back, NULL) == RXO_AGAIN)
        got = read_in_order(fds[1], got);
    CHECK(read_in_order(fds[1], got) == pushed && count == pushed);
    close(fds[0]);
    close(fds[1]);
    rxo_free(e);
}

/* After an error the delivery is still there: the caller writes it elsewhere, or drops it. */
static void a_descriptor_that_refuses(void)
{
    rxo_engine *e = rxo_new("none", RXO_IP, BATCH);
    rxo_packet many[3];
    size_t written = 7;
    rxo_delivery d;
    int fds[2];

    for (unsigned index = 0; index < 3; index++)
        many[index] = packet_at(index);
    CHECK(rxo_poll_writev(NULL, 1, 0, give_back, &written) == RXO_INVALID && written == 0);
    CHECK(rxo_poll_writev(e, -1, 0, give_back, &written) == RXO_OK && written == 0);
    CHECK(rxo_push_many(e, many, 3, 0) == 3);
    count = 0;
    CHECK(rxo_poll_writev(e, -1, 0, give_back, &written) == RXO_IO && written == 0 && count == 0);
    CHECK(strstr(rxo_error(), "descriptor -1 refuses a packet of 1450 bytes"));
    CHECK(rxo_next(e, &d) && d.cookies[0] == packets[0]);
    rxo_release(e, give_back);
    CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, fds) == 0);
    CHECK(rxo_poll_writev(e, fds[0], 0, give_back, &written) == RXO_OK && written == 2 && count == 3);
    CHECK(read_in_order(fds[1], 1) == 3);
    close(fds[0]);
    close(fds[1]);
    rxo_free(e);
    /* A pipe does not keep packets apart: this one has room for a part. */
    e = rxo_new("linux-gro", RXO_IP, BATCH);
    CHECK(pipe(fds) == 0 && fcntl(fds[1], F_SETPIPE_SZ, 4096) > 0 && fcntl(fds[1], F_SETFL, O_NONBLOCK) == 0);
    CHECK(rxo_push_many(e, many, 3, 0) == 3);
    CHECK(rxo_poll_writev(e, fds[1], 0, give_back, &written) == RXO_IO && written == 0);
    CHECK(strstr(rxo_error(), "took 4096 of 4250 bytes") && drain(e) == 3);
    close(fds[0]);
    close(fds[1]);
    rxo_free(e);
}

/* What was released makes room at once, even if the caller never takes everything that is ready. */
static void released_frames_make_room(void)
{
    enum { MOST = 2 * BATCH, ROUNDS = 1000 };
    rxo_engine *e = rxo_new("none", RXO_IP, BATCH);
    struct mallinfo2 before = mallinfo2();
    unsigned pushed = 0;

    for (; pushed < MOST; pushed++)
        CHECK(rxo_push(e, packets[pushed], PACKET_BYTES, 0, packets[pushed]) == RXO_OK);
    CHECK(rxo_end_of_poll(e, 0) == RXO_OK);
    for (unsigned round = 0; round < ROUNDS; round++) {
        uint8_t *oldest = packets[round % (4 * BATCH)], *next = packets[pushed++ % (4 * BATCH)];
        rxo_delivery d;

        CHECK(rxo_next(e, &d) && d.nframes == 1 && d.niov == 2 && d.cookies[0] == oldest);
        CHECK(d.iov[0].iov_len == 10 && d.iov[1].iov_base == oldest && d.iov[1].iov_len == PACKET_BYTES);
        CHECK(rxo_push(e, next, PACKET_BYTES, round, next) == RXO_FULL);
        rxo_release(e, give_back);
        CHECK(last_cookie == oldest);
        CHECK(rxo_push(e, next, PACKET_BYTES, round, next) == RXO_OK && rxo_end_of_poll(e, round) == RXO_OK);
    }
    CHECK(drain(e) == MOST && mallinfo2().uordblks == before.uordblks);
    rxo_free(e);
}

/* What a delivery points to stays as it is while others become ready behind it. */
static void shown_deliveries_stay(void)
{
    rxo_engine *e = rxo_new("linux-gro", RXO_IP, BATCH);
    uint8_t header[HEADER_BYTES + 10];
    rxo_delivery d;
    unsigned pushed = 0;

    for (unsigned round = 0; round < 100; round++) {
        for (unsigned index = 0; index < 3; index++, pushed++)
            CHECK(rxo_push(e, packets[pushed % BATCH], PACKET_BYTES, 0, packets[pushed % BATCH]) == RXO_OK);
        CHECK(rxo_end_of_poll(e, 0) == RXO_OK && rxo_next(e, &d) && d.nframes > 0);
        memcpy(header, d.iov[0].iov_base, d.iov[0].iov_len);
        memcpy(header + 10, d.iov[1].iov_base, HEADER_BYTES);
        CHECK(rxo_push(e, packets[30], PACKET_BYTES, 0, packets[30]) == RXO_OK);
        CHECK(rxo_end_of_poll(e, 0) == RXO_OK);
        CHECK(memcmp(header, d.iov[0].iov_base, 10) == 0);
        CHECK(memcmp(header + 10, d.iov[1].iov_base, HEADER_BYTES) == 0);
        rxo_release(e, NULL);
        /* One or two of them are left behind, so that places are used again before everything was seen. */
        CHECK(rxo_next(e, &d));
        rxo_release(e, NULL);
        if (round % 5 == 4) {
            drain(e);
            rxo_release(e, NULL);
        }
    }
    rxo_free(e);
}

static void held_beyond_a_poll(void)
{
    rxo_engine *e = rxo_new("linux-gro hold=100us", RXO_IP, BATCH);
    uint64_t at = 0;

    CHECK(rxo_push(e, packets[0], PACKET_BYTES, 1000, NULL) == RXO_OK && rxo_end_of_poll(e, 1000) == RXO_OK);
    CHECK(drain(e) == 0 && rxo_poll_at(e, &at) && at == 101000);
    CHECK(rxo_on_timeout(e, at - 1) == RXO_OK && drain(e) == 0);
    CHECK(rxo_on_timeout(e, at) == RXO_OK && drain(e) == 1);
    rxo_free(e);
}

/* With hold=auto what the receiver has not taken yet decides; without that nothing is held. */
static void held_while_the_receiver_is_busy(void)
{
    rxo_engine *e = rxo_new("linux-gro hold=auto", RXO_IP, BATCH);
    unsigned frames = 0;
    uint64_t at = 0;

    CHECK(rxo_report_load(NULL, 1) == RXO_INVALID && rxo_report_load(e, 1) == RXO_OK);
    for (unsigned index = 0; index < 6; index += 2) {
        uint64_t now = 1000 * (1 + index);

        CHECK(rxo_push(e, packets[index], PACKET_BYTES, now, NULL) == RXO_OK);
        CHECK(rxo_push(e, packets[index + 1], PACKET_BYTES, now, NULL) == RXO_OK);
        CHECK(rxo_end_of_poll(e, now) == RXO_OK);
        /* How far apart polls are is known from the second on. */
        frames += drain(e);
        CHECK(index == 0 || rxo_poll_at(e, &at));
        rxo_release(e, NULL);
    }
    CHECK(frames < 6 && at > 5000);
    CHECK(rxo_report_load(e, 0) == RXO_OK && rxo_on_timeout(e, 6000) == RXO_OK);
    CHECK(drain(e) == 6 - frames);
    rxo_release(e, NULL);
    CHECK(rxo_push(e, packets[6], PACKET_BYTES, 7000, NULL) == RXO_OK);
    CHECK(rxo_push(e, packets[7], PACKET_BYTES, 7000, NULL) == RXO_OK);
    CHECK(rxo_end_of_poll(e, 7000) == RXO_OK && drain(e) == 2);
    rxo_free(e);
}

/* How often the reason with this name happened; -1 if there is none. */
static long times(const rxo_engine *e, const char *wanted)
{
    const char *name;
    uint64_t count;

    for (size_t index = 0; rxo_count_reason(e, index, &name, &count); index++)
        if (strcmp(name, wanted) == 0)
            return (long)count;
    return -1;
}

/* Every frame is in a sum of reasons. */
static void reasons(void)
{
    rxo_engine *e = rxo_new("linux-gro", RXO_IP, BATCH);
    static const uint8_t nothing[60];
    const char *name;
    uint64_t count, flushed = 0;

    for (unsigned index = 0; index < 3; index++)
        CHECK(rxo_push(e, packets[index], PACKET_BYTES, 0, NULL) == RXO_OK);
    CHECK(rxo_push(e, nothing, sizeof(nothing), 0, NULL) == RXO_OK);
    CHECK(rxo_end_of_poll(e, 0) == RXO_OK && drain(e) == 4);
    CHECK(times(e, "flush_end_of_poll") == 1 && times(e, "bypass_malformed") == 1);
    CHECK(times(e, "bypass_not_tcp") == 0 && times(e, "not_tcp") == -1);
    for (size_t index = 0; rxo_count_reason(e, index, &name, &count); index++)
        flushed += strncmp(name, "flush_", 6) == 0 ? count : 0;
    CHECK(flushed == 1);
    CHECK(!rxo_count_reason(e, 10000, &name, &count) && !rxo_count_reason(NULL, 0, &name, &count));
    CHECK(!rxo_count_reason(e, 0, NULL, &count) && !rxo_count_reason(e, 0, &name, NULL));
    rxo_free(e);
}

static void no_allocation(void)
{
    rxo_engine *e = rxo_new("linux-gro", RXO_IP | RXO_COMPLETE | RXO_VIRTIO_12, BATCH);
    struct mallinfo2 before = mallinfo2();

    for (unsigned round = 0; round < 1000; round++) {
        for (unsigned index = 0; index < BATCH; index++)
            CHECK(rxo_push(e, packets[index], PACKET_BYTES, round, NULL) == RXO_OK);
        CHECK(rxo_end_of_poll(e, round) == RXO_OK && drain(e) == BATCH);
        rxo_release(e, NULL);
    }
    CHECK(mallinfo2().uordblks == before.uordblks);
    rxo_free(e);
}

static void segments(void)
{
    rxo_segmenter *s = rxo_segmenter_new(RXO_IP);
    uint8_t out[PACKET_BYTES], header[12] = {0};
    rxo_vnet vnet = {.checksum = RXO_CHECKSUM_PARTIAL, .checksum_start = 20, .checksum_offset = 16};

    CHECK(!rxo_segmenter_new(7));
    CHECK(rxo_segment_next(s, out, sizeof(out)) == 0);
    CHECK(rxo_segment(s, packets[0], PACKET_BYTES, 0) == RXO_INVALID);
    CHECK(rxo_segment(s, header, sizeof(header), 100) == RXO_UNSUPPORTED);
    CHECK(rxo_segment(s, packets[0], PACKET_BYTES, 500) == 3);
    CHECK(rxo_segment_next(s, out, 500) == RXO_ROOM);
    CHECK(rxo_segment_next(s, out, 540) == 540 && rxo_segment_next(s, out, 540) == 540);
    CHECK(rxo_segment_next(s, out, 440) == 440 && rxo_segment_next(s, out, 440) == 0);
    CHECK(rxo_vnet_write(&vnet, header, 11) == RXO_INVALID && rxo_vnet_write(&vnet, header, 12) == RXO_OK);
    CHECK(rxo_vnet_read(header, 9, &vnet) == RXO_INVALID && rxo_vnet_read(header, 10, &vnet) == RXO_OK);
    CHECK(vnet.checksum == RXO_CHECKSUM_PARTIAL && vnet.checksum_start == 20);
    /* A GSO frame of a kind that nobody knows, and one of UDP that is TCP. */
    for (uint8_t kind = 2; kind <= RXO_GSO_UDP; kind += 3) {
        uint8_t other[12] = {0, kind};

        memcpy(other + 4, &(uint16_t){500}, 2);
        CHECK(rxo_segment_vnet(s, other, 12, packets[0], PACKET_BYTES) == RXO_INVALID);
        CHECK(rxo_segment_next(s, out, sizeof(out)) == 0);
        CHECK(rxo_vnet_read(other, 12, &(rxo_vnet){0}) == (kind == RXO_GSO_UDP ? RXO_OK : RXO_INVALID));
    }
    /* A seed in the field, as the kernel leaves it: completed it is what the packet had. */
    memcpy(out, packets[0], PACKET_BYTES);
    put_sum(out + 36, sum_of(out + 12, 8, 6 + PACKET_BYTES - 20));
    out[36] = (uint8_t)~out[36];
    out[37] = (uint8_t)~out[37];
    CHECK(rxo_segment_vnet(s, header, 12, out, PACKET_BYTES) == 1);
    {
        uint8_t whole[PACKET_BYTES];

        CHECK(rxo_segment_next(s, whole, sizeof(whole)) == PACKET_BYTES);
        CHECK(memcmp(whole, packets[0], PACKET_BYTES) == 0);
    }
    CHECK(rxo_vnet_complete(&vnet, out, PACKET_BYTES) == RXO_OK);
    CHECK(memcmp(out, packets[0], PACKET_BYTES) == 0);
    vnet.checksum_start = 0xffff;
    CHECK(rxo_vnet_complete(&vnet, out, PACKET_BYTES) == RXO_INVALID);
    rxo_segmenter_free(s);
}

int main(void)
{
    for (unsigned index = 0; index < 4 * BATCH; index++)
        make_segment(packets[index], 4000, index);
    arguments();
    texts_survive_a_call();
    bounds();
    many_at_once();
    a_full_descriptor();
    a_descriptor_that_refuses();
    released_frames_make_room();
    shown_deliveries_stay();
    held_beyond_a_poll();
    held_while_the_receiver_is_busy();
    reasons();
    no_allocation();
    segments();
    printf("librxo %s refuses what it must\n", rxo_version());
    return 0;
}
