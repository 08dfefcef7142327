// Blocks and tasks for C++: tasks are lambdas, and the first exception that leaves one is thrown again at the end of its block.
//
//     ac::finish([&](ac_finish *block) {
//         ac::async(block, [&] { ... });
//     });
//
// DO_FINISH and ASYNC are made of the same. A task's exception never crosses into another task's frames: it is caught at the bottom of its
// stack and kept in the block.
#ifndef AC_LAMBDA_HPP
#define AC_LAMBDA_HPP

#include "run.h"
#include <exception>
#include <new>
#include <type_traits>
#include <utility>

namespace ac {

// A block together with what went wrong in it.
class block {
    ac_finish finish_;
    std::exception_ptr failed_;
    bool ended_ = false;

    friend struct task_access;

public:
    explicit block(uint32_t flags = 0) { ac_finish_begin(&finish_, flags); }
    block(const block &) = delete;
    block &operator=(const block &) = delete;

    ac_finish *address() { return &finish_; }

    // Waits for the tasks; throws what the first one threw that did.
    void end()
    {
        ended_ = true;
        ac_finish_end(&finish_);
        if (failed_)
            std::rethrow_exception(failed_);
    }

    // On the way out by an exception or `return`: waits for the tasks. What they throw is lost then, to the exception that is on its way.
    ~block()
    {
        if (!ended_)
            ac_finish_end(&finish_);
    }

    void keep(std::exception_ptr failed)
    {
        if (!failed_)
            failed_ = failed;
    }
};

struct task_access {
    // `finish_` is the first member of a class of standard layout.
    static block *of(ac_finish *finish) { return reinterpret_cast<block *>(finish); }
    static_assert(std::is_standard_layout<block>::value, "a block begins with its ac_finish");
};

namespace detail {
template <typename F> struct start {
    F function;
    ac_finish *finish;

    // The bottom of a task's stack. What is to be run is moved there first, because its maker goes on when the task suspends.
    static void run(void *argument)
    {
        start own(std::move(*static_cast<start *>(argument)));
        try {
            own.function();
        } catch (...) {
            task_access::of(own.finish)->keep(std::current_exception());
        }
    }
};
} // namespace detail

// Starts `function` as a task of the block, lazily. Throws std::bad_alloc if there is no memory for a stack.
template <typename F> AC_INLINE_ void async(ac_finish *finish, F &&function)
{
    detail::start<typename std::decay<F>::type> start{std::forward<F>(function), finish};
    if (ac_try_async(finish, &decltype(start)::run, &start) != 0)
        throw std::bad_alloc();
}

// The same, eagerly.
template <typename F> AC_INLINE_ void async_eager(ac_finish *finish, F &&function)
{
    detail::start<typename std::decay<F>::type> start{std::forward<F>(function), finish};
    ac_async_eager(finish, &decltype(start)::run, &start);
}

// Runs body(block), then waits until all that was started in the block has ended.
template <typename F> void finish(F &&body, uint32_t flags = 0)
{
    block scope(flags);
    std::forward<F>(body)(scope.address());
    scope.end();
}

} // namespace ac
#endif
