# bash: its own test suite; the names of the scripts whose output is not as expected
cd /usr/src/bash-*/tests || exit
: >config.h
for helper in recho zecho printenv xcase; do gcc -w -I. -I.. -I../include -o $helper ../support/$helper.c || exit; done
export THIS_SH=/bin/bash BUILD_DIR=$PWD PATH=$PWD:$PATH
for script in run-*; do
    [ "$script" = run-all ] || [ "$script" = run-minimal ] || [ "$script" = run-gprof ] || {
        if sh "$script" >log 2>&1 </dev/null && ! grep -q '^[<>] ' log; then echo "$script: as expected"; else echo "$script: $(grep -c '^[<>] ' log) other lines"; fi
    }
done
