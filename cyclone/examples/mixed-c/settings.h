/* The Cyclone part of the program, for both languages: each reads the types that it can check. */
#ifndef SETTINGS_H
#define SETTINGS_H

#ifdef __CYCLONE__

/* `text` has exactly `length` characters. */
extern "C" int settings_parse(const char *@nozeroterm @numelts(valueof(`n)) text, tag_t<`n> length);
/* Written in C. */
extern "C" void setting_found(const char *@notnull name, const char *@notnull value);

#else

#include <stddef.h>

/* Calls setting_found for each line `name = value` of the text. Returns how many there are, or the negated number of the
   first line that is none. */
int settings_parse(const char *text, size_t length);
void setting_found(const char *name, const char *value);

#endif
#endif
