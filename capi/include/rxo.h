/*
 * librxo: receive offload in user space. Generated from the sources by cbindgen; do not edit.
 *
 *   rxo_engine *e = rxo_new("linux-gro", RXO_IP, 256);
 *   rxo_push_many(e, packets, count, now_ns);                    all frames that are there
 *   rxo_poll_writev(e, tun, now_ns, give_back, NULL);            each delivery with its virtio header
 *
 * or, for frames one by one, and another output than a descriptor:
 *
 *   rxo_push(e, buf, len, now_ns, cookie);
 *   rxo_end_of_poll(e, now_ns);
 *   while (rxo_next(e, &d)) send(d.iov, d.niov);                 iov[0] is the virtio header
 *   rxo_release(e, give_back);
 *
 * Functions that return int return 0 or more if they succeed, else one of the negative codes below;
 * rxo_error() says why, for a person. Nothing is copied, and after rxo_new the engine allocates nothing.
 */

#ifndef RXO_H
#define RXO_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

// The call succeeded.
#define RXO_OK 0
// An argument is invalid: null, a length out of range, or a string that cannot be parsed.
#define RXO_INVALID -1
// The engine cannot take another frame: end the poll, take deliveries and release them first. Each released
// frame makes space for one.
#define RXO_FULL -2
// The frame cannot be segmented. Send it as it is, or drop it.
#define RXO_UNSUPPORTED -3
// The output buffer is too small. Nothing was written; call again with a larger one.
#define RXO_ROOM -4
// A file cannot be read or written.
#define RXO_IO -5
// An internal error of the library. The object returns only errors from now on; free it.
#define RXO_BROKEN -6
// The descriptor takes nothing now: wait until it is writable, then make the same call again.
#define RXO_AGAIN -7
// Frames begin with an Ethernet header.
#define RXO_ETHERNET 0
// Frames begin with an IP header, as on a TUN device.
#define RXO_IP 1
// Frames pushed by `rxo_push` have right checksums: do not verify them in software.
#define RXO_TRUST 2
// The virtio header has 12 bytes, with a count of buffers (vhost), instead of 10 (TUN, TAP).
#define RXO_VIRTIO_12 4
// Merged TCP checksums are complete, for an output without offloads, instead of left to the receiver.
#define RXO_COMPLETE 8
// The checksum was not verified; the engine verifies it before it coalesces.
#define RXO_CHECKSUM_UNKNOWN 0
// The device has verified the checksum.
#define RXO_CHECKSUM_VERIFIED 1
// The checksum covers all from `checksum_start` to the end; it is written `checksum_offset` bytes after it.
#define RXO_CHECKSUM_PARTIAL 2
// The packet is not a GSO frame.
#define RXO_GSO_NONE 0
// The packet is a TCP GSO frame over IPv4.
#define RXO_GSO_TCP4 1
// The packet is a TCP GSO frame over IPv6.
#define RXO_GSO_TCP6 4
// The packet is a GSO frame of UDP datagrams of equal size.
#define RXO_GSO_UDP 5
// A receive engine. Use it from one thread at a time.
typedef struct rxo_engine rxo_engine;

// Splits GSO frames into segments. Use it from one thread at a time.
typedef struct rxo_segmenter rxo_segmenter;

// A frame for `rxo_push_many`. Its checksum is as `rxo_push` takes it.
typedef struct rxo_packet {
    // The bytes of the frame.
    const uint8_t *data;
    // The length of the frame in bytes.
    size_t len;
    // Returned with the frame.
    void *cookie;
} rxo_packet;

// One delivery: a single frame, or several frames coalesced into one.
typedef struct rxo_delivery {
    // The pieces, for `writev`: `iov[0]` is the virtio header, `iov[1]` begins with the packet's headers.
    const struct iovec *iov;
    // The number of pieces in `iov`, at least 2.
    size_t niov;
    // The number of bytes of all pieces, without the virtio header.
    size_t bytes;
    // The cookies of the original frames, in order. The frames themselves are as they were pushed.
    void *const *cookies;
    // The number of original frames.
    size_t nframes;
    // Payload bytes of each segment except the last, which may be shorter; 0 if this is not an aggregate.
    uint16_t gso_size;
    // Length of the merged headers in `iov[1]`, equal to that of each frame; 0 if this is not an aggregate.
    uint16_t header_bytes;
} rxo_delivery;

