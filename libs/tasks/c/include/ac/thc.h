/* The published names of Asynchronous C, Barrelfish's and the thesis's. Each is one of the functions of run.h and ids.h. */
#ifndef AC_THC_H
#define AC_THC_H

#include "blocks.h"
#include "ids.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What an operation whose name ends in _x returns if its block was asked to end. */
#define THC_CANCELED (-ECANCELED)

typedef void (*THCContFn_t)(void *argument);

/* --- the thread --- */
AC_INLINE_ int thc_init(void) { return ac_init(0); }
AC_INLINE_ void thc_done(void) { ac_done(); }
AC_INLINE_ void thc_global_init(void) {}
AC_INLINE_ void thc_global_fini(void) {}

/* A whole program: the code in a block, in a thread's run-time. */
#define LCD_MAIN(...) \
    do { \
        if (thc_init() != 0) \
            ac_no_stack_(); \
        DO_FINISH(__VA_ARGS__); \
        thc_done(); \
    } while (0)

/* --- suspensions --- */
AC_INLINE_ void THCYield(void) { ac_yield(); }
AC_INLINE_ int THCYieldTo(awe_t *task) { return ac_yield_to(task); }
AC_INLINE_ void THCSuspend(awe_t **task) { ac_suspend_then(task, 0, 0); }
AC_INLINE_ void THCSuspendThen(awe_t **task, THCContFn_t then, void *argument) { ac_suspend_then(task, then, argument); }
AC_INLINE_ int THCSchedule(awe_t *task) { return ac_schedule(task); }
AC_INLINE_ int THCScheduleBack(awe_t *task) { return ac_schedule_back(task); }

/* --- the end --- */
__attribute__((noreturn)) AC_INLINE_ void THCFinish(void)
{
    ac_forget_frames_();
    ac_end_task();
}
__attribute__((noreturn)) AC_INLINE_ void THCAbort(void)
{
    ac_forget_frames_();
    ac_end_task();
}
AC_INLINE_ void THCStopAllAwes(void) { ac_stop_all(); }
AC_INLINE_ int THCShouldStop(void) { return ac_should_stop(); }

/* --- ids --- */
AC_INLINE_ void awe_mapper_init(void) {}
AC_INLINE_ void awe_mapper_uninit(void) {}
AC_INLINE_ int awe_mapper_create_id(uint32_t *id) { return ac_id_create(id); }
AC_INLINE_ int awe_mapper_remove_id(uint32_t id) { return ac_id_remove(id); }
AC_INLINE_ int awe_mapper_set_id(uint32_t id, void *task) { return ac_id_set(id, (awe_t *)task); }
AC_INLINE_ awe_t *awe_mapper_get_awe_ptr(uint32_t id) { return ac_id_get(id); }
AC_INLINE_ int THCYieldAndSave(uint32_t id) { return ac_yield_and_save(id); }
AC_INLINE_ int THCYieldToId(uint32_t to) { return ac_yield_to_id(to); }
AC_INLINE_ int THCYieldToIdAndSave(uint32_t to, uint32_t from) { return ac_yield_to_id_and_save(to, from); }
AC_INLINE_ int THCYieldAndSaveNoDispatch(uint32_t id) { return ac_save_and_suspend(id); }
AC_INLINE_ int THCYieldToIdNoDispatch(uint32_t to) { return ac_hand_over_to_id(to); }
AC_INLINE_ int THCYieldToIdNoDispatch_TopLevel(uint32_t to) { return ac_yield_to_id(to); }
AC_INLINE_ int THCYieldToIdAndSaveNoDispatch(uint32_t to, uint32_t from) { return ac_hand_over_to_id_and_save(to, from); }

/* --- reports --- */
AC_INLINE_ void THCDumpAllStacks(void) { ac_dump(2); }
AC_INLINE_ void THCDumpStats(int clear) { ac_dump_stats(2, clear); }
AC_INLINE_ void THCIncSendCount(void) { ac_count_send(); }
AC_INLINE_ void THCIncRecvCount(void) { ac_count_receive(); }

/* --- cancellation --- */
AC_INLINE_ int THCIsCancelRequested(void) { return ac_is_cancel_requested(); }
typedef ac_cancel_item cancel_item_t;
AC_INLINE_ void THCAddCancelItem(cancel_item_t *item, THCContFn_t action, void *argument) { ac_cancel_item_add(item, action, argument); }
AC_INLINE_ int THCRemoveCancelItem(cancel_item_t *item) { return ac_cancel_item_remove(item); }
AC_INLINE_ int THCCancelItemRan(const cancel_item_t *item) { return ac_cancel_item_ran(item); }
AC_INLINE_ int THCYield_x(void) { return ac_yield_x(); }
AC_INLINE_ int THCSuspend_x(awe_t **task) { return ac_suspend_then_x(task, 0, 0); }
AC_INLINE_ int THCSuspendThen_x(awe_t **task, THCContFn_t then, void *argument) { return ac_suspend_then_x(task, then, argument); }

#ifdef __cplusplus
}
#endif
#endif
