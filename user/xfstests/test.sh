# Runs the test $1, and says more of it if it fails: how its output differs, and the ends of its other files.
cd /xfstests || exit
rm -rf "$RESULT_BASE"
./check "$1"
exit=$?
[ $exit = 0 ] && exit
result=$RESULT_BASE/$1
if [ -f "$result.out.bad" ]; then
    echo "--- how the output differs"
    diff -u "tests/$1.out" "$result.out.bad" | head -n 60
fi
for end in full dmesg; do
    [ -s "$result.$end" ] || continue
    echo "--- the end of the file .$end"
    tail -n 40 "$result.$end"
done
exit $exit
