#!/bin/sh
# A tour of the shell: everything here prints the same on every system.
# Run in an empty directory by `busybox sh script.sh`, with BusyBox's applets on the PATH.
LC_ALL=C
export LC_ALL
umask 022
set -u

section() {
    echo
    echo "== $*"
}

fail() {
    echo "FAILED: $*"
    exit 1
}

section variables and expansion
name="Ebb"
path=/usr/share/doc/readme.txt
echo "$name ${#name} ${name%b} ${name#E} ${undefined:-default}"
echo "${path##*/} ${path%/*} ${path%%.*} ${path#*/}"
: "${assigned:=set now}"
echo "$assigned"
echo "$((7 * 6)) $((1 << 10)) $((17 % 5)) $((0x1f)) $((3 > 2 ? 100 : 200))"
set -- one "two words" three
echo "$# [$1] [$2] [$3]"
for word in "$@"; do
    printf '<%s>' "$word"
done
echo
shift 2
echo "$# $1"
IFS=:
set -- $(echo a:b:c)
unset IFS
echo "$# $3"

section control flow
i=0
while [ $i -lt 10 ]; do
    i=$((i + 1))
    case $i in
    2 | 4) continue ;;
    7) break ;;
    *[13579]) printf '%s-odd ' $i ;;
    *) printf '%s-even ' $i ;;
    esac
done
echo "stopped at $i"
until [ $i -eq 3 ]; do i=$((i - 1)); done
if [ $i -eq 3 ] && ! false; then echo three; elif true; then echo other; else echo none; fi
factorial() {
    if [ "$1" -le 1 ]; then
        echo 1
    else
        echo $(($1 * $(factorial $(($1 - 1)))))
    fi
}
echo "10! = $(factorial 10)"
status() { return "$1"; }
status 42 || echo "status $?"

section redirections
echo first > out
echo second >> out
cat < out
{ echo to-out; echo to-err >&2; } > both 2>&1
sort both
ls missing-file 2> errors || echo "ls failed"
[ -s errors ] && echo "an error was written"
exec 3> third
echo "through three" >&3
exec 3>&-
cat third
exec 4< out
read -r line1 <&4
read -r line2 <&4
exec 4<&-
echo "$line2 then $line1"
wc -l < out > count
echo "lines: $(cat count)"
: > out
[ -s out ] || echo emptied
(echo x > /dev/full) 2> /dev/null || echo "a full device"

section here-documents
value=expanded
cat << END
plain and $value and $((2 + 3))
END
cat << 'END'
not $value at all
END
cat <<- END
	tabs are taken away
	END
while read -r a b; do
    echo "$b before $a"
done << LIST
1 one
2 two
LIST

section pipelines
seq 1 20 | grep -v 3 | sed 's/^/n/' | tail -n 3
printf 'pear\napple\nfig\napple\n' | sort | uniq -c | awk '{print $2 ":" $1}'
echo hello | tr a-z A-Z | rev | cut -c 1-3
true | false && echo "not reached" || echo "the last one counts"
yes | head -n 2
seq 100000 | awk '{s += $1} END {printf "%.0f\n", s}'
seq 5 | while read -r n; do echo "$n squared is $((n * n))"; done | tail -n 1

section background jobs
(sleep 0.2; echo slow) > slow.txt &
slow=$!
(echo fast) > fast.txt &
fast=$!
wait $fast && echo "fast: $(cat fast.txt)"
wait $slow && echo "slow: $(cat slow.txt)"
sh -c 'exit 7' &
wait $! || echo "exit $?"
sleep 30 &
victim=$!
kill $victim
wait $victim 2> /dev/null || echo "killed: $?"
for n in 9 1 5; do
    (sleep 0.$n; echo "job $n" >> finished) &
done
wait
cat finished

section traps
sh -c 'trap "echo cleaned up" EXIT; echo working; exit 3'
echo "status $?"
sh -c 'trap "echo got USR1" USR1; kill -USR1 $$; echo after'
sh -c 'trap "" TERM; kill -TERM $$; echo "ignored TERM"'
sh -c 'trap "echo interrupted; exit 9" HUP; kill -HUP $$; sleep 5; echo "not reached"'
echo "status $?"
sh -c 'kill -SEGV $$' 2> /dev/null
echo "status $?"

