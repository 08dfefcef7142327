// Boost.Context's fibers, measured in their own language: each function does one batch and returns its ticks.
#include <boost/context/fiber.hpp>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <vector>
#include <x86intrin.h>

namespace ctx = boost::context;

static inline uint64_t now() {
    _mm_lfence();
    uint64_t ticks = __rdtsc();
    _mm_lfence();
    return ticks;
}

// Stacks of 64 KiB from a free list, as a run-time would keep them.
static constexpr size_t stack_bytes = 64 * 1024;
static std::vector<void*> free_stacks;

struct pooled_stack {
    ctx::stack_context allocate() {
        void* memory;
        if (free_stacks.empty()) {
            memory = std::malloc(stack_bytes);
            if (!memory) std::abort();
        } else {
            memory = free_stacks.back();
            free_stacks.pop_back();
        }
        ctx::stack_context stack;
        stack.size = stack_bytes;
        stack.sp = static_cast<char*>(memory) + stack_bytes;
        return stack;
    }
    void deallocate(ctx::stack_context& stack) {
        free_stacks.push_back(static_cast<char*>(stack.sp) - stack_bytes);
    }
};

extern "C" uint64_t ebb_boost_ring(size_t fibers, size_t rounds) {
    bool stop = false;
    std::vector<ctx::fiber> ring;
    for (size_t i = 0; i < fibers; i++)
        ring.emplace_back(std::allocator_arg, pooled_stack(), [&stop](ctx::fiber&& back) {
            while (!stop) back = std::move(back).resume();
            return std::move(back);
        });
    for (auto& fiber : ring) fiber = std::move(fiber).resume();
    uint64_t start = now();
    for (size_t round = 0; round < rounds; round++)
        for (auto& fiber : ring) fiber = std::move(fiber).resume();
    uint64_t ticks = now() - start;
    stop = true;
    for (auto& fiber : ring) fiber = std::move(fiber).resume();
    return ticks;
}

extern "C" uint64_t ebb_boost_create_empty(size_t operations) {
    uint64_t start = now();
    for (size_t i = 0; i < operations; i++) {
        ctx::fiber fiber(std::allocator_arg, pooled_stack(), [](ctx::fiber&& back) { return std::move(back); });
        fiber = std::move(fiber).resume();
    }
    return now() - start;
}

extern "C" uint64_t ebb_boost_create_suspend(size_t operations) {
    uint64_t start = now();
    for (size_t i = 0; i < operations; i++) {
        ctx::fiber fiber(std::allocator_arg, pooled_stack(), [](ctx::fiber&& back) {
            back = std::move(back).resume();
            return std::move(back);
        });
        fiber = std::move(fiber).resume();
        fiber = std::move(fiber).resume();
    }
    return now() - start;
}
