/* Prints the layout of every structure in the header; `abi.txt` keeps it. */
#include <stddef.h>
#include <stdio.h>

#include <rxo-trace.h>

#define STRUCTURE(name) printf(#name " %zu\n", sizeof(name))
#define FIELD(name, field) \
    printf(#name "." #field " %zu %zu\n", offsetof(name, field), sizeof(((name *)0)->field))

int main(void)
{
    STRUCTURE(rxo_packet);
    FIELD(rxo_packet, data);
    FIELD(rxo_packet, len);
    FIELD(rxo_packet, cookie);
    STRUCTURE(rxo_delivery);
    FIELD(rxo_delivery, iov);
    FIELD(rxo_delivery, niov);
    FIELD(rxo_delivery, bytes);
    FIELD(rxo_delivery, cookies);
    FIELD(rxo_delivery, nframes);
    FIELD(rxo_delivery, gso_size);
    FIELD(rxo_delivery, header_bytes);
    STRUCTURE(rxo_counters);
    FIELD(rxo_counters, frames);
    FIELD(rxo_counters, deliveries);
    FIELD(rxo_counters, singles);
    FIELD(rxo_counters, aggregates);
    FIELD(rxo_counters, aggregated_segments);
    FIELD(rxo_counters, bypassed);
    STRUCTURE(rxo_vnet);
    FIELD(rxo_vnet, checksum);
    FIELD(rxo_vnet, gso);
    FIELD(rxo_vnet, checksum_start);
    FIELD(rxo_vnet, checksum_offset);
    FIELD(rxo_vnet, gso_size);
    FIELD(rxo_vnet, header_bytes);
    STRUCTURE(rxo_analyze_options);
    FIELD(rxo_analyze_options, size);
    FIELD(rxo_analyze_options, policy);
    FIELD(rxo_analyze_options, poll);
    FIELD(rxo_analyze_options, stop);
    FIELD(rxo_analyze_options, progress);
    FIELD(rxo_analyze_options, context);
    return 0;
}
