# OpenSSH: sshd, commands, scp, sftp, a forwarded port, a pseudo-terminal, rsync over it
set -e
ip link set lo up; hostname ebb
mkdir -p /run/sshd .ssh && chmod 700 .ssh && ssh-keygen -q -t ed25519 -N '' -f .ssh/id_ed25519 && cp .ssh/id_ed25519.pub .ssh/authorized_keys && chmod 755 .
ls /etc/ssh/ssh_host_*_key >/dev/null 2>&1 || ssh-keygen -q -A
/usr/sbin/sshd -p 2222 -o PermitRootLogin=yes -o PidFile=$PWD/pid -E sshd.log
printf 'Host *\n  StrictHostKeyChecking no\n  UserKnownHostsFile /dev/null\n  LogLevel ERROR\n  Port 2222\n' >.ssh/config
until nc -z 127.0.0.1 2222; do sleep 0.1; done
ssh 127.0.0.1 'echo "$USER on $(hostname)"; exit 7' || echo "ended with $?"
ssh ::1 'cat | wc -c' </usr/bin/perl | sed "s/^$(stat -Lc %s /usr/bin/perl)$/all of it/"
scp -q /usr/bin/perl 127.0.0.1:copied && cmp /usr/bin/perl copied && echo copied
printf 'put /etc/passwd there\nls there\nget there back\nrm there\n' | sftp -q -b - 127.0.0.1 | grep -v '^sftp>' ; cmp /etc/passwd back && echo fetched
ssh -tt 127.0.0.1 'tty | sed "s#/dev/pts/.*#a terminal#"; stty -a | grep -o "rows [0-9]*"' </dev/null | tr -d '\r'
mkdir -p web && echo through >web/f && (cd web && exec python3 -m http.server --bind 127.0.0.1 9000 >/dev/null 2>&1) & 
until nc -z 127.0.0.1 9000; do sleep 0.1; done
ssh -f -N -L 9001:127.0.0.1:9000 -R 9002:127.0.0.1:9000 -D 9003 -M -S master 127.0.0.1; until nc -z 127.0.0.1 9001; do sleep 0.1; done
curl -sS http://127.0.0.1:9001/f http://127.0.0.1:9002/f; curl -sS --socks5 127.0.0.1:9003 http://127.0.0.1:9000/f; ssh -S master -O exit 127.0.0.1 2>/dev/null
rsync -a -e ssh /usr/share/perl5/Dpkg/ 127.0.0.1:tree/ && diff -r /usr/share/perl5/Dpkg tree && echo the same
echo more >>tree/File.pm && rsync -ai -e ssh /usr/share/perl5/Dpkg/ 127.0.0.1:tree/ && diff -r /usr/share/perl5/Dpkg tree && echo the same again
mkdir module && printf 'use chroot = no\n[m]\npath = %s/module\nread only = no\nuid = root\ngid = root\n' "$PWD" >rsyncd.conf && rsync --daemon --config=rsyncd.conf --port=8730 && until nc -z 127.0.0.1 8730; do sleep 0.1; done
rsync -a /usr/share/perl5/Dpkg/ rsync://127.0.0.1:8730/m/ && diff -r /usr/share/perl5/Dpkg module && echo over its own protocol
kill $(cat pid); pkill rsync; pkill -f http.server
