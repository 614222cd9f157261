#!/bin/sh
# ab, wrk and h2load against a gate: load.sh BASE TOOL. It is not their speed that is looked at, but whether any of them
# misses an answer or takes one for broken.
set -u
base=$1 tool=$2
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
sold=$base/api/seckill/2002/order
printf '{}' >"$dir/body"

# is CHECK GOT WANT
is() {
	if [ "$2" = "$3" ]; then echo "ok $1"; else echo "FAIL $1: got $2, want $3"; fi
}
# number NAME: the first number behind a name at the start of a line of what the tool said; 0 without one
number() { sed -n "s/^ *$1[^0-9]*\([0-9]*\).*/\1/p" "$dir/said" | grep . || echo 0; }

case $tool in
ab)
	echo "version $(ab -V | sed -n 's/.*Version \([0-9.]*\).*/ab \1/p')"
	ab -q -n 20000 -c 50 "$base/page" >"$dir/said" 2>&1
	is "GET, a connection each" "$(number 'Complete requests') $(number 'Failed requests')" "20000 0"
	ab -q -k -n 20000 -c 50 "$base/page" >"$dir/said" 2>&1
	is "GET, keep-alive" "$(number 'Complete requests') $(number 'Failed requests') $(number 'Keep-Alive requests')" "20000 0 20000"
	ab -q -k -l -n 20000 -c 50 -p "$dir/body" -T application/json "$sold" >"$dir/said" 2>&1
	is "POST, rejected" "$(number 'Complete requests') $(number 'Failed requests') $(number 'Non-2xx responses') $(number 'Keep-Alive requests')" "20000 0 20000 20000"
	;;
wrk)
	echo "version $(wrk -v 2>&1 | sed -n 's/^wrk \([^ ]*\).*/wrk \1/p')"
	wrk -t2 -c50 -d3s "$base/page" >"$dir/said" 2>&1
	is "GET" "$(grep -c -e 'Socket errors' -e 'Non-2xx' "$dir/said") $(grep -c 'Requests/sec' "$dir/said")" "0 1"
	printf 'wrk.method = "POST"\nwrk.body = "{}"\n' >"$dir/post.lua"
	wrk -t2 -c50 -d3s -s "$dir/post.lua" "$sold" >"$dir/said" 2>&1
	is "POST, rejected" "$(grep -c 'Socket errors' "$dir/said") $(number 'Non-2xx or 3xx responses') more than 0" "0 $(sed -n 's/^ *\([0-9]*\) requests in.*/\1/p' "$dir/said") more than 0"
	;;
h2load)
	echo "version $(h2load --version | cut -d' ' -f1,2)"
	h2load --h1 -n 20000 -c 50 "$base/page" >"$dir/said" 2>&1
	is "GET" "$(grep '^requests:' "$dir/said")" "requests: 20000 total, 20000 started, 20000 done, 20000 succeeded, 0 failed, 0 errored, 0 timeout"
	h2load --h1 -n 20000 -c 50 -m 8 "$base/page" >"$dir/said" 2>&1
	is "GET, eight at a time on a connection" "$(grep '^requests:' "$dir/said")" "requests: 20000 total, 20000 started, 20000 done, 20000 succeeded, 0 failed, 0 errored, 0 timeout"
	h2load --h1 -n 20000 -c 50 -d "$dir/body" "$sold" >"$dir/said" 2>&1
	is "POST, rejected" "$(grep '^requests:' "$dir/said" | sed 's/.* \([0-9]*\) done.* \([0-9]*\) errored, \([0-9]*\) timeout/\1 \2 \3/') $(grep -c ' 20000 4xx' "$dir/said")" "20000 0 0 1"
	;;
esac