section subshells
x=outer
(x=inner; cd /; echo "$x in $(pwd)")
echo "$x, still here: $([ -f count ] && echo yes)"
result=$(echo one; echo two | (read -r w; echo "read $w"))
echo "$result"
echo $(echo nested $(echo $(echo deep)))
(exit 5)
echo "subshell gave $?"
{ false; true; } && echo grouped

section files
mkdir -p tree/a/b tree/c
for f in tree/one.txt tree/a/two.txt tree/a/b/three.txt tree/c/four.log; do
    echo "content of $f" > "$f"
done
find tree -type f | sort
find tree -name '*.txt' | sort | xargs wc -l | tail -n 1
find tree -name '*.txt' -print0 | sort -z | xargs -0 grep -h content
find tree -type d -exec chmod 750 {} +
stat -c '%a %n' tree/a tree/c
ln -s a/two.txt tree/link
cat tree/link
cp -r tree copy
diff -r tree copy && echo "equal trees"
echo changed >> copy/one.txt
diff -q tree/one.txt copy/one.txt
mv copy/c copy/d
ls copy
rm -r copy
[ -e copy ] || echo "copy is gone"
echo tree/*/*.txt tree/[co]*
test tree/one.txt -ef tree/../tree/one.txt && echo "same file"

section archives
tar cf - tree | gzip -9 > tree.tar.gz
gzip -t tree.tar.gz && echo "archive is sound"
tar tzf tree.tar.gz | sort | head -n 4
mkdir unpacked
(cd unpacked && gzip -dc ../tree.tar.gz | tar xf -)
diff -r tree unpacked/tree && echo "unpacked the same"
find tree -type f | sort | cpio -o -H newc 2> /dev/null | gzip | gzip -dc | cpio -t 2> /dev/null | wc -l
find tree -type f | sort | xargs cat | sha256sum

section awk, sed, sort
cat > table << END
bolt 12 0.10
nut 7 0.05
gear 3 4.50
bolt 5 0.12
END
awk '{n[$1] += $2; v[$1] += $2 * $3} END {for (k in n) printf "%-5s %3d %6.2f\n", k, n[k], v[k]}' table | sort
awk 'BEGIN {while ((getline line < "table") > 0) c++; print c, toupper("rows"), substr("abcdef", 2, 3), index("haystack", "st")}'
awk '{print length($0), NF, $NF | "sort -n"}' table
sed -n -e '2,3p' -e '$=' table
sed -e '/^bolt/!d' -e 's/ \([0-9]*\) / (\1) /' table
sed ':a; N; $!ba; s/\n/,/g' table
sort -k2,2n table | head -n 2
sort -t ' ' -k1,1 -k2,2nr table | cut -d ' ' -f 1,2 | paste -s -d ';' -
join_lines() { tr '\n' ' '; echo; }
seq 12 | sort -n -r | join_lines
seq 12 | sort | join_lines

section evaluation and functions
eval 'made_by_eval="$name-$((6 * 7))"'
echo "$made_by_eval"
counter() { count=$((${count_so_far:-0} + 1)); count_so_far=$count; }
counter; counter; counter
echo "counted $count_so_far"
local_variable() { local x=inside; echo "$x"; }
x=outside
local_variable
echo "$x"
getopt_test() {
    OPTIND=1
    while getopts ab:c option; do
        case $option in
        b) printf 'b=%s ' "$OPTARG" ;;
        *) printf '%s ' "$option" ;;
        esac
    done
    shift $((OPTIND - 1))
    echo "rest: $*"
}
getopt_test -a -b value -c rest of it
command -v no-such-command || echo "no such command"
no-such-command 2> /dev/null || echo "status $?"
[ -r /proc/self/status ] && grep -c '^Pid:' /proc/self/status
printf '%s\n' "$(date -u -d @1000000000 '+%Y-%m-%d %H:%M:%S')"

section done
trap 'echo "the end"' EXIT
exit 0
