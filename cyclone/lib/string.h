// Strings and memory with known bounds. A zero ends a string before its bound does, except for the functions whose names
// begin with z or mem. Sizes that exceed a bound throw Core::Invalid_argument.

#ifndef _STRING_H_
#define _STRING_H_
__noinference__ {
#include <core.h>
#include <list.h>
#include <cycboot.h>

// The compiler writes these functions into the program instead of calls (c/inline_string.h).
#ifndef _CYC_INLINE_STRING
#define _CYC_INLINE_STRING __attribute__((cyc_inline("../lib/c/inline_string.h")))
#endif

extern "C" Cstring strerror(int errnum);

// Characters before the first zero.
extern size_t strlen(buffer_t s) _CYC_INLINE_STRING;

// Orders: negative, zero or positive. The `n` functions look at so many characters at most.
extern int strcmp(buffer_t s1, buffer_t s2) _CYC_INLINE_STRING;
extern int strptrcmp(stringptr_t s1, stringptr_t s2);
extern int strncmp(buffer_t s1, buffer_t s2, size_t len);
extern int zstrcmp(buffer_t, buffer_t);
extern int zstrncmp(buffer_t s1, buffer_t s2, size_t n);
extern int zstrptrcmp(stringptr_t, stringptr_t);
extern int strcasecmp(buffer_t, buffer_t);
extern int strncasecmp(buffer_t s1, buffer_t s2, size_t len);

// Concatenation: onto dest, or into a new string; of a list, without or with a separator.
extern mstring_t<`r> strcat(mstring_t<`r> dest, buffer_t src) _CYC_INLINE_STRING;
extern mstring_t strconcat(buffer_t, buffer_t);
extern mstring_t<`r> rstrconcat(region_t<`r>, buffer_t, buffer_t);
extern mstring_t strconcat_l(List::list_t<stringptr_t>);
extern mstring_t<`r> rstrconcat_l(region_t<`r>, List::list_t<stringptr_t>);
extern mstring_t str_sepstr(List::list_t<stringptr_t>, buffer_t);
extern mstring_t<`r> rstr_sepstr(region_t<`r>, List::list_t<stringptr_t>, buffer_t);

// Copies into what is there.
extern mstring_t<`r> strcpy(mstring_t<`r> dest, buffer_t src) _CYC_INLINE_STRING;
extern mbuffer_t<`r> strncpy(mbuffer_t<`r>, buffer_t, size_t) _CYC_INLINE_STRING;
extern mbuffer_t<`r> zstrncpy(mbuffer_t<`r>, buffer_t, size_t);

// A larger copy of a buffer, or the buffer itself if it is large enough.
extern mbuffer_t realloc(mbuffer_t<`H>, size_t);
extern mbuffer_t<`r,`q> rqrealloc(region_t<`r>, aqual_t<`q\T>, mbuffer_t s, size_t sz);
extern mbuffer_t<`r> rrealloc(region_t<`r>, mbuffer_t s, size_t sz);

// Memory: n bytes, rounded up to whole elements. The size of an element need not be given (see Core::sizeof_t). The
// functions with `_` in front take a number of elements.
extern `a::A?`r memcpy(`a?`r d, const `a? s, size_t n, Core::sizeof_t<`a>) _CYC_INLINE_STRING;
extern `a::A?`r memmove(`a?`r d, const `a? s, size_t n, Core::sizeof_t<`a>) _CYC_INLINE_STRING;
extern void bcopy(const `a::A? src, `a?`r dst, size_t n, Core::sizeof_t<`a>);
extern `a::A?`r _memcpy(`a?`r d, const `a? s, size_t, Core::sizeof_t<`a>) _CYC_INLINE_STRING;
extern `a::A?`r _memmove(`a?`r d, const `a? s, size_t, Core::sizeof_t<`a>) _CYC_INLINE_STRING;
extern void _bcopy(const `a::A? src, `a?`r dst, size_t n, Core::sizeof_t<`a> sz);
extern int memcmp(buffer_t s1, buffer_t s2, size_t n) _CYC_INLINE_STRING;
extern buffer_t<`r> memchr(buffer_t<`r> s, char c, size_t n);
extern mbuffer_t<`r> mmemchr(mbuffer_t<`r> s, char c, size_t n);
extern mbuffer_t<`r> memset(mbuffer_t<`r> s, char c, size_t n) _CYC_INLINE_STRING;
extern void bzero(mbuffer_t s, size_t n);

// New strings: with room for sz characters; a longer copy, which cond_rrealloc_str makes only if str is too short, else
// it gives NULL; a copy.
extern mstring_t expand(buffer_t s, size_t sz);
extern mstring_t<`r> rexpand(region_t<`r>, buffer_t s, size_t sz);
extern mstring_t realloc_str(mstring_t<`H> str, size_t sz);
extern mstring_t<`r> cond_rrealloc_str(region_t<`r> r, mstring_t<`r> str, size_t sz);
extern mstring_t strdup(buffer_t src);
extern mstring_t<`r> rstrdup(region_t<`r>, buffer_t src);
extern mstring_t<`r,`q> rqstrdup(region_t<`r>, aqual_t<`q\T>, buffer_t src);

// New strings: n characters from an offset; with the end curr_suffix exchanged for another.
extern mstring_t substring(buffer_t, int ofs, size_t n);
extern mstring_t<`r> rsubstring(region_t<`r>, buffer_t, int ofs, size_t n);
extern mstring_t replace_suffix(buffer_t, buffer_t, buffer_t);
extern mstring_t<`r> rreplace_suffix(region_t<`r> r, buffer_t src, buffer_t curr_suffix, buffer_t new_suffix);

// Searches: NULL, or the place in the first argument. The `m` functions take and give mutable strings.
extern string_t<`r> strchr(string_t<`r> s, char c) _CYC_INLINE_STRING;
extern mstring_t<`r> mstrchr(mstring_t<`r> s, char c);
extern string_t<`r> strrchr(string_t<`r> s, char c);
extern mstring_t<`r> mstrrchr(mstring_t<`r> s, char c);
extern string_t<`r> strstr(string_t<`r> haystack, string_t needle);
extern mstring_t<`r> mstrstr(mstring_t<`r> haystack, string_t needle);
extern string_t<`r> strpbrk(string_t<`r> s, buffer_t accept);
extern mstring_t<`r> mstrpbrk(mstring_t<`r> s, buffer_t accept);
extern size_t strspn(string_t s, string_t accept);
extern size_t strcspn(string_t s, string_t accept);
extern mstring_t<`H> strtok(mstring_t<`H> s, string_t delim);

// Between strings and lists of characters.
extern List::list_t<int> explode(buffer_t s);
extern List::list_t<int,`r> rexplode(region_t<`r>, buffer_t s);
extern mstring_t implode(List::list_t<int> c);
}
#endif
