#!/bin/sh
# curl against a gate: curl.sh BASE. Each line of output is "ok CHECK", "FAIL CHECK: WHY" or "version V".
set -u
base=$1
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
order=$base/api/seckill/1001/order
sold=$base/api/seckill/2002/order

# is CHECK GOT WANT
is() {
	if [ "$2" = "$3" ]; then echo "ok $1"; else echo "FAIL $1: got $(printf '%s' "$2" | head -c 300), want $3"; fi
}
get() { curl -sS --max-time 60 "$@" 2>&1; }

echo "version $(curl --version | head -n 1 | cut -d' ' -f1,2)"
head -c 67108864 /dev/urandom >"$dir/large"
large="67108864 $(sha256sum "$dir/large" | cut -d' ' -f1)"
hello="5 $(printf hello | sha256sum | cut -d' ' -f1)"

is "GET" "$(get "$base/page")" "page"
is "GET, HTTP/1.0" "$(get --http1.0 "$base/page")" "page"
is "POST" "$(get -d hello "$base/echo")" "$hello"
is "POST, HTTP/1.0" "$(get --http1.0 -d hello "$base/echo")" "$hello"
is "POST in chunks" "$(get -H 'Transfer-Encoding: chunked' -d hello "$base/echo")" "$hello"
is "Expect: 100-continue" "$(get -H 'Expect: 100-continue' -d hello "$base/echo")" "$hello"
get -v -H 'Expect: 100-continue' -d hello "$base/echo" | grep -q '^< HTTP/1.1 100 Continue'
is "100 is said" $? 0
get -o /dev/null -d hello "$sold" # the first look at a SKU comes after the body
get -v -H 'Expect: 100-continue' -d hello "$sold" | grep -q '^< HTTP/1.1 100 Continue'
is "100 is not said to an order that is rejected" $? 1
is "keep-alive" "$(get -o /dev/null -o /dev/null -w '%{num_connects}' "$base/page" "$base/page")" "10"
is "64 MiB up" "$(get -T "$dir/large" "$base/echo")" "$large"
is "64 MiB up in chunks" "$(get -T - "$base/echo" <"$dir/large")" "$large"
is "64 MiB up, HTTP/1.0" "$(get --http1.0 -T "$dir/large" "$base/echo")" "$large"
want=$(get -o /dev/null -w '%header{x-sha256}' "$base/bytes?n=67108864")
is "64 MiB down" "$(get "$base/bytes?n=67108864" | sha256sum | cut -d' ' -f1)" "$want"
is "64 MiB down in chunks" "$(get "$base/bytes?n=67108864&chunked" | sha256sum | cut -d' ' -f1)" "$want"
is "64 MiB down, HTTP/1.0" "$(get --http1.0 "$base/bytes?n=67108864" | sha256sum | cut -d' ' -f1)" "$want"
is "4 MiB down without a length, HTTP/1.0" "$(get --http1.0 "$base/bytes?n=4194304&chunked" | wc -c)" "4194304"
is "409 is readable" "$(get -o "$dir/body" -w '%{http_code} %header{x-sluice-reason} %header{content-type}' -d hello "$sold")" "409 sold_out application/problem+json"
grep -q '"reason":"sold_out"' "$dir/body"
is "409 has a body" $? 0
is "409 on HTTP/1.0" "$(get --http1.0 -o /dev/null -w '%{http_code}' -d hello "$sold")" "409"
is "409 while 64 MiB are on their way" "$(get -o "$dir/body" -w '%{http_code}' -H 'Expect:' -T "$dir/large" -X POST "$sold")" "409"
is "413 while 64 MiB are on their way" "$(get -o "$dir/body" -w '%{http_code}' -H 'Expect:' -T "$dir/large" -X POST "$order")" "413"
set --
for _ in $(seq 60); do set -- "$@" -o "$dir/body" "$order"; done
is "429 is readable" "$(get -w '%{http_code} %header{x-sluice-reason}\n' -d hello "$@" | tail -n 1)" "429 conn_rate"
is "a page for a browser" "$(get -o /dev/null -w '%header{content-type}' -H 'Accept: text/html' -d hello "$sold")" "text/html; charset=utf-8"
is "HEAD" "$(get -I -w '%{http_code}' -o "$dir/head" "$base/page")" "200"
grep -qi '^content-length: 4' "$dir/head"
is "HEAD tells the length" $? 0
is "204" "$(get -w '%{http_code} %{size_download}' "$base/empty")" "204 0"
is "304" "$(get -H 'If-None-Match: "page"' -w '%{http_code} %{size_download}' "$base/page")" "304 0"
is "SSE" "$(get -N "$base/sse" | { IFS= read -r first; get -o /dev/null "$base/sse/next"; cat >"$dir/rest"; printf '%s' "$first"; })" "data: 1"
