// Signals: queued ones arrive once each and in order, those of a thread in that thread, and of others the last is never lost.
#include "stress.h"

#define SENDERS 3
#define EACH 60

static atomic_int arrived[SENDERS];

static void on_queued(int number, siginfo_t *information, void *unused)
{
    (void)number;
    (void)unused;
    int sender = information->si_value.sival_int / 1000, turn = information->si_value.sival_int % 1000;
    HOLDS(sender >= 0 && sender < SENDERS, "a signal of sender %d", sender);
    if (sender < 0 || sender >= SENDERS)
        return;
    int due = atomic_fetch_add(&arrived[sender], 1);
    HOLDS(turn == due, "signal %d of sender %d came in place of %d", turn, sender, due);
}

static void catch_with(int number, void (*handler)(int, siginfo_t *, void *))
{
    struct sigaction action = { .sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_RESTART };
    MUST(sigaction(number, &action, NULL) == 0);
}

// Queued signals of one number arrive in the order in which they were sent.
static void queue_signals(int index)
{
    pid_t receiver = getppid();
    for (int i = 0; i < EACH; i++) {
        union sigval value = { .sival_int = index * 1000 + i };
        while (sigqueue(receiver, SIGRTMIN, value) != 0) {
            MUST(errno == EAGAIN);
            sched_yield();
        }
    }
}

static void queued_round(void)
{
    memset(arrived, 0, sizeof arrived);
    catch_with(SIGRTMIN, on_queued);
    processes(SENDERS, queue_signals);
    for (int i = 0; i < SENDERS; i++)
        WAIT_FOR(arrived[i] >= EACH, "%d of %d signals of sender %d", arrived[i], EACH, i);
    nap();
    for (int i = 0; i < SENDERS; i++)
        HOLDS(arrived[i] == EACH, "%d of %d signals of sender %d", arrived[i], EACH, i);
    count(SENDERS * EACH);
}

// Threads: each gets what is sent to it, and nothing else.
static atomic_int thread_ids[SENDERS], ready;

static void on_directed(int number, siginfo_t *information, void *unused)
{
    (void)number;
    (void)information;
    (void)unused;
    int self = (int)syscall(SYS_gettid);
    for (int i = 0; i < SENDERS; i++) {
        if (thread_ids[i] == self) {
            atomic_fetch_add(&arrived[i], 1);
            return;
        }
    }
    violation("a signal came to a thread that it was not sent to");
}

static void send_or_receive(int index)
{
    if (index < SENDERS) {
        thread_ids[index] = (int)syscall(SYS_gettid);
        atomic_fetch_add(&ready, 1);
        WAIT_FOR(arrived[index] >= EACH, "%d of %d signals of thread %d", arrived[index], EACH, index);
        return;
    }
    // The sender gets none, and those who receive do not end before they have all.
    while (ready < SENDERS)
        sched_yield();
    for (int i = 0; i < EACH; i++) {
        for (int thread = 0; thread < SENDERS; thread++) {
            while (syscall(SYS_tgkill, getpid(), thread_ids[thread], SIGRTMIN + 1) != 0) {
                MUST(errno == EAGAIN);
                sched_yield();
            }
        }
    }
}

static void directed_round(void)
{
    memset(arrived, 0, sizeof arrived);
    ready = 0;
    catch_with(SIGRTMIN + 1, on_directed);
    threads(SENDERS + 1, send_or_receive);
    for (int i = 0; i < SENDERS; i++)
        HOLDS(arrived[i] == EACH, "%d of %d signals of thread %d", arrived[i], EACH, i);
    count(SENDERS * EACH);
}

// Signals that are not queued: any number may become one, but after the last one was sent one arrives.
static struct {
    atomic_int sent, seen, handled;
} *last;

static void on_plain(int number, siginfo_t *information, void *unused)
{
    (void)number;
    (void)information;
    (void)unused;
    atomic_store(&last->seen, atomic_load(&last->sent));
    atomic_fetch_add(&last->handled, 1);
}

