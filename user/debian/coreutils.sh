# coreutils: those of its own tests that have to do with files and the system, on the installed programs; how each ended
cd /usr/src/coreutils-* || exit
source=$PWD
# What `make check` gives its tests; the programs are the installed ones.
mkdir -p /tmp/build/src /tmp/tests && cd /tmp/tests || exit
: >/tmp/build/config.h
export VERSION=9.1 PACKAGE_VERSION=9.1 LOCALE_FR=none LOCALE_FR_UTF8=none EXEEXT='' MAKE=make CC=gcc AWK=awk EGREP='grep -E' PERL=perl SHELL=/bin/bash
export abs_top_builddir=/tmp/build abs_top_srcdir=$source abs_srcdir=$source srcdir=$source top_srcdir=$source CONFIG_HEADER=/tmp/build/config.h
export host_os=linux-gnu host_triplet=x86_64-pc-linux-gnu built_programs="$(dpkg -L coreutils | sed -n 's,^.*/s*bin/,,p' | tr '\n' ' ')" fail=0 TMPDIR=/tmp/tests LC_ALL=C
for directory in chgrp chmod chown cp dd df du install ln ls mkdir mv readlink rm rmdir tail-2 touch; do
    for test in "$source"/tests/$directory/*.sh; do
        name=$directory/${test##*/}
        export CU_TEST_NAME=$name
        timeout 600 bash "$test" >log 2>&1 9>&1 </dev/null
        case $? in
        0) echo "$name: passed" ;;
        77) echo "$name: does not apply" ;;
        99) echo "$name: cannot be set up" ;;
        124) echo "$name: no end" ;;
        *) echo "$name: failed"; { echo "$name:"; tail -n 8 log; } >&2 ;;
        esac
    done
done
