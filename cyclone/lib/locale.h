// Locales. Returned strings are copies.

#ifndef _LOCALE_H_
#define _LOCALE_H_
__noinference__ {
#define LC_CTYPE 0
#define LC_NUMERIC 1
#define LC_TIME 2
#define LC_COLLATE 3
#define LC_MONETARY 4
#define LC_MESSAGES 5
#define LC_ALL 6

extern char *setlocale(int category, const char *locale);

}
#endif
