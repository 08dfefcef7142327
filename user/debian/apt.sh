# `apt-get install` and `dpkg -i` of package files without a network, alternatives, removal, `dpkg --verify`
set -e
quiet() {
    "$@" >log 2>&1 || { cat log; exit 1; }
}
quiet apt-get -q -y install hello
hello
dpkg-query -W -f '${Package} ${Status}\n' hello
quiet dpkg -i /var/cache/apt/archives/{libonig5,libjq1,jq}_*.deb
echo '{"a": [1, 2, 3]}' | jq -c '.a | map(. * 2)'
dpkg -L jq | sort
update-alternatives --query editor | grep -E '^(Name|Status|Value)'
quiet apt-get -q -y remove jq
dpkg-query -W -f '${Package} ${Status}\n' jq || true
quiet apt-get -q -y install --reinstall hello
quiet apt-get check
dpkg --verify hello bash coreutils && echo verified
dpkg --audit
ldconfig -p | wc -l
find / -xdev -newer log -path /var/lib/dpkg/info/\* | sort
