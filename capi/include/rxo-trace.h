/*
 * librxo-trace: studies of captures. Generated from the sources by cbindgen; do not edit.
 *
 * It has all of librxo: link a program to one of them, not to both.
 */

#ifndef RXO_TRACE_H
#define RXO_TRACE_H
#include <rxo.h>

// The result of studying captures: the effect that coalescing would have.
typedef struct rxo_study rxo_study;

// The choices of `rxo_analyze`. Set all to 0 first, for what later versions append.
typedef struct rxo_analyze_options {
    // `sizeof(rxo_analyze_options)`.
    size_t size;
    // The policy, as for `rxo_new`; NULL is "linux-gro".
    const char *policy;
    // The rule for polls; NULL is "time:50us".
    const char *poll;
    // Reading ends soon after a thread or a signal handler has written anything but 0 there; or NULL. A wait for a
    // pipe is not ended: it lasts until the pipe has bytes or is closed.
    const int *stop;
    // Called with `context`, the index of the capture in `paths`, and how many of its bytes have been read,
    // of how many (0 if unknown), each time that 1024 packets were read; or NULL. It may set `*stop`.
    void (*progress)(void *context, size_t index, uint64_t bytes, uint64_t all_bytes);
    // The first argument of `progress`.
    void *context;
} rxo_analyze_options;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// Studies the effect of coalescing on the traffic in `count` captures (pcap or pcapng, plain, gzip or zstd).
// `options` may be NULL. A damaged capture is read up to the damage, and a stopped study has what was read so
// far: see `rxo_study_partial`. NULL if an argument is invalid or no capture can be opened: see `rxo_error`.
struct rxo_study *rxo_analyze(const char *const *paths, size_t count, const struct rxo_analyze_options *options);

// Frees the study. Does nothing if `s` is NULL.
void rxo_study_free(struct rxo_study *s);

// Number of packets in the captures.
uint64_t rxo_study_packets(const struct rxo_study *s);

// Number of packets that coalescing eliminates: packets minus deliveries.
uint64_t rxo_study_eliminated(const struct rxo_study *s);

// The reason why the study is incomplete, such as a damaged capture or `stop`; NULL if it is complete. Valid
// until the study is freed.
const char *rxo_study_partial(const struct rxo_study *s);

// The report as JSON, like the output of `rxo analyze --json`. Valid until the study is freed.
const char *rxo_study_json(const struct rxo_study *s);

// The report as text, like the output of `rxo analyze`. Valid until the study is freed.
const char *rxo_study_text(const struct rxo_study *s);

// Writes the report and its figures to an HTML file, which is never left incomplete.
int rxo_study_html(const struct rxo_study *s, const char *path);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* RXO_TRACE_H */
