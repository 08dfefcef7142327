# A card: its address and routes, ping, names, curl, wget, apt-get update and install over the network
### network
set -e
ip link set lo up
# Ebb asks for an address by itself, Debian's Linux has a program for it.
until ip -4 -o addr show dev eth0 | grep -q 10.0.2.15; do
    if [ -e /proc/sys/kernel/modprobe ]; then ip link set eth0 up; ip addr add 10.0.2.15/24 dev eth0; ip route add default via 10.0.2.2; else sleep 0.1; fi
done
rm -f /etc/resolv.conf && echo nameserver 10.0.2.3 >/etc/resolv.conf
ip -4 -o addr show dev eth0 | awk '{ print $2, $4 }'; ip -4 route | awk '$1 == "default" { print $1, $2, $3, $4, $5 } $1 ~ /^10/ { print $1, $2, $3 }'
ip route get 10.0.2.3 | head -n 1 | cut -d' ' -f1-5; ip route get 9.9.9.9 | head -n 1 | cut -d' ' -f1-7
ping -c 2 -i 0.2 -W 10 10.0.2.2 | grep -o '[0-9]* received'; ip neigh show 10.0.2.2 | awk '{ print $1, $2, $3, $5 }'
traceroute -n -q 1 -w 5 -m 2 10.0.2.2 | tail -n 1 | awk '{ print $1, $2 }'
getent hosts deb.debian.org >/dev/null && echo resolved
dig +short +time=10 deb.debian.org | grep -c . | sed 's/^[1-9].*/an answer/'
curl -sS --max-time 100 -o one -w '%{http_code}\n' http://deb.debian.org/debian/dists/bookworm/Release && wget -q -T 100 -O two http://deb.debian.org/debian/dists/bookworm/Release && cmp one two && echo the same
curl -sS --max-time 10 http://10.0.2.2:1/ >/dev/null 2>&1 || echo "refused: $?"
apt-get update -q >log 2>&1 && echo updated || cat log
apt-get install -q -y --no-install-recommends tree >log 2>&1 && tree --version | cut -d' ' -f1 || cat log
timeout 60 tcpdump -n -i eth0 -c 2 icmp >packets 2>/dev/null & dump=$!
sleep 3; ping -c 1 -W 10 10.0.2.2 >/dev/null; wait $dump; sed -E 's/^[^ ]* //; s/id [0-9]+/id N/' packets
