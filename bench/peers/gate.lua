-- What an expert writes for nginx: a counter in Redis, and a memory, shared by the workers, of what is sold out.
-- The counter is all: no order is settled, nothing is given back, no stream tells of it.
gate = {}

local stock = ngx.shared.stock
local tcp = ngx.socket.tcp
local format = string.format

local one_a_person = {{.OneAPerson}}

-- -1: sold out. -2: this person has one already.
local script = one_a_person and [[
local n = tonumber(redis.call('GET', KEYS[1]) or '0')
if n <= 0 then return -1 end
if redis.call('SADD', KEYS[2], ARGV[1]) == 0 then return -2 end
return redis.call('DECR', KEYS[1])]] or [[
local n = tonumber(redis.call('GET', KEYS[1]) or '0')
if n <= 0 then return -1 end
return redis.call('DECR', KEYS[1])]]

-- ask sends one command and reads its one-line reply, or the bulk that it announces.
local function ask(text)
	local s = tcp()
	s:settimeouts(500, 100, 100)
	local ok, err = s:connect("{{.RedisHost}}", {{.RedisPort}}, { pool_size = 512 })
	if not ok then return nil, err end
	_, err = s:send(text)
	if err then return nil, err end
	local line
	line, err = s:receive()
	if not line then return nil, err end
	local kind, rest = line:sub(1, 1), line:sub(2)
	if kind == "$" and rest ~= "-1" then
		rest, err = s:receive(tonumber(rest))
		if not rest then return nil, err end
		s:receive(2)
	end
	s:setkeepalive(60000)
	if kind == "-" then return nil, rest end
	return rest
end

local function command(...)
	local out = { "*" .. select("#", ...) .. "\r\n" }
	for i = 1, select("#", ...) do
		local a = tostring((select(i, ...)))
		out[i + 1] = "$" .. #a .. "\r\n" .. a .. "\r\n"
	end
	return table.concat(out)
end

-- The digest is known after the first call; until then the script goes along.
local evalsha

local function take(sku, user)
	local key, users = "stock:" .. sku, "users:" .. sku
	if not evalsha then
		local sha, err = ask(command("SCRIPT", "LOAD", script))
		if not sha then return nil, err end
		evalsha = format("%s$7\r\nEVALSHA\r\n$40\r\n%s\r\n", one_a_person and "*6\r\n" or "*4\r\n", sha)
	end
	if one_a_person then
		return ask(format("%s$1\r\n2\r\n$%d\r\n%s\r\n$%d\r\n%s\r\n$%d\r\n%s\r\n", evalsha, #key, key, #users, users, #user, user))
	end
	return ask(format("%s$1\r\n1\r\n$%d\r\n%s\r\n", evalsha, #key, key))
end

-- reserve takes one unit, or answers 409. What is sold out is remembered for a second.
function gate.reserve(sku)
	if stock:get("gone:" .. sku) then return ngx.exit(409) end
	local user = ngx.var.cookie_uid
	if one_a_person and not user then return ngx.exit(400) end
	local left, err = take(sku, user)
	if not left then
		if err and err:find("NOSCRIPT", 1, true) then evalsha = nil end
		return ngx.exit(503)
	end
	if left == "-1" then
		stock:set("gone:" .. sku, true, 1)
		return ngx.exit(409)
	end
	if left == "-2" then return ngx.exit(409) end
end

-- check lets through while there is stock, as it was read at most 10 ms ago.
function gate.check(sku)
	local left = stock:get("left:" .. sku)
	if not left then
		left = tonumber((ask(command("GET", "stock:" .. sku))) or "") or 0
		stock:set("left:" .. sku, left)
		if stock:add("seen:" .. sku, true) then stock:rpush("active", sku) end
	end
	if left <= 0 then return ngx.exit(409) end
end

local known = {}

-- refresh reads all active SKUs in one command.
local function refresh(premature)
	if premature then return end
	local sku = stock:lpop("active")
	while sku do
		known[#known + 1] = sku
		sku = stock:lpop("active")
	end
	for _, each in ipairs(known) do
		local left = tonumber((ask(command("GET", "stock:" .. each))) or "")
		if left then stock:set("left:" .. each, left) end
	end
end

-- refresh_forever reads the stock every 10 ms, in one worker for all.
function gate.refresh_forever()
	if ngx.worker.id() == 0 then ngx.timer.every(0.01, refresh) end
end
