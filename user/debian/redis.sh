# Redis: commands, benchmark, pipelines, a replica, a file that is appended to and saved, over TCP and a unix socket
set -e
ip link set lo up
mkdir -p one two
redis-server --port 6379 --dir one --daemonize yes --appendonly yes --unixsocket $PWD/one/socket --logfile one.log --save '' >/dev/null
redis-server --port 6380 --dir two --daemonize yes --replicaof 127.0.0.1 6379 --logfile two.log --repl-diskless-sync-delay 0 >/dev/null
ask() { redis-cli "$@"; }
until ask ping >/dev/null 2>&1; do sleep 0.1; done; until ask -p 6380 ping >/dev/null 2>&1; do sleep 0.1; done
ask set key value; ask get key; ask -s one/socket incrby n 41; ask -s one/socket incr n
seq 1000 | sed 's/.*/rpush list &/' | ask | tail -n 1
seq 5000 | awk '{ printf "*3\r\n$3\r\nSET\r\n$%d\r\nk%s\r\n$%d\r\n%s\r\n", length($1) + 1, $1, length($1), $1 }' | ask --pipe | tail -n 1
ask lrange list 498 502; ask eval 'return redis.call("llen", "list") + 1' 0
redis-benchmark -q -n 5000 -t get,set,lpush,ping_inline -d 100 | tr '\r' '\n' | grep 'per second' | sed 's/:.*//'
redis-benchmark -q -n 20000 -P 16 -t get,set | tr '\r' '\n' | grep 'per second' | sed 's/:.*//'
redis-benchmark -q -n 5000 -s one/socket -t get | tr '\r' '\n' | grep 'per second' | sed 's/:.*//'
ask bgrewriteaof >/dev/null; until ask info persistence | grep -q aof_rewrite_in_progress:0; do sleep 0.1; done; ask info persistence | tr -d '\r' | grep aof_last_bgrewrite
ask wait 1 20000; until [ "$(ask dbsize)" = "$(ask -p 6380 dbsize)" ]; do sleep 0.1; done; ask -p 6380 get k4999; ask -p 6380 set x y
(ask subscribe news & echo $! >sub; wait) >heard & until [ "$(ask pubsub numsub news | tail -n 1)" = 1 ]; do sleep 0.1; done; ask publish news hello; sleep 0.5; kill $(cat sub); wait; cat heard
ask -p 6380 bgsave >/dev/null; until ask -p 6380 info persistence | grep -q rdb_bgsave_in_progress:0; do sleep 0.1; done; redis-check-rdb two/dump.rdb | grep -E 'OK|keys read'
before=$(ask dbsize); ask shutdown; redis-server --port 6379 --dir one --daemonize yes --appendonly yes --logfile one.log --save '' >/dev/null
until ask ping 2>/dev/null | grep -q PONG; do sleep 0.1; done; [ "$before" = "$(ask dbsize)" ] && echo kept; ask get n
ask shutdown nosave; ask -p 6380 shutdown nosave
