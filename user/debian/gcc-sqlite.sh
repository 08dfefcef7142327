# configure, gcc and make build SQLite from its sources, which runs queries
set -e
cp -r /usr/src/sqlite3-* sqlite && cd sqlite
{ ./configure CFLAGS=-O0 --disable-shared --disable-readline --disable-tcl && make -j2 sqlite3; } >log 2>&1 || { tail -n 30 log; exit 1; }
./sqlite3 test.db <<'Q'
pragma journal_mode = wal;
create table words(id integer primary key, word text);
with recursive n(i) as (select 1 union all select i + 1 from n where i < 20000) insert into words select i, 'word' || (i * 7919 % 20011) from n;
create index by_word on words(word);
select count(*), min(word), max(word) from words;
select id from words where word = 'word5';
create virtual table if not exists text using fts5(body);
pragma integrity_check;
Q
ls -d sqlite3 sqlite3.c
