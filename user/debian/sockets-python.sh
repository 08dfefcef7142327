# Python: modules of its own test suite about sockets, TLS and events; the names of tests that fail
ip link set lo up
cd /tmp
modules='test_socket test_ssl test_asyncio test_epoll test_select test_selectors test_socketserver test_httpservers test_httplib test_urllib2_localnet
    test_ftplib test_poplib test_imaplib test_nntplib test_smtplib test_smtpd test_telnetlib test_asyncore test_asynchat test_xmlrpc test_docxmlrpc test_wsgiref
    test_multiprocessing_fork test_logging test_urllib test_urllibnet test_timeout test_sendfile'
for module in $modules; do
    timeout 1500 python3 -m test -v "$module" >log 2>&1
    end=$?
    grep -E '^(FAIL|ERROR): ' log | sort -u
    echo "$module ended with $end, $(grep -cE ' \.\.\. (ok|expected failure)$' log) passed"
    [ $end -lt 4 ] || tail -n 3 log >&2
done
