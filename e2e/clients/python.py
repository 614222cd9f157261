"""http.client and, where it is installed, requests against a gate: python3 python.py BASE."""
import hashlib, http.client, os, sys, urllib.parse

base = sys.argv[1]
host = urllib.parse.urlparse(base).netloc
order, sold = "/api/seckill/1001/order", "/api/seckill/2002/order"
large = os.urandom(64 << 20)
try:
    import requests
except ImportError:
    requests = None
print("version python", sys.version.split()[0] + ",", "requests " + requests.__version__ if requests else "no requests")


def told(b):
    return "%d %s" % (len(b), hashlib.sha256(b).hexdigest())


def check(name, got, want):
    try:
        got = got()
        print("ok " + name if got == want else "FAIL %s: got %.300r, want %r" % (name, got, want))
    except Exception as e:
        print("FAIL %s: %r" % (name, e))


def pieces(b):
    for i in range(0, len(b), 1 << 16):
        yield b[i : i + (1 << 16)]


connection = http.client.HTTPConnection(host, timeout=60)


def plain(method, path, body=None, headers={}):
    connection.request(method, path, body, headers)
    r = connection.getresponse()
    return r.status, {k.lower(): v for k, v in r.getheaders()}, r.read()


session = requests.Session() if requests else None


def easy(method, path, body=None, headers={}):
    r = session.request(method, base + path, data=body, headers=headers, timeout=60)
    return r.status_code, {k.lower(): v for k, v in r.headers.items()}, r.content


def many(ask):
    for _ in range(60):
        r = ask("POST", order, b"{}")
        if r[0] == 429:
            break
    return r[0], r[1].get("x-sluice-reason"), int(r[1].get("retry-after", 0)) > 0, b'"reason":"conn_rate"' in r[2]


def down(ask, path):
    r = ask("GET", path)
    return hashlib.sha256(r[2]).hexdigest() == r[1]["x-sha256"]


def rejection(r):
    return r[0], r[1].get("x-sluice-reason"), b'"reason":"sold_out"' in r[2]


clients = [("http.client", plain)] + ([("requests", easy)] if requests else [])
for name, ask in clients:
    check(name + ": GET", lambda: ask("GET", "/page")[2], b"page")
    check(name + ": POST", lambda: ask("POST", "/echo", b"hello")[2].decode(), told(b"hello"))
    check(name + ": 64 MiB up", lambda: ask("PUT", "/echo", large)[2].decode(), told(large))
    check(name + ": 64 MiB up in chunks", lambda: ask("PUT", "/echo", pieces(large))[2].decode(), told(large))
    check(name + ": 64 MiB down", lambda: down(ask, "/bytes?n=67108864"), True)
    check(name + ": 64 MiB down in chunks", lambda: down(ask, "/bytes?n=67108864&chunked"), True)
    check(name + ": 409 is readable", lambda: rejection(ask("POST", sold, b"{}")), (409, "sold_out", True))
    check(name + ": HEAD", lambda: [(r[0], r[1]["content-length"], r[2]) for r in [ask("HEAD", "/page")]], [(200, "4", b"")])
    check(name + ": 204", lambda: [(r[0], r[2]) for r in [ask("GET", "/empty")]], [(204, b"")])
    check(name + ": 304", lambda: [(r[0], r[2]) for r in [ask("GET", "/page", None, {"If-None-Match": '"page"'})]], [(304, b"")])


def events():
    c = http.client.HTTPConnection(host, timeout=60)
    c.request("GET", "/sse")
    r = c.getresponse()
    first = r.readline()
    plain("GET", "/sse/next")
    return first + r.read()


def old():
    c = http.client.HTTPConnection(host, timeout=60)
    c._http_vsn, c._http_vsn_str = 10, "HTTP/1.0"
    c.request("GET", "/bytes?n=1048576&chunked", headers={"Host": host})  # it would leave Host out
    r = c.getresponse()
    return len(r.read()), r.getheader("transfer-encoding"), r.will_close


check("http.client: SSE", events, b"data: 1\n\ndata: 2\n\n")
check("http.client: HTTP/1.0", old, (1048576, None, True))
# A connection at its limit is of no use to the other checks.
for name, ask in clients:
    check(name + ": 429 is readable", lambda: many(ask), (429, "conn_rate", True, True))
