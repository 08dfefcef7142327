# Python: modules of its own test suite that have to do with the system; the names of tests that fail
cd /tmp
modules='test_os test_posix test_subprocess test_signal test_threading test_mmap test_fcntl test_select test_poll test_epoll test_selectors
    test_file test_fileio test_tempfile test_shutil test_pathlib test_glob test_pty test_tty test_time test_resource test_sqlite3
    test_multiprocessing_fork test_concurrent_futures test_queue test_tarfile test_zipfile test_mailbox test_dbm test_io test_largefile test_posixpath
    test_wait3 test_wait4 test_pwd test_grp test_fork1 test_popen test_pipes test_cmd_line test_faulthandler test_json test_struct test_re test_sort'
for module in $modules; do
    python3 -m test -v "$module" >log 2>&1
    end=$?
    grep -E '^(FAIL|ERROR): ' log | sort -u
    echo "$module ended with $end, $(grep -cE ' \.\.\. (ok|expected failure)$' log) passed"
    [ $end -lt 4 ] || tail -n 3 log >&2
done
