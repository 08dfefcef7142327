# Python: modules of its own test suite about sockets, TLS and events; the names of tests that fail
ip link set lo up
cd /tmp
modules='test_socket test_ssl test_asyncio test_epoll test_socketserver test_httpservers test_sendfile test_timeout'
for module in $modules; do
    timeout 1500 python3 -m test -v "$module" >log 2>&1
    end=$?
    grep -E '^(FAIL|ERROR): ' log | sort -u
    echo "$module ended with $end, $(grep -cE ' \.\.\. (ok|expected failure)$' log) passed"
    [ $end -lt 4 ] || tail -n 3 log >&2
done
