// A plugin of QEMU's that counts the instructions which a guest runs between two marks, in user mode and in the kernel.
//
//     -plugin windows.so,out=FILE[,profile=DIRECTORY]
//
// A mark is an instruction that does nothing, with a number in it that compilers do not use (`user/bench/mark.h`). For each pair of marks there is a line
// in FILE, `user<TAB>kernel`, and if asked for a file DIRECTORY/N with a line `address<TAB>instructions` for each block of the kernel's code that ran. A processor that waits runs nothing,
// so waiting for a device counts as little as it costs.
//
// What QEMU's plugin interface has (version 1, QEMU 4.2 to 8.1) is declared here, since distributions do not package its header.
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT int qemu_plugin_version = 1;

typedef uint64_t plugin_id;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
typedef void (*on_translation)(plugin_id id, struct qemu_plugin_tb *tb);
typedef void (*on_execution)(unsigned int vcpu, void *data);
enum { INLINE_ADD_U64 = 0, CB_NO_REGS = 0 };

void qemu_plugin_register_vcpu_tb_trans_cb(plugin_id id, on_translation callback);
void qemu_plugin_register_vcpu_tb_exec_inline(struct qemu_plugin_tb *tb, int operation, void *target, uint64_t value);
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *insn, on_execution callback, int flags, void *data);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb *tb);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *tb, size_t index);
const void *qemu_plugin_insn_data(const struct qemu_plugin_insn *insn);
size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *insn);

enum mark { BEGIN = 1, END = 2 };

// nopl disp32(%rax,%rax,1); the displacement's lowest byte says which mark it is.
static const unsigned char mark_start[] = { 0x0f, 0x1f, 0x84, 0x00 }, mark_end[] = { 0x00, 0xb0, 0xeb };

// Addresses from here on are the kernel's.
static const uint64_t KERNEL = (uint64_t)1 << 63;

static uint64_t user, kernel, user_before, kernel_before;
static FILE *output;
static const char *profiles;
static int windows;

// Code of the kernel that was translated as one; it stays here when QEMU has thrown the translation away.
struct block {
    uint64_t address, instructions;
    struct block *next;
};
static struct block *blocks;

static void write_profile(void)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%d", profiles, windows);
    FILE *file = fopen(path, "w");
    if (!file)
        return;
    for (struct block *block = blocks; block; block = block->next)
        if (block->instructions)
            fprintf(file, "%" PRIx64 "\t%" PRIu64 "\n", block->address, block->instructions);
    fclose(file);
}

static void on_mark(unsigned int vcpu, void *data)
{
    (void)vcpu;
    if ((uintptr_t)data == BEGIN) {
        user_before = user;
        kernel_before = kernel;
        for (struct block *block = blocks; block; block = block->next)
            block->instructions = 0;
        return;
    }
    fprintf(output, "%" PRIu64 "\t%" PRIu64 "\n", user - user_before, kernel - kernel_before);
    fflush(output);
    if (profiles)
        write_profile();
    windows++;
}

// Which mark an instruction is; 0 for none.
static uintptr_t mark_of(const struct qemu_plugin_insn *insn)
{
    const unsigned char *bytes = qemu_plugin_insn_data(insn);
    if (qemu_plugin_insn_size(insn) != 8 || memcmp(bytes, mark_start, sizeof mark_start) || memcmp(bytes + 5, mark_end, sizeof mark_end))
        return 0;
    return bytes[4] == BEGIN || bytes[4] == END ? bytes[4] : 0;
}

static void translated(plugin_id id, struct qemu_plugin_tb *tb)
{
    (void)id;
    size_t count = qemu_plugin_tb_n_insns(tb);
    bool in_kernel = qemu_plugin_tb_vaddr(tb) >= KERNEL;
    qemu_plugin_register_vcpu_tb_exec_inline(tb, INLINE_ADD_U64, in_kernel ? &kernel : &user, count);
    if (in_kernel && profiles) {
        struct block *block = calloc(1, sizeof *block);
        if (block) {
            block->address = qemu_plugin_tb_vaddr(tb);
            block->next = blocks;
            blocks = block;
            qemu_plugin_register_vcpu_tb_exec_inline(tb, INLINE_ADD_U64, &block->instructions, count);
        }
    }
    if (in_kernel)
        return;
    for (size_t i = 0; i < count; i++) {
        struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
        uintptr_t mark = mark_of(insn);
        if (mark)
            qemu_plugin_register_vcpu_insn_exec_cb(insn, on_mark, CB_NO_REGS, (void *)mark);
    }
}

EXPORT int qemu_plugin_install(plugin_id id, const void *info, int argc, char **argv)
{
    (void)info;
    for (int i = 0; i < argc; i++) {
        if (strncmp(argv[i], "out=", 4) == 0)
            output = fopen(argv[i] + 4, "w");
        else if (strncmp(argv[i], "profile=", 8) == 0)
            profiles = strdup(argv[i] + 8);
    }
    if (!output)
        return 1;
    qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
    return 0;
}
