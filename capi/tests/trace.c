/* Studies of captures: what is refused, and that a study can be watched and stopped. Give it a capture. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rxo-trace.h>

#define CHECK(what)                                                                     \
    do {                                                                                \
        if (!(what)) {                                                                  \
            fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #what, rxo_error()); \
            exit(1);                                                                    \
        }                                                                               \
    } while (0)

struct watch {
    unsigned calls;
    int stop;
};

static void watch(void *context, size_t index, uint64_t bytes, uint64_t all_bytes)
{
    struct watch *w = context;

    /* Once for the packets of each capture, which are few, and once at its end. */
    CHECK(index == w->calls / 2 && bytes > 0 && bytes <= all_bytes);
    w->calls++;
}

static void stop_at_once(void *context, size_t index, uint64_t bytes, uint64_t all_bytes)
{
    struct watch *w = context;

    (void)index, (void)bytes, (void)all_bytes;
    w->calls++;
    w->stop = 1;
}

static void refusals(void)
{
    const char *absent = "/no/where.pcap";
    rxo_analyze_options options = {.size = sizeof(options), .poll = "often"};

    CHECK(!rxo_analyze(&absent, 1, NULL) && strstr(rxo_error(), "cannot be opened"));
    CHECK(!rxo_analyze(&absent, 1, &options) && strstr(rxo_error(), "poll often is invalid"));
    options = (rxo_analyze_options){.size = sizeof(options), .policy = "lro"};
    CHECK(!rxo_analyze(&absent, 1, &options) && strstr(rxo_error(), "there is no policy 'lro'"));
    options.size = sizeof(options) + 8;
    CHECK(!rxo_analyze(&absent, 1, &options) && strstr(rxo_error(), "set size"));
    options.size = 0;
    CHECK(!rxo_analyze(&absent, 1, &options) && strstr(rxo_error(), "set size"));
    CHECK(!rxo_analyze(NULL, 0, NULL));
    CHECK(rxo_study_packets(NULL) == 0 && !rxo_study_partial(NULL));
    CHECK(rxo_study_html(NULL, "/no/where.html") == RXO_INVALID);
    rxo_study_free(NULL);
}

static void whole(const char *path)
{
    const char *paths[2] = {path, path};
    struct watch w = {0};
    rxo_analyze_options options = {.size = sizeof(options), .progress = watch, .context = &w, .stop = &w.stop};
    rxo_study *s = rxo_analyze(paths, 2, &options), *other;

    CHECK(s && !rxo_study_partial(s) && w.calls == 4);
    CHECK(rxo_study_packets(s) == 1600 && rxo_study_eliminated(s) > 0 && *rxo_study_text(s));
    /* A caller that was compiled before the later fields were added. */
    options = (rxo_analyze_options){.size = offsetof(rxo_analyze_options, stop), .policy = "none"};
    options.stop = (const int *)1;
    other = rxo_analyze(paths, 2, &options);
    CHECK(other && rxo_study_packets(other) == 1600 && rxo_study_eliminated(other) == 0);
    rxo_study_free(other);
    rxo_study_free(s);
}

/* What was read until then is in the study. */
static void stopped(const char *path)
{
    const char *paths[2] = {path, path};
    struct watch w = {0};
    rxo_analyze_options options = {
        .size = sizeof(options), .progress = stop_at_once, .context = &w, .stop = &w.stop};
    rxo_study *s = rxo_analyze(paths, 2, &options);

    CHECK(s && strstr(rxo_study_partial(s), "stopped") && strstr(rxo_study_json(s), "stopped"));
    CHECK(rxo_study_packets(s) > 0 && rxo_study_packets(s) < 1600 && w.calls <= 2);
    rxo_study_free(s);
    s = rxo_analyze(paths, 2, &options);
    CHECK(s && rxo_study_packets(s) == 0 && rxo_study_partial(s));
    rxo_study_free(s);
}

int main(int argc, char **argv)
{
    CHECK(argc == 2);
    refusals();
    whole(argv[1]);
    stopped(argv[1]);
    printf("librxo-trace %s studies %s\n", rxo_version(), argv[1]);
    return 0;
}
