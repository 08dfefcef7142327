# memcached and HAProxy: values over TCP and UDP, a proxy that balances two servers, one of which goes away
set -e
ip link set lo up
memcached -u root -d -p 11211 -U 11211 -m 32 -t 2
until nc -z 127.0.0.1 11211; do sleep 0.1; done
printf 'set a 0 0 5\r\nhello\r\nget a\r\nincr n 1\r\nset n 0 0 1\r\n9\r\nincr n 33\r\nget n a\r\ndelete a\r\nget a\r\nquit\r\n' | nc -q 5 127.0.0.1 11211 | tr -d '\r'
(for i in $(seq 3000); do printf 'set k%d 0 0 4\r\n%04d\r\n' $i $i; done; printf 'quit\r\n') | nc -q 5 127.0.0.1 11211 | sort | uniq -c | tr -d '\r'
printf '\0\1\0\0\0\1\0\0get k2999\r\n' | nc -u -w 2 127.0.0.1 11211 | tail -c +9 | tr -d '\r'
python3 - <<'P'
import socket, threading
def work(n):
    s = socket.create_connection(('127.0.0.1', 11211)); f = s.makefile('rwb')
    for i in range(300):
        f.write(b'set t%d 0 0 3\r\n%03d\r\nget t%d\r\n' % (n, i, n)); f.flush()
        assert f.readline() == b'STORED\r\n' and f.readline().startswith(b'VALUE'), n
        assert f.readline() == b'%03d\r\n' % i and f.readline() == b'END\r\n', n
threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
[t.start() for t in threads]; [t.join() for t in threads]; print('eight clients')
P
for port in 9001 9002; do mkdir s$port; echo server $port >s$port/name; (cd s$port && exec python3 -m http.server --bind 127.0.0.1 $port >/dev/null 2>&1) & echo $! >pid$port; until nc -z 127.0.0.1 $port; do sleep 0.1; done; done
cat >conf <<C
global
    maxconn 200
    stats socket $PWD/admin level admin
defaults
    mode http
    timeout connect 5s
    timeout client 30s
    timeout server 30s
    retries 3
    option redispatch
frontend web
    bind 127.0.0.1:9000
    bind :::9000 v6only
    default_backend both
backend both
    balance roundrobin
    server one 127.0.0.1:9001 check inter 200
    server two 127.0.0.1:9002 check inter 200
listen tcp
    mode tcp
    bind 127.0.0.1:9100
    server cache 127.0.0.1:11211
C
haproxy -D -f conf -p pid && until nc -z 127.0.0.1 9000; do sleep 0.1; done
for i in $(seq 20); do curl -sS --max-time 30 http://127.0.0.1:9000/name; done | sort | uniq -c
curl -sS "http://[::1]:9000/name" | cut -d' ' -f1
printf 'get k7\r\nquit\r\n' | nc -q 5 127.0.0.1 9100 | tr -d '\r'
kill $(cat pid9002); until echo 'show servers state both' | socat stdio $PWD/admin | awk '$4 == "two" { exit $6 == 0 ? 0 : 1 }'; do sleep 0.2; done
for i in $(seq 10); do curl -sS --max-time 30 http://127.0.0.1:9000/name; done | sort | uniq -c
kill $(cat pid) $(cat pid9001); pkill memcached; until ! nc -z 127.0.0.1 11211; do sleep 0.1; done; echo ended
