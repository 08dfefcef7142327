# A boot begins with this: the suite's place (in which tests put links to what they should print), a /tmp in memory, and the users that tests want.
set -e
mkdir -p /xfstests /mnt/test /mnt/scratch
mount -t ext4 /dev/vdc /xfstests
mount -t tmpfs -o mode=1777 tmpfs /tmp
number=1000
for user in fsgqa fsgqa2 123456-fsgqa; do
    number=$((number + 1))
    echo "$user:x:$number:$number::/tmp:/bin/bash" >>/etc/passwd
    echo "$user:*:19000:0:99999:7:::" >>/etc/shadow
    echo "$user:x:$number:" >>/etc/group
done
