/* The thesis's dispatch loop: requests start a task each, which calls somebody else and is found again by the id in the reply. In strict C
 * a task is a function and its argument. */
#include "check.h"
#include <ac.h>

enum kind { REQUEST, RESPONSE };
struct message {
    enum kind kind;
    uint32_t id;
    int value;
};

/* A channel in memory: what is sent to the other side comes back as its reply, twice as large, the latest first. */
static struct message inbox[64];
static int received, sent;

enum { REQUESTS = 12 };
static int answered[REQUESTS], answers;

static void send_call(uint32_t id, int value)
{
    struct message reply = { RESPONSE, id, 2 * value };
    CHECK(sent < 64);
    inbox[sent++] = reply;
}

static int reply_value;

static int call(int value)
{
    uint32_t id;
    CHECK(awe_mapper_create_id(&id) == 0);
    send_call(id, value);
    CHECK(THCYieldAndSaveNoDispatch(id) == 0);
    int reply = reply_value;
    CHECK(awe_mapper_remove_id(id) == 0);
    return reply;
}

static void serve(int value)
{
    int twice = call(value);
    int four_times = call(twice);
    answered[value] = four_times;
    answers++;
}

#ifdef __STRICT_ANSI__
static void serve_message(void *argument)
{
    const struct message *message = argument;
    serve(message->value);
}
#define SERVE(message) ac_async(_fb_info, serve_message, &(message))
#else
#define SERVE(message) ASYNC({ serve((message).value); })
#endif

static void loop(void)
{
    DO_FINISH({
        while (answers < REQUESTS) {
            if (received == sent) {
                THCYield();
                continue;
            }
            struct message message = inbox[--sent];
            if (message.kind == REQUEST) {
                SERVE(message);
            } else {
                reply_value = message.value;
                CHECK(THCYieldToIdNoDispatch_TopLevel(message.id) == 0);
            }
        }
    });
}

int main(void)
{
    for (int value = 0; value < REQUESTS; value++)
        inbox[sent++] = (struct message){ REQUEST, 0, value };
    LCD_MAIN({
        loop();
        /* What nobody has is refused, whoever sent it. */
        CHECK(THCYieldToId(0) == -EINVAL);
        CHECK(THCYieldToId(0xdeadbeef) == -EINVAL);
        uint32_t id;
        awe_mapper_create_id(&id);
        CHECK(THCYieldToId(id) == -EINVAL);
        CHECK(awe_mapper_remove_id(id) == 0);
        CHECK(awe_mapper_remove_id(id) == -EINVAL);
        CHECK(THCYieldAndSave(id) == -EINVAL);
    });
    for (int value = 0; value < REQUESTS; value++)
        CHECK(answered[value] == 4 * value);
    return 0;
}