// Totals of an engine. Later versions may append fields.
typedef struct rxo_counters {
    // Frames processed.
    uint64_t frames;
    // Deliveries, including aggregates.
    uint64_t deliveries;
    // Frames that could have been coalesced but were delivered alone.
    uint64_t singles;
    // Aggregates, each of two or more segments.
    uint64_t aggregates;
    // Segments in all aggregates.
    uint64_t aggregated_segments;
    // Frames that are never coalesced: not TCP, SYN, wrong checksum and so on.
    uint64_t bypassed;
} rxo_counters;

// The content of a virtio header.
typedef struct rxo_vnet {
    // One of the RXO_CHECKSUM constants.
    uint8_t checksum;
    // One of the RXO_GSO constants.
    uint8_t gso;
    // The start of the bytes that a partial checksum covers, as an offset in the packet.
    uint16_t checksum_start;
    // The offset at which the checksum is written, from `checksum_start`.
    uint16_t checksum_offset;
    // The payload length of each segment in bytes; 0 if the packet is not a GSO frame.
    uint16_t gso_size;
    // Length of all headers in bytes; 0 if unknown. Used only by `rxo_vnet_write`; never trusted on input.
    uint16_t header_bytes;
} rxo_vnet;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// The error message of the last call on this thread that failed: one line for a person; empty if none has
// failed. The text stays as it is while one more call fails on this thread, and until a second one does.
const char *rxo_error(void);

// The version of the library, such as "0.1.0". A static string.
const char *rxo_version(void);

// Creates an engine. `policy` is a profile with settings, such as "linux-gro" or "linux-gro max_segments=16
// udp=equal". `flags` combines RXO_IP, RXO_TRUST, RXO_VIRTIO_12, RXO_COMPLETE. `batch` is the maximum number
// of frames per poll (1 to 32768): twice as many frames, and those that the policy may hold, can be pushed
// and not yet released. An aggregate has at most 1022 segments, so that `writev` takes it. All memory is
// allocated here. NULL on error: see `rxo_error`.
struct rxo_engine *rxo_new(const char *policy, uint32_t flags, size_t batch);

// Frees the engine. Buffers that were not released stay the caller's. Does nothing if `e` is NULL.
void rxo_free(struct rxo_engine *e);

// Passes a frame of `len` bytes to the engine. It is not copied and must not change until it is released.
// `now_ns` is a monotonic clock; `cookie` is returned with the frame. RXO_FULL if there is no space.
int rxo_push(struct rxo_engine *e, const uint8_t *frame, size_t len, uint64_t now_ns, void *cookie);

// Like `rxo_push`, with the state of the checksum: RXO_CHECKSUM_VERIFIED or RXO_CHECKSUM_UNKNOWN.
int rxo_push_checked(struct rxo_engine *e, const uint8_t *frame, size_t len, uint64_t now_ns, void *cookie, uint8_t checksum);

// Passes `count` frames to the engine, each as `rxo_push` does. `packets` itself is not needed afterwards.
// Returns how many were taken, from the first on; the others stay the caller's. If the first was not taken,
// returns RXO_FULL or RXO_INVALID; so call it again with the rest to learn why that was refused.
int rxo_push_many(struct rxo_engine *e, const struct rxo_packet *packets, size_t count, uint64_t now_ns);

// Ends a poll: no further frames are available now. All that the policy does not hold is ready for
// `rxo_next`.
int rxo_end_of_poll(struct rxo_engine *e, uint64_t now_ns);

// Reports how busy the receiver is, for `hold=auto`: the number of delivered packets that it has not read
// yet, or 0 if it is idle. Applies from the next call on; before the first report nothing is held.
int rxo_report_load(struct rxo_engine *e, uint32_t unread);

// True while frames are held beyond a poll; `at_ns` is then the time at which to call `rxo_on_timeout`.
bool rxo_poll_at(const struct rxo_engine *e, uint64_t *at_ns);

// Makes frames ready for `rxo_next` that were held for as long as the policy allows.
int rxo_on_timeout(struct rxo_engine *e, uint64_t now_ns);

