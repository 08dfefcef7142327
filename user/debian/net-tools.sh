# ip, ss, ping, traceroute, dig with a server of names, iperf3, over the loopback device
### network
set -e
ip link set lo up
ip -o addr show dev lo | awk '{ print $3, $4 }'; ip -o link show dev lo | grep -oE 'LOOPBACK|mtu [0-9]+|LOWER_UP'; ip route get 127.0.0.1 | head -n 1 | cut -d' ' -f1-6; ip -br addr show lo | awk '{ print $1, $3, $4 }'
ip addr add 10.9.8.7/24 dev lo && ip -o -4 addr show dev lo | awk '{ print $4 }' && ping -c 1 -W 5 10.9.8.7 | grep -o '1 received' && ip addr del 10.9.8.7/24 dev lo
ip addr add 10.9.8.7/24 dev nothing 2>&1 || echo "ended with $?"
ping -c 3 -i 0.1 -W 5 127.0.0.1 | grep -oE '^[0-9]+ bytes from [^:]*|[0-9]+ received'; ping -6 -c 2 -i 0.1 ::1 | grep -o '[0-9]* received'
traceroute -n -q 1 127.0.0.1 | awk '{ print $1, $2 }' | tail -n 1
(sleep 20 | nc -l 127.0.0.1 7000 >/dev/null) & until nc -z -w 1 -s 127.0.0.1 127.0.0.1 1 2>/dev/null || ss -Hltn 'sport = 7000' | grep -q LISTEN; do sleep 0.1; done
ss -Hltn | awk '{ print $1, $4, $5 }'; (sleep 10) | nc 127.0.0.1 7000 & until ss -Htn state established | grep -q 7000; do sleep 0.1; done
ss -Htn state established '( dport = 7000 )' | awk '{ print $4 }'; ss -Hltnp | grep -o 'users:((.[a-z]*.'; ss -Hxl | wc -l; ss -s | head -n 1 | cut -d' ' -f1
printf 'no-resolv\nlisten-address=127.0.0.1\nbind-interfaces\nport=5300\naddress=/one.test/10.1.2.3\naddress=/one.test/fd00::3\ntxt-record=one.test,a text\nmx-host=one.test,mail.test,10\nuser=root\nno-hosts\npid-file=%s/dns.pid\n' "$PWD" >dns
dnsmasq -C dns && for kind in A AAAA TXT MX; do dig +short +time=5 -p 5300 @127.0.0.1 one.test $kind; done; dig +tcp +short -p 5300 @127.0.0.1 one.test; dig -p 5300 @127.0.0.1 none.test | grep -o 'status: [A-Z]*'; kill $(cat dns.pid)
iperf3 -s -D -1 -p 5201 -I $PWD/iperf.pid; until [ -s iperf.pid ]; do sleep 0.1; done; sleep 0.5; iperf3 -c 127.0.0.1 -n 20M | grep -oE 'sender|receiver'
iperf3 -s -D -1 -p 5202 -I $PWD/iperf2.pid; until [ -s iperf2.pid ]; do sleep 0.1; done; sleep 0.5; iperf3 -c ::1 -p 5202 -u -b 20M -n 4M -R | grep -oE 'sender|receiver'
