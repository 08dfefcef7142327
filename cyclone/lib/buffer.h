// Texts that grow at their end.

#ifndef _BUFFER_H_
#define _BUFFER_H_
__noinference__ {
#include <core.h>
#include <bits/size.h>

namespace Buffer {

extern struct t;
typedef struct t @T;

// Empty, with room for n characters before it has to grow.
extern T create(unsigned int n);
// A copy of what is in it.
extern mstring_t contents(T);
extern size_t length(T);

// What is in it, without a copy: the buffer is empty until something is added or restored. restore gives a text, which
// counts as empty, for the buffer to use; it fails, and the text is freed, if the buffer has one.
extern mstring_t<`H,UNIQUE> extract(T);
extern bool restore(T, mstring_t<`H,UNIQUE>) __attribute__((consume(2)));

// Empties it, and keeps its memory; empties it, and frees what it has grown by.
extern void clear(T);
extern void reset(T);

// Appends. add_substring takes zeroes too; a part that does not exist throws Core::Invalid_argument.
extern void add_char(T, char);
extern void add_substring(T, string_t, int offset, int len);
extern void add_string(T, string_t);
extern void add_buffer(T buf_dest, T buf_source);

}
}
#endif
