/* Exceptions: the run-time stack of handlers and regions, throwing, and the report of what nobody caught. */
#include "internal.h"
#include <stdio.h>
#include <stdlib.h>

__thread struct _cyc_frame *_cyc_top;

/* Where the exception that was thrown last came from. */
static __thread const char *thrown_file = "?";
static __thread unsigned thrown_line;

static int (*uncaught_function)(void);

const char _cyc_exn_Null_Exception[] = "Null_Exception";
const char _cyc_exn_Array_bounds[] = "Array_bounds";
const char _cyc_exn_Match_Exception[] = "Match_Exception";
const char _cyc_exn_Bad_alloc[] = "Bad_alloc";
const char _cyc_exn_Assert[] = "Assert";

struct exception {
  const char *tag;
};

static struct exception null_exception = {_cyc_exn_Null_Exception};
static struct exception array_bounds = {_cyc_exn_Array_bounds};
static struct exception match_exception = {_cyc_exn_Match_Exception};
static struct exception bad_alloc = {_cyc_exn_Bad_alloc};
static struct exception assert_exception = {_cyc_exn_Assert};

#if defined(__x86_64__) && defined(__LP64__)
_CYC_COLD void _cyc_restore(struct _cyc_context *);

/* The offsets are those of `struct _cyc_context`. `_cyc_save` keeps the stack pointer as it is after its return. */
__asm__(".text\n"
        ".globl _cyc_save\n.hidden _cyc_save\n.type _cyc_save, @function\n"
        "_cyc_save:\n"
        "  endbr64\n"
        "  movq %rbx, 0(%rdi)\n"
        "  movq %rbp, 8(%rdi)\n"
        "  movq %r12, 16(%rdi)\n"
        "  movq %r13, 24(%rdi)\n"
        "  movq %r14, 32(%rdi)\n"
        "  movq %r15, 40(%rdi)\n"
        "  leaq 8(%rsp), %rdx\n"
        "  movq %rdx, 48(%rdi)\n"
        "  movq (%rsp), %rdx\n"
        "  movq %rdx, 56(%rdi)\n"
        "  xorl %eax, %eax\n"
        "  ret\n"
        ".size _cyc_save, . - _cyc_save\n"
        ".globl _cyc_restore\n.hidden _cyc_restore\n.type _cyc_restore, @function\n"
        "_cyc_restore:\n"
        "  endbr64\n"
        "  movq 0(%rdi), %rbx\n"
        "  movq 8(%rdi), %rbp\n"
        "  movq 16(%rdi), %r12\n"
        "  movq 24(%rdi), %r13\n"
        "  movq 32(%rdi), %r14\n"
        "  movq 40(%rdi), %r15\n"
        "  movq 48(%rdi), %rsp\n"
        "  movl $1, %eax\n"
        "  jmp *56(%rdi)\n"
        ".size _cyc_restore, . - _cyc_restore\n");
#else
#define _cyc_restore(context) longjmp((context)->saved, 1)
#endif

/* AddressSanitizer marks parts of stack frames as not to be touched; frames that are jumped over cannot take their marks
   back. */
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SANITIZED
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(SANITIZED)
void __asan_handle_no_return(void);
#define forget_stack_marks() __asan_handle_no_return()
#else
#define forget_stack_marks() ((void)0)
#endif

/* Only some C libraries have these. */
int backtrace(void **addresses, int size) __attribute__((weak));
void backtrace_symbols_fd(void *const *addresses, int size, int fd) __attribute__((weak));

static void report_calls(void) {
  void *addresses[32];
  if (!backtrace || !backtrace_symbols_fd)
    return;
  int n = backtrace(addresses, 32);
  /* The first two are this function and the one that throws. */
  if (n > 2)
    backtrace_symbols_fd(addresses + 2, n - 2, 2);
}

static _CYC_COLD void report_uncaught(struct exception *exn) {
  int (*f)(void) = uncaught_function;
  /* What the function throws in turn is only reported. */
  uncaught_function = NULL;
  if (f)
    f();
  fflush(stdout);
  fprintf(stderr, "Uncaught exception %s thrown from around %s:%u\n", exn->tag, thrown_file, thrown_line);
  report_calls();
  exit(1);
}

static _CYC_COLD void throw_from(void *exn, const char *file, unsigned line) {
  thrown_file = file;
  thrown_line = line;
  struct _cyc_frame *frame = _cyc_top;
  while (frame && frame->release)
    frame = frame->below;
  /* Nothing is released where nobody catches: the report shows the stack as it was. */
  if (!frame)
    report_uncaught(exn);
  while ((frame = _cyc_top)->release) {
    _cyc_top = frame->below;
    frame->release(frame);
  }
  struct _cyc_handler *handler = (struct _cyc_handler *)frame;
  _cyc_top = frame->below;
  handler->exn = exn;
  forget_stack_marks();
  _cyc_restore(&handler->context);
}

void _cyc_unwind(unsigned n) {
  for (; n; n--) {
    struct _cyc_frame *frame = _cyc_top;
    _cyc_top = frame->below;
    if (frame->release)
      frame->release(frame);
  }
}

void _cyc_throw_at(void *exn, const char *file, unsigned line) { throw_from(exn, file, line); }
void _cyc_rethrow(void *exn) { throw_from(exn, thrown_file, thrown_line); }
void _cyc_throw_null_at(const char *file, unsigned line) { throw_from(&null_exception, file, line); }
void _cyc_throw_bounds_at(const char *file, unsigned line) { throw_from(&array_bounds, file, line); }
void _cyc_throw_match_at(const char *file, unsigned line) { throw_from(&match_exception, file, line); }
void _cyc_throw_alloc_at(const char *file, unsigned line) { throw_from(&bad_alloc, file, line); }
void _cyc_throw_assert_at(const char *file, unsigned line) { throw_from(&assert_exception, file, line); }

/* core.h */

_CYC_COLD void Cyc_Core_rethrow(void *exn);
void Cyc_Core_rethrow(void *exn) { _cyc_rethrow(exn); }

const char *Cyc_Core_get_exn_name(void *exn);
const char *Cyc_Core_get_exn_name(void *exn) { return ((struct exception *)exn)->tag; }

const char *Cyc_Core_get_exn_filename(void);
const char *Cyc_Core_get_exn_filename(void) { return thrown_file; }

int Cyc_Core_get_exn_lineno(void);
int Cyc_Core_get_exn_lineno(void) { return (int)thrown_line; }

void Cyc_Core_set_uncaught_exn_fun(int (*f)(void));
void Cyc_Core_set_uncaught_exn_fun(int (*f)(void)) { uncaught_function = f; }
