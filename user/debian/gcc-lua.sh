# gcc and make build Lua, which runs a program
set -e
cp -r /usr/src/lua5.4-*/src lua && cd lua
make -j2 linux MYCFLAGS=-O1 CFLAGS='-O1 -DLUA_COMPAT_5_3 -DLUA_USE_LINUX' >log 2>&1 ||
    make -j2 all SYSCFLAGS=-DLUA_USE_LINUX SYSLIBS='-Wl,-E -ldl' >log 2>&1 || { tail -n 20 log; exit 1; }
./lua -v
./lua -e 'local t = {} for i = 1, 200000 do t[i] = (i * 7919) % 100003 end table.sort(t) print(#t, t[1], t[#t], string.rep("ab", 3))
    local co = coroutine.wrap(function() for i = 1, 3 do coroutine.yield(i) end end) print(co(), co(), co())
    local p = io.popen("echo from a process") print(p:read("a")) p:close()'
./luac -l - <<'P' | wc -l
print("hello")
P
