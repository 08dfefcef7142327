#include "check.h"

static const char exn_Other[] = "Other";
static struct { const char *tag; int payload; } other = {exn_Other, 42};

static __attribute__((noinline)) int throw_if(int condition) {
  if (condition) {
#line 700 "thrower.cyc"
    _cyc_throw(&other);
#line 11 "exceptions.c"
  }
  return condition;
}

static void carries_its_value_and_place(void) {
  struct _cyc_handler h;
  if (_cyc_try(&h) == 0) {
    throw_if(1);
    CHECK(0);
  } else {
    CHECK(h.exn == &other && *(const char **)h.exn == exn_Other);
    CHECK(!strcmp(Cyc_Core_get_exn_name(h.exn), "Other"));
    CHECK(!strcmp(Cyc_Core_get_exn_filename(), "thrower.cyc") && Cyc_Core_get_exn_lineno() == 700);
  }
}

static void rethrow_keeps_the_place(void) {
  struct _cyc_handler outer, inner;
  volatile int steps = 0;
  if (_cyc_try(&outer) == 0) {
    if (_cyc_try(&inner) == 0) {
      throw_if(1);
    } else {
      steps += 1;
      _cyc_rethrow(inner.exn);
    }
  } else {
    steps += 10;
    CHECK(outer.exn == &other && Cyc_Core_get_exn_lineno() == 700);
  }
  CHECK(steps == 11);
}

/* What a loop with try, break and continue compiles to. */
static void leaving_a_body_pops_its_handlers(void) {
  volatile int caught = 0;
  struct _cyc_frame *before = _cyc_top;
  for (int i = 0; i < 10; i++) {
    struct _cyc_handler h, g;
    if (_cyc_try(&h) == 0) {
      if (i == 3) {
        _cyc_unwind(1);
        continue;
      }
      if (_cyc_try(&g) == 0) {
        if (i == 8) {
          _cyc_unwind(2);
          break;
        }
        throw_if(i % 2);
        _cyc_pop_handler();
      } else {
        caught = caught * 10 + i;
      }
      _cyc_pop_handler();
    } else {
      CHECK(0);
    }
    CHECK(_cyc_top == before);
  }
  CHECK(_cyc_top == before && caught == 157);
}

/* Throws with other values in the registers that a called function would put back when it returns. */
static __attribute__((noinline)) int deep(int n) {
#ifdef __x86_64__
  __asm__ volatile("xor %%ebx, %%ebx; mov %%rbx, %%r12; mov %%rbx, %%r13; mov %%rbx, %%r14; mov %%rbx, %%r15" ::
                       : "rbx", "r12", "r13", "r14", "r15");
#endif
  return n == 0 ? throw_if(1) : deep(n - 1) + 1;
}

static __attribute__((noinline)) long registers(long a, long b, long c, long d, long e, long f) {
  struct _cyc_handler h;
  volatile long sum = 0;
  for (int i = 0; i < 3; i++) {
    if (_cyc_try(&h) == 0) {
      deep(100);
      _cyc_pop_handler();
    } else {
      sum += a + b * 2 + c * 3 + d * 4 + e * 5 + f * 6;
    }
  }
  return sum + a * b * c * d * e * f;
}

/* Its values live in such registers while it calls. */
static __attribute__((noinline)) long caller_of_registers(const volatile long *values) {
  long a = values[0], b = values[1], c = values[2], d = values[3], e = values[4], f = values[5];
  long sum = registers(a, b, c, d, e, f);
  return sum + (a | b << 8 | c << 16 | d << 24 | e << 32 | f << 40);
}

static void regions_between_are_freed(void) {
  struct _cyc_handler h;
  struct _cyc_region outer, inner;
  struct _cyc_frame *before = _cyc_top;
  _cyc_region_push(&outer);
  struct _cyc_fat counted = _cyc_fat_make(_cyc_rqmalloc(NULL, _cyc_refcnt, 8), 8);
  if (_cyc_try(&h) == 0) {
    _cyc_region_push(&inner);
    Cyc_Core_autorelease_handle(&inner, Cyc_Core_alias_refptr(counted));
    CHECK(Cyc_Core_refptr_count(counted) == 2 && Cyc_Core_current_handle() == &inner);
    throw_if(1);
  } else {
    CHECK(Cyc_Core_refptr_count(counted) == 1 && Cyc_Core_current_handle() == &outer);
  }
  _cyc_region_push(&inner);
  Cyc_Core_autorelease_handle(&inner, Cyc_Core_alias_refptr(counted));
  _cyc_unwind(2);
  CHECK(_cyc_top == before && Cyc_Core_refptr_count(counted) == 1 && !Cyc_Core_current_handle());
  Cyc_Core_drop_refptr(counted);
}

void exceptions(void) {
  carries_its_value_and_place();
  rethrow_keeps_the_place();
  leaving_a_body_pops_its_handlers();
  static const volatile long values[6] = {1, 2, 3, 4, 5, 6};
  CHECK(caller_of_registers(values) == 3 * (1 + 4 + 9 + 16 + 25 + 36) + 720 + 0x060504030201);
  regions_between_are_freed();
  CHECK_THROWS("Match_Exception", _cyc_throw_match());
  CHECK_THROWS("Assert", _cyc_throw_assert());
}

static int say_goodbye(void) {
  puts("goodbye");
  return 0;
}

void throw_uncaught(void) {
  struct _cyc_region r;
  _cyc_region_push(&r);
  Cyc_Core_set_uncaught_exn_fun(say_goodbye);
  throw_if(1);
}