static void send_plain(int index)
{
    (void)index;
    pid_t receiver = getppid();
    for (int i = 0; i < EACH; i++) {
        atomic_fetch_add(&last->sent, 1);
        MUST(kill(receiver, SIGUSR1) == 0);
        if (any(4) == 0)
            sched_yield();
    }
}

static void plain_round(void)
{
    last = shared_memory(PAGE);
    catch_with(SIGUSR1, on_plain);
    processes(2, send_plain);
    WAIT_FOR(last->seen == 2 * EACH, "the last signal was lost: %d of %d", last->seen, 2 * EACH);
    HOLDS(last->handled <= 2 * EACH, "%d signals became %d", 2 * EACH, last->handled);
    munmap(last, PAGE);
    count(2 * EACH);
}

// A signal that is blocked is taken by who waits for it: by one of all threads, once.
static atomic_int taken;

static void take_or_send(int index)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGRTMIN + 2);
    if (index == 0) {
        for (int i = 0; i < EACH; i++) {
            while (sigqueue(getpid(), SIGRTMIN + 2, (union sigval){ .sival_int = i }) != 0) {
                MUST(errno == EAGAIN);
                sched_yield();
            }
        }
        return;
    }
    while (taken < EACH) {
        // Not for ever: another thread may take the last one.
        int got = sigtimedwait(&set, NULL, &(struct timespec){ 0, 500000 });
        if (got > 0)
            atomic_fetch_add(&taken, 1);
        else
            MUST(errno == EAGAIN || errno == EINTR);
    }
}

static void waited_round(void)
{
    taken = 0;
    sigset_t set, before;
    sigemptyset(&set);
    sigaddset(&set, SIGRTMIN + 2);
    MUST(sigprocmask(SIG_BLOCK, &set, &before) == 0);
    threads(3, take_or_send);
    HOLDS(taken == EACH, "%d of %d signals were taken", taken, EACH);
    HOLDS(sigtimedwait(&set, NULL, &(struct timespec){ 0, 0 }) == -1 && errno == EAGAIN, "a signal is left");
    MUST(sigprocmask(SIG_SETMASK, &before, NULL) == 0);
    count(EACH);
}

// Signals that are blocked wait through an execution, which they meet anywhere.
static void pending_round(void)
{
    sigset_t set, before;
    sigemptyset(&set);
    sigaddset(&set, SIGRTMIN + 3);
    MUST(sigprocmask(SIG_BLOCK, &set, &before) == 0);
    pid_t pid = fork();
    MUST(pid >= 0);
    if (pid == 0) {
        char number[8];
        snprintf(number, sizeof number, "%d", EACH);
        execl("/proc/self/exe", "stress", "--pending", number, NULL);
        _exit(100);
    }
    MUST(sigprocmask(SIG_SETMASK, &before, NULL) == 0);
    for (int i = 0; i < EACH; i++) {
        while (sigqueue(pid, SIGRTMIN + 3, (union sigval){ .sival_int = i }) != 0) {
            MUST(errno == EAGAIN);
            sched_yield();
        }
        if (any(8) == 0)
            sched_yield();
    }
    int status = status_of(pid);
    HOLDS(status == 0, "signals across an execution: status %#x", status);
    count(EACH);
}

// What `pending_round` executes: takes that many signals, in their order, and no more.
int take_pending(int number)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGRTMIN + 3);
    for (int i = 0; i < number; i++) {
        siginfo_t information;
        if (sigtimedwait(&set, &information, &(struct timespec){ 60, 0 }) < 0)
            return 1;
        if (information.si_value.sival_int != i)
            return 2;
    }
    return sigtimedwait(&set, NULL, &(struct timespec){ 0, 0 }) == -1 ? 0 : 3;
}

const struct family signal_families[] = {
    { "queued-signals", queued_round },
    { "signals-of-threads", directed_round },
    { "plain-signals", plain_round },
    { "waited-signals", waited_round },
    { "pending-signals", pending_round },
    { NULL, NULL },
};
