// Classes of characters, as C has them.

#ifndef _CTYPE_H_
#define _CTYPE_H_
__noinference__ {
extern "C" int isalnum(int);
extern "C" int isalpha(int);
extern "C" int isascii(int);
extern "C" int iscntrl(int);
extern "C" int isdigit(int);
extern "C" int isgraph(int);
extern "C" int islower(int);
extern "C" int isprint(int);
extern "C" int ispunct(int);
extern "C" int isspace(int);
extern "C" int isupper(int);
extern "C" int isxdigit(int);
extern "C" int toascii(int);
extern "C" int tolower(int);
extern "C" int toupper(int);

}
#endif
