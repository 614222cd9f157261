-- What wrk sends: its arguments are method, path, "unique" or "same", a word that no other run has, and "sent", or
-- "asked" for a proxy's question about the request.
local thread_count = 0

function setup(thread)
	thread:set("number", thread_count)
	thread_count = thread_count + 1
end

local head, tail, fixed
local n = 0

function init(args)
	local method, path, unique, run = args[1], args[2], args[3], args[4]
	local length = method == "POST" and "Content-Length: 0\r\n" or ""
	local asked = ""
	if args[5] == "asked" then
		asked = "X-Forwarded-Method: " .. method .. "\r\nX-Forwarded-Uri: " .. path ..
			"\r\nX-Forwarded-Host: shop.example\r\nX-Forwarded-For: 192.0.2.1\r\n"
		method, path, length = "GET", "/decide", ""
	end
	head = method .. " " .. path .. " HTTP/1.1\r\nHost: shop.example\r\nUser-Agent: wrk\r\nAccept: application/json\r\n" .. length .. asked .. "Cookie: uid="
	tail = "\r\n\r\n"
	if unique == "unique" then
		head = head .. run .. "-" .. number .. "-"
	else
		fixed = head .. run .. tail
	end
end

function request()
	if fixed then return fixed end
	n = n + 1
	return head .. n .. tail
end

function done(summary, latency)
	local e = summary.errors
	io.write(string.format("measured %d %d %d %d %d %d\n", summary.requests, summary.duration, latency:percentile(50),
		latency:percentile(99), e.status, e.connect + e.read + e.write + e.timeout))
end
