# sqlite3: journals of each kind, several writers at once, backup, integrity
set -e
for mode in delete truncate persist wal; do
    sqlite3 $mode.db "pragma journal_mode = $mode; create table t(a integer primary key, b);"
    for writer in 1 2 3 4; do
        for n in $(seq 5); do sqlite3 -cmd '.timeout 300000' $mode.db "insert into t(b) values($writer * 100 + $n)"; done &
    done
    wait
    sqlite3 $mode.db 'select count(*), sum(b) from t; pragma integrity_check; vacuum'
done
sqlite3 wal.db '.backup copy.db' && sqlite3 copy.db 'select count(*) from t' '.schema'
sqlite3 big.db 'create table n(i); with recursive c(i) as (select 1 union all select i + 1 from c where i < 100000) insert into n select i from c; create index x on n(i desc); select count(*), sum(i) from n where i % 3 = 0; pragma integrity_check'
