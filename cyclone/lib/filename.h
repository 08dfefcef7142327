// Names of files, with / between their parts.

#ifndef _FILENAME_H_
#define _FILENAME_H_
__noinference__ {
#include <core.h>

namespace Filename {

extern mstring_t concat(string_t, string_t);
// Without the last dot and what follows it; Core::Invalid_argument without a dot.
extern mstring_t chop_extension(string_t);
// What is before the last /, or nothing; what is behind it.
extern mstring_t dirname(string_t);
extern mstring_t basename(string_t);
// Whether the first ends with the second.
extern bool check_suffix(string_t, string_t);
// A DOS name as a Unix one: c:\x becomes //c/x.
extern mstring_t gnuify(string_t);

}
}
#endif
