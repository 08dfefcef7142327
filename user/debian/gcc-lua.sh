# gcc and make build Lua, which runs a program
set -e
cp -r /usr/src/lua5.4-*/src lua && cd lua
# Debian's own makefile wants libtool, and makes this.
echo '#define DEB_HOST_MULTIARCH "x86_64-linux-gnu"' >lua5.4-deb-multiarch.h
cat >makefile <<'M'
CFLAGS := -O1 -DLUA_COMPAT_5_3 -DLUA_USE_LINUX
objects := $(patsubst %.c,%.o,$(filter-out lua.c luac.c,$(wildcard *.c)))
all: lua luac
lua luac: %: %.o $(objects)
	$(CC) -o $@ $^ -Wl,-E -lm -ldl
M
make -j2 -f makefile >log 2>&1 || { tail -n 20 log; exit 1; }
./lua -v
./lua -e 'local t = {} for i = 1, 200000 do t[i] = (i * 7919) % 100003 end table.sort(t) print(#t, t[1], t[#t], string.rep("ab", 3))
    local co = coroutine.wrap(function() for i = 1, 3 do coroutine.yield(i) end end) print(co(), co(), co())
    local p = io.popen("echo from a process") print(p:read("a")) p:close()'
echo 'print("hello")' | ./luac -l - | wc -l
