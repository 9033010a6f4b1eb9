/*
 * DPDK's rte_gro behind six functions without DPDK types.
 *
 * The lightweight mode (rte_gro_reassemble_burst) keeps its tables on the stack and neither
 * allocates nor frees, so it needs no EAL, no huge pages and no mempool. What it does need is an
 * array of mbufs that lie in memory as a mempool lays them out: object header, mbuf, headroom,
 * data room. This file makes that array once; the timed part is gro_pass and nothing else.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <rte_gro.h>
#include <rte_mbuf_core.h>
#include <rte_mbuf_ptype.h>
#include <rte_net.h>
#include <rte_prefetch.h>

enum {
	OBJECT_HEADER = 64,
	HEADROOM = 128,
	DATA_ROOM = 2048,
	STRIDE = OBJECT_HEADER + sizeof(struct rte_mbuf) + HEADROOM + DATA_ROOM,
	BATCH_LIMIT = 128,
	LINE = 64,
};

/* What the caller does with a batch before it hands it over. */
enum gro_caller {
	CALLER_DOES_NOTHING,
	CALLER_PREFETCHES,
	CALLER_READS_TYPES,
};

struct gro_packets {
	uint8_t *memory;
	struct rte_mbuf **in_order;
	uint32_t count;
};

struct gro_lengths {
	uint32_t bytes;
	uint16_t link;
	uint16_t network;
	uint16_t transport;
	uint16_t is_tcp4;
};

struct gro_outcome {
	uint64_t deliveries;
	uint64_t frames;
	uint64_t touched;
};

static struct rte_mbuf *mbuf_at(const struct gro_packets *packets, uint32_t index)
{
	return (struct rte_mbuf *)(packets->memory + (size_t)index * STRIDE + OBJECT_HEADER);
}

void gro_free(struct gro_packets *packets)
{
	if (packets == NULL)
		return;
	free(packets->memory);
	free(packets->in_order);
	free(packets);
}

/* Memory for `count` packets, all zero; NULL when there is none. */
struct gro_packets *gro_new(uint32_t count)
{
	struct gro_packets *packets = calloc(1, sizeof(*packets));

	if (packets == NULL)
		return NULL;
	packets->count = count;
	packets->in_order = calloc(count, sizeof(*packets->in_order));
	packets->memory = aligned_alloc(LINE, (size_t)count * STRIDE);
	if (packets->in_order == NULL || packets->memory == NULL) {
		gro_free(packets);
		return NULL;
	}
	memset(packets->memory, 0, (size_t)count * STRIDE);
	return packets;
}

/* The first byte of a packet's data, for flushing its cache lines. */
const uint8_t *gro_data(const struct gro_packets *packets, uint32_t index)
{
	return rte_pktmbuf_mtod(mbuf_at(packets, index), const uint8_t *);
}

/*
 * Makes packet `index` what a driver hands over: bytes, lengths and packet type set. Returns 0
 * when `index` or the length is out of range.
 */
int gro_load(struct gro_packets *packets, uint32_t index, const uint8_t *bytes,
	     const struct gro_lengths *lengths)
{
	struct rte_mbuf *mbuf;

	if (index >= packets->count || lengths->bytes > DATA_ROOM)
		return 0;
	mbuf = mbuf_at(packets, index);
	memset(mbuf, 0, sizeof(*mbuf));
	mbuf->buf_addr = (uint8_t *)mbuf + sizeof(*mbuf);
	mbuf->buf_len = HEADROOM + DATA_ROOM;
	mbuf->data_off = HEADROOM;
	mbuf->refcnt = 1;
	mbuf->nb_segs = 1;
	mbuf->data_len = lengths->bytes;
	mbuf->pkt_len = lengths->bytes;
	mbuf->l2_len = lengths->link;
	mbuf->l3_len = lengths->network;
	mbuf->l4_len = lengths->transport;
	mbuf->packet_type = RTE_PTYPE_L2_ETHER;
	if (lengths->is_tcp4)
		mbuf->packet_type |= RTE_PTYPE_L3_IPV4 | RTE_PTYPE_L4_TCP;
	memcpy(rte_pktmbuf_mtod(mbuf, uint8_t *), bytes, lengths->bytes);
	packets->in_order[index] = mbuf;
	return 1;
}

static void prefetch_headers(struct rte_mbuf **batch, uint16_t count)
{
	for (uint16_t i = 0; i < count; i++) {
		const uint8_t *data = rte_pktmbuf_mtod(batch[i], const uint8_t *);

		rte_prefetch0(data);
		rte_prefetch0(data + LINE);
	}
}

/* What a driver does whose device does not say what a packet is. */
static void read_types(struct rte_mbuf **batch, uint16_t count)
{
	const uint32_t layers = RTE_PTYPE_L2_MASK | RTE_PTYPE_L3_MASK | RTE_PTYPE_L4_MASK;

	for (uint16_t i = 0; i < count; i++) {
		struct rte_net_hdr_lens lens = { 0 };

		batch[i]->packet_type = rte_net_get_ptype(batch[i], &lens, layers);
		batch[i]->l2_len = lens.l2_len;
		batch[i]->l3_len = lens.l3_len;
		batch[i]->l4_len = lens.l4_len;
	}
}

/* The timed part: every packet once, in batches; a batch is coalesced and delivered whole. */
void gro_pass(struct gro_packets *packets, uint16_t batch_frames, enum gro_caller caller,
	      struct gro_outcome *outcome)
{
	const struct rte_gro_param rules = {
		.gro_types = RTE_GRO_TCP_IPV4,
		.max_flow_num = BATCH_LIMIT,
		.max_item_per_flow = BATCH_LIMIT,
	};

	memset(outcome, 0, sizeof(*outcome));
	for (uint32_t first = 0; first < packets->count; first += batch_frames) {
		struct rte_mbuf *batch[BATCH_LIMIT];
		uint32_t left = packets->count - first;
		uint16_t count = left < batch_frames ? left : batch_frames;

		memcpy(batch, packets->in_order + first, count * sizeof(batch[0]));
		if (caller == CALLER_PREFETCHES)
			prefetch_headers(batch, count);
		if (caller == CALLER_READS_TYPES)
			read_types(batch, count);
		count = rte_gro_reassemble_burst(batch, count, &rules);
		outcome->deliveries += count;
		for (uint16_t i = 0; i < count; i++) {
			outcome->frames += batch[i]->nb_segs;
			outcome->touched += (uintptr_t)rte_pktmbuf_mtod(batch[i], uint8_t *);
		}
	}
}
