# what was written and installed is there after the next boots
set -e
apt-get -q -y install hello >/dev/null 2>&1
sqlite3 kept.db 'create table t(n); insert into t values(1), (2)'
seq 1000000 >numbers
mkdir -p tree/a/b && ln numbers tree/a/b/also && ln -s a/b tree/link
echo leftover >/run/leftover
echo leftover >/tmp/kept
### next boot
set -e
hello
sqlite3 kept.db 'insert into t values(3); select count(*), sum(n) from t'
sha256sum numbers tree/link/also
stat -c '%n %h' numbers
ls /run/leftover 2>&1 || true
cat /tmp/kept
rm numbers
apt-get -q -y remove hello >/dev/null 2>&1
### next boot
set -e
command -v hello || echo removed
stat -c '%n %h' tree/a/b/also
sqlite3 kept.db 'pragma integrity_check; select * from t'
