// What QEMU's plugin counts instructions between: `tools/bench/plugin/windows.c`. A mark is an instruction that does nothing.
#pragma once

#define MARK(number) __asm__ volatile(".byte 0x0f, 0x1f, 0x84, 0x00, " #number ", 0x00, 0xb0, 0xeb" ::: "memory")
#define MARK_BEGIN() MARK(1)
#define MARK_END() MARK(2)