// Makes all frames ready for `rxo_next`, for example before the program ends.
int rxo_flush(struct rxo_engine *e, uint64_t now_ns);

// Takes the next delivery, in order; false if there is none. What `d` points to is valid until
// `rxo_release`.
bool rxo_next(struct rxo_engine *e, struct rxo_delivery *d);

// Releases the frames of all deliveries that `rxo_next` has returned: calls `give_back(cookie)` for each.
// With NULL for `give_back`, use `rxo_delivery.cookies` instead. Call it after every round of
// `rxo_next`.
void rxo_release(struct rxo_engine *e, void (*give_back)(void *cookie));

// Ends a poll, and writes each delivery that is ready to `fd` with its virtio header: one `writev` each, in
// order. Releases the frames of those that were written, and of all that `rxo_next` has returned before, as
// `rxo_release` does; with NULL for `give_back`, only RXO_OK tells that all of them are free. Stores the number
// of written deliveries in `written`, unless it is NULL. RXO_OK if none is left. RXO_AGAIN if `fd` is non-blocking and has
// no room: wait until it is writable and call again. RXO_IO if `fd` refuses a delivery, or does not take it
// whole as a TUN or TAP does: `rxo_error` says why. After both, that delivery and those behind it are still
// ready: call again to write them, or drop them by `rxo_next` and `rxo_release`. Meanwhile frames can be
// pushed, until RXO_FULL.
int rxo_poll_writev(struct rxo_engine *e, int fd, uint64_t now_ns, void (*give_back)(void *cookie), size_t *written);

// Copies the totals of the engine. `size` is `sizeof(rxo_counters)`; no more bytes are written.
int rxo_count(const struct rxo_engine *e, struct rxo_counters *counters, size_t size);

// The reasons why frames were bypassed and aggregates were flushed, by `index` from 0 on: the static name,
// such as "bypass_psh" or "flush_end_of_poll", and the number of times. False if there is no such reason.
bool rxo_count_reason(const struct rxo_engine *e, size_t index, const char **name, uint64_t *count);

// Creates a segmenter. `flags` is RXO_ETHERNET or RXO_IP. NULL on error.
struct rxo_segmenter *rxo_segmenter_new(uint32_t flags);

// Frees the segmenter. Does nothing if `s` is NULL.
void rxo_segmenter_free(struct rxo_segmenter *s);

// Starts a frame of `len` bytes, which must stay valid until the last `rxo_segment_next`. Each segment has
// `gso_size` bytes of payload, except the last, which has the rest. Returns the number of segments, or an
// error.
int rxo_segment(struct rxo_segmenter *s, const uint8_t *frame, size_t len, uint16_t gso_size);

// Starts a packet from a TUN or TAP, which has a virtio header of 10 or 12 bytes: a GSO frame is segmented,
// a partial checksum is completed. The header length in it is not trusted. Returns the same as
// `rxo_segment`: RXO_INVALID if the header does not match its packet (an unknown kind of GSO or not that of
// the packet, no segment size, a checksum outside the packet), RXO_UNSUPPORTED if a GSO frame cannot be
// segmented.
int rxo_segment_vnet(struct rxo_segmenter *s, const uint8_t *header, size_t header_bytes, const uint8_t *packet, size_t len);

// Writes the next segment, headers and payload, to `out`. Returns its length in bytes; 0 if there are no
// more; RXO_ROOM if `room` is too small; the same segment can then be requested again.
int rxo_segment_next(struct rxo_segmenter *s, uint8_t *out, size_t room);

// Reads a virtio header of `len` bytes, 10 or more. RXO_INVALID if it is shorter, or describes a GSO frame
// of an unknown kind or without a segment size.
int rxo_vnet_read(const uint8_t *header, size_t len, struct rxo_vnet *to);

// Writes the virtio header for `vnet`, with 10 bytes (TUN, TAP) or 12 (vhost, one buffer).
int rxo_vnet_write(const struct rxo_vnet *vnet, uint8_t *header, size_t len);

// Completes a partial checksum in place; does nothing if it is not partial. `len` excludes padding.
int rxo_vnet_complete(const struct rxo_vnet *vnet, uint8_t *packet, size_t len);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* RXO_H */
