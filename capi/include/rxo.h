/*
 * librxo: receive offload in user space. Generated from the sources by cbindgen; do not edit.
 *
 *   rxo_engine *e = rxo_new("linux-gro", RXO_IP, 256);
 *   rxo_push(e, buf, len, now_ns, cookie);              for each frame that is there
 *   rxo_end_of_poll(e, now_ns);
 *   while (rxo_next(e, &d)) writev(tun, d.iov, d.niov); iov[0] is the virtio header
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

// It was done.
#define RXO_OK 0
// An argument is invalid: null, a length out of range, or a text that means nothing.
#define RXO_INVALID -1
// The engine has no room for another frame: end the poll, take deliveries and release them first. Each frame
// released makes room for one.
#define RXO_FULL -2
// The frame cannot be segmented; it goes as it is or not at all.
#define RXO_UNSUPPORTED -3
// The given room is too small. Nothing was taken; call again with more.
#define RXO_ROOM -4
// A file cannot be read or written.
#define RXO_IO -5
// There is a mistake in the library. The object refuses everything from now on; free it.
#define RXO_BROKEN -6
// Frames begin with an Ethernet header.
#define RXO_ETHERNET 0
// Frames begin with an IP header, as on a TUN.
#define RXO_IP 1
// Frames pushed by `rxo_push` have right checksums: do not verify them in software.
#define RXO_TRUST 2
// The virtio header has 12 bytes and a count of buffers (vhost), not 10 (TUN, TAP).
#define RXO_VIRTIO_12 4
// Merged TCP checksums are complete, for an output without offloads, and not left to the receiver.
#define RXO_COMPLETE 8
// The checksum was not verified; the engine does it before it merges.
#define RXO_CHECKSUM_UNKNOWN 0
// The device has verified it.
#define RXO_CHECKSUM_VERIFIED 1
// It is to be completed from `checksum_start` on, and written `checksum_offset` bytes behind that.
#define RXO_CHECKSUM_PARTIAL 2
// Not a GSO frame.
#define RXO_GSO_NONE 0
// TCP over IPv4.
#define RXO_GSO_TCP4 1
// TCP over IPv6.
#define RXO_GSO_TCP6 4
// UDP datagrams of equal size.
#define RXO_GSO_UDP 5
// A receive engine. It belongs to one thread at a time.
typedef struct rxo_engine rxo_engine;

// Cuts GSO frames into segments, one after the other. It belongs to one thread at a time.
typedef struct rxo_segmenter rxo_segmenter;

// The result of a study.
typedef struct rxo_study rxo_study;

// A frame as it was pushed.
typedef struct rxo_frame {
    // Its bytes.
    const uint8_t *data;
    // Their number.
    size_t len;
    // When it was pushed.
    uint64_t arrived_ns;
    // What was pushed with it.
    void *cookie;
} rxo_frame;

// One delivery: a frame as it came, or several coalesced into one.
typedef struct rxo_delivery {
    // Its pieces, for `writev`: `iov[0]` is the virtio header, `iov[1]` begins with the headers.
    const struct iovec *iov;
    // Number of pieces, at least 2.
    size_t niov;
    // Bytes of all pieces without the virtio header.
    size_t bytes;
    // The frames that it was made of, bit for bit, in order.
    const struct rxo_frame *frames;
    // Number of these frames.
    size_t nframes;
    // Payload bytes of each segment but the last, which may be shorter; 0 if it is not an aggregate.
    uint16_t gso_size;
    // Bytes of the merged headers in `iov[1]`, as many as each frame's own; 0 if it is not an aggregate.
    uint16_t header_bytes;
} rxo_delivery;

// What an engine has done. It may grow at its end.
typedef struct rxo_counters {
    // Frames taken.
    uint64_t frames;
    // Deliveries made, aggregates among them.
    uint64_t deliveries;
    // Frames that could have been coalesced but came alone.
    uint64_t singles;
    // Aggregates of two segments or more.
    uint64_t aggregates;
    // Segments in these.
    uint64_t aggregated_segments;
    // Frames that are not coalesced: not TCP, SYN, wrong checksum and so on.
    uint64_t bypassed;
} rxo_counters;

// What a virtio header says of a packet.
typedef struct rxo_vnet {
    // RXO_CHECKSUM_UNKNOWN and so on.
    uint8_t checksum;
    // RXO_GSO_NONE and so on.
    uint8_t gso;
    // Where a partial checksum begins, in bytes from the start of the packet.
    uint16_t checksum_start;
    // Where it is written, in bytes from there.
    uint16_t checksum_offset;
    // Payload bytes of each segment; 0 if it is not a GSO frame.
    uint16_t gso_size;
    // Bytes of all headers together; 0 if unknown. Only for `rxo_vnet_write`: what others say is not to be trusted.
    uint16_t header_bytes;
} rxo_vnet;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// What went wrong in the last call on this thread that failed: one line for a person. Valid until the next
// call on this thread; empty if none has failed.
const char *rxo_error(void);

// The version of the library, such as "0.1.0". Static.
const char *rxo_version(void);

// Makes an engine. `policy` is a profile and settings, such as "linux-gro" or "linux-gro max_segments=16
// udp=equal". `flags` are of RXO_IP, RXO_TRUST, RXO_VIRTIO_12, RXO_COMPLETE. `batch` is how many frames a
// poll brings at most (1 to 32768): twice as many frames, and those that the policy may hold, can be pushed
// and not yet released. All memory is allocated here. NULL on error: see `rxo_error`.
struct rxo_engine *rxo_new(const char *policy, uint32_t flags, size_t batch);

// Frees the engine. Buffers that were not released stay the caller's. NULL is nothing.
void rxo_free(struct rxo_engine *e);

// Gives the engine a frame of `len` bytes, which stays where it is and must not change until it is released.
// `now_ns` is a monotonic clock; `cookie` comes back with the frame. RXO_FULL if there is no room.
int rxo_push(struct rxo_engine *e, const uint8_t *frame, size_t len, uint64_t now_ns, void *cookie);

// `rxo_push` of a frame whose checksum the device has verified (RXO_CHECKSUM_VERIFIED) or not.
int rxo_push_checked(struct rxo_engine *e, const uint8_t *frame, size_t len, uint64_t now_ns, void *cookie, uint8_t checksum);

// Ends a poll: no more frames are there for the moment. What the policy does not hold is ready for `rxo_next`.
int rxo_end_of_poll(struct rxo_engine *e, uint64_t now_ns);

// For `hold=auto`, which holds while the receiver is busy: how many packets it has not taken yet of earlier
// deliveries, 0 if it is idle. Counts from the next call on; before the first report nothing is held.
int rxo_report_load(struct rxo_engine *e, uint32_t unread);

// When `rxo_on_timeout` is due: true, and the time in `at_ns`, while a policy holds frames beyond a poll.
bool rxo_poll_at(const struct rxo_engine *e, uint64_t *at_ns);

// Makes ready what has been held as long as the policy allows.
int rxo_on_timeout(struct rxo_engine *e, uint64_t now_ns);

// Makes ready everything, as before the program ends.
int rxo_flush(struct rxo_engine *e, uint64_t now_ns);

// The next delivery, in order; false if there is no more. What `d` points to is valid until `rxo_release`.
bool rxo_next(struct rxo_engine *e, struct rxo_delivery *d);

// Gives back the frames of all deliveries that `rxo_next` has shown, each by `give_back(cookie)`. NULL for
// `give_back`: the caller took the buffers from `rxo_delivery.frames`. Do it after every round of `rxo_next`.
void rxo_release(struct rxo_engine *e, void (*give_back)(void *cookie));

// What the engine has done. `size` is `sizeof(rxo_counters)`; a newer library fills what an older caller knows.
int rxo_count(const struct rxo_engine *e, struct rxo_counters *counters, size_t size);

// The reasons for which frames were bypassed and what was held was flushed, from `index` 0 on: the name, such as
// "bypass_psh" or "flush_end_of_poll", which is static, and how often. False if there are no more.
bool rxo_count_reason(const struct rxo_engine *e, size_t index, const char **name, uint64_t *count);

// Makes a segmenter. `flags` is RXO_ETHERNET or RXO_IP. NULL on error.
struct rxo_segmenter *rxo_segmenter_new(uint32_t flags);

// Frees the segmenter. NULL is nothing.
void rxo_segmenter_free(struct rxo_segmenter *s);

// Begins a frame of `len` bytes, which must stay until the last `rxo_segment_next`. Each segment has `gso_size`
// bytes of payload, the last the rest. Returns how many segments there are, or an error.
int rxo_segment(struct rxo_segmenter *s, const uint8_t *frame, size_t len, uint16_t gso_size);

// Begins a packet as a TUN or TAP gives it, behind a virtio header of 10 or 12 bytes: a GSO frame is segmented,
// a partial checksum is completed. The header's length of headers is not trusted. Returns as `rxo_segment`:
// RXO_INVALID if the header does not fit its packet (a kind of GSO that is unknown or not the packet's, no segment
// size, a checksum outside the packet), RXO_UNSUPPORTED if a GSO frame cannot be segmented.
int rxo_segment_vnet(struct rxo_segmenter *s, const uint8_t *header, size_t header_bytes, const uint8_t *packet, size_t len);

// Writes the next segment, headers and payload, to `out`. Returns its length in bytes; 0 if there is no more;
// RXO_ROOM if `room` is too small, and then the segment can be asked for again.
int rxo_segment_next(struct rxo_segmenter *s, uint8_t *out, size_t room);

// Reads a virtio header of `len` bytes, 10 or more. RXO_INVALID if it is shorter, or says that the packet is a GSO
// frame of an unknown kind or without a segment size.
int rxo_vnet_read(const uint8_t *header, size_t len, struct rxo_vnet *to);

// Writes the virtio header that says `vnet`, with 10 bytes (TUN, TAP) or 12 (vhost, one buffer).
int rxo_vnet_write(const struct rxo_vnet *vnet, uint8_t *header, size_t len);

// Completes a partial checksum in the packet, in place; does nothing if it is not partial. `len` is without padding.
int rxo_vnet_complete(const struct rxo_vnet *vnet, uint8_t *packet, size_t len);

// Studies what coalescing would do to the traffic in `count` captures (pcap or pcapng, plain, gzip or zstd).
// `policy` as for `rxo_new`; `poll` says when the host polls, such as "time:50us". A damaged capture counts up to
// the damage. NULL if an argument is invalid or no capture can be opened: see `rxo_error`.
struct rxo_study *rxo_analyze(const char *const *paths, size_t count, const char *policy, const char *poll);

// Frees the study. NULL is nothing.
void rxo_study_free(struct rxo_study *s);

// Packets in the captures.
uint64_t rxo_study_packets(const struct rxo_study *s);

// Packets that coalescing eliminates: packets less deliveries.
uint64_t rxo_study_eliminated(const struct rxo_study *s);

// The report as JSON, as `rxo analyze --json` prints it. Valid until the study is freed.
const char *rxo_study_json(const struct rxo_study *s);

// The report as text, as `rxo analyze` prints it. Valid until the study is freed.
const char *rxo_study_text(const struct rxo_study *s);

// Writes the report with its figures as one HTML file, which is complete or absent.
int rxo_study_html(const struct rxo_study *s, const char *path);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* RXO_H */
