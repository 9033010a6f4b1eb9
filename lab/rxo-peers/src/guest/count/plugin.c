/* Counts the instructions of a guest: a plugin for QEMU, which calls it before each block of code that it
 * translated. The counts are in a file that another process may read at any time: see layout.rs.
 *
 * The declarations are those of QEMU's documentation ("QEMU TCG Plugins", API). Only functions are used
 * that all versions of the interface have. API is the version that the loader asks for.
 */
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

typedef uint64_t qemu_plugin_id_t;
struct qemu_plugin_tb;
typedef void (*translated_t)(qemu_plugin_id_t, struct qemu_plugin_tb *);
typedef void (*executed_t)(unsigned int, void *);

extern void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t, translated_t);
extern void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *, executed_t, int, void *);
extern size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *);
extern uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb *);

int qemu_plugin_version = API;

struct slot {
    uint64_t address;
    uint64_t instructions;
};

static struct {
    uint64_t total;
    uint64_t unused;
    struct slot slots[SLOTS];
} *counts;

/* The slots of user mode, and of blocks for which there is no other. */
enum { USER, ELSEWHERE, FIRST };
enum { PROBES = 64, INSTRUCTION_BITS = 16 };

/* The slot of the kernel's code at that address. A slot is never taken back. */
static uintptr_t slot_of(uint64_t address)
{
    if (!(address >> 63))
        return USER;
    uint64_t hash = address * 0x9e3779b97f4a7c15u >> 32;
    for (int probe = 0; probe < PROBES; probe++) {
        uintptr_t index = FIRST + (hash + probe) % (SLOTS - FIRST);
        struct slot *slot = &counts->slots[index];
        if (slot->address == 0)
            slot->address = address;
        if (slot->address == address)
            return index;
    }
    return ELSEWHERE;
}

static void executed(unsigned int processor, void *block)
{
    (void)processor;
    uint64_t instructions = (uintptr_t)block & ((1 << INSTRUCTION_BITS) - 1);
    counts->total += instructions;
    counts->slots[(uintptr_t)block >> INSTRUCTION_BITS].instructions += instructions;
}

static void translated(qemu_plugin_id_t id, struct qemu_plugin_tb *block)
{
    (void)id;
    uintptr_t slot = slot_of(qemu_plugin_tb_vaddr(block));
    uintptr_t instructions = qemu_plugin_tb_n_insns(block);
    void *data = (void *)(slot << INSTRUCTION_BITS | instructions);
    qemu_plugin_register_vcpu_tb_exec_cb(block, executed, 0, data);
}

int qemu_plugin_install(qemu_plugin_id_t id, const void *info, int argc, char **argv)
{
    (void)info;
    if (argc != 1 || strncmp(argv[0], "counts=", 7) != 0)
        return -1;
    int file = open(argv[0] + 7, O_RDWR | O_CLOEXEC);
    if (file < 0)
        return -1;
    counts = mmap(NULL, sizeof *counts, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (counts == MAP_FAILED)
        return -1;
    qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
    return 0;
}
