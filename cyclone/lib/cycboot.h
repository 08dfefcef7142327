// What programs got with string.h from the first Cyclone compilers: streams, classes of characters, the process.

#ifndef _CYCBOOT_H_
#define _CYCBOOT_H_
#include <stdio.h>
#include <ctype.h>
#include <bits/process.h>
#endif
