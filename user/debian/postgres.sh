# PostgreSQL, installed from package files: a cluster is made and started, clients at once over a socket, a crash, recovery
set -e
apt-get -q -y install postgresql >log 2>&1 || { cat log; exit 1; }
pg_lsclusters -h | awk '{ print $2, $4 }'
sed -i "s/^#*listen_addresses.*/listen_addresses = ''/" /etc/postgresql/*/main/postgresql.conf
pg_ctlcluster 15 main start
sql() {
    runuser -u postgres -- psql -X -A -t -q "$@"
}
sql -c 'create table t(n int primary key, word text)' -c "insert into t select n, md5(n::text) from generate_series(1, 20000) n" -c 'create index on t(word)'
for client in 1 2 3 4; do sql -c "update t set word = word || '$client' where n % 4 = $client - 1" & done
wait
sql -c "select count(*), min(length(word)), max(length(word)) from t" -c "select n from t where word like 'c4ca4238%'"
sql -c 'begin; delete from t; rollback; select count(*) from t'
pkill -KILL -x postgres
while pgrep -x postgres >/dev/null; do sleep 0.1; done
pg_ctlcluster 15 main start 2>/dev/null
sql -c 'select count(*) from t' -c 'checkpoint'
pg_ctlcluster 15 main stop
pg_lsclusters -h | awk '{ print $2, $4 }'
