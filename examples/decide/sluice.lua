-- Asks Sluice about each request, and tells it what became of those that were forwarded. HAProxy 2.5 or later.

local address = os.getenv("SLUICE_DECIDE") or "127.0.0.1:8092"
local forwarded = {"idempotency-key", "sluice-sku", "sluice-quantity", "sluice-deadline", "sluice-signature",
	"sluice-serial", "sluice-order"}
local hop = {["connection"] = true, ["content-length"] = true, ["transfer-encoding"] = true, ["keep-alive"] = true,
	["date"] = true, ["expect"] = true, ["upgrade"] = true}

-- HAProxy counts the values of a field from 0 in one place and from 1 in another.
local function first(values)
	return values and (values[0] or values[1])
end

local function scheme(txn)
	return txn.f:ssl_fc() == 1 and "https" or "http"
end

core.register_action("sluice_decide", {"http-req"}, function(txn)
	local fields = txn.http:req_get_headers()
	local question, host = {}, nil
	for name, values in pairs(fields) do
		local list = {}
		for i = 0, #values do list[#list + 1] = values[i] end
		if name == "host" then
			host = first(values)
		elseif not hop[name] then
			question[name] = list
		end
	end
	question["x-forwarded-method"] = {txn.f:method()}
	question["x-forwarded-uri"] = {txn.f:pathq()}
	question["x-forwarded-host"] = {host or ""}
	question["x-forwarded-proto"] = {scheme(txn)}
	question["host"] = {"sluice"}
	local answer = core.httpclient():get{url = "http://" .. address .. "/decide", headers = question, timeout = 10000}
	if answer == nil or answer.status == 0 then
		txn:done(txn:reply{status = 503, headers = {["cache-control"] = {"no-store"}}})
		return
	end
	if answer.status == 200 then
		for _, name in ipairs(forwarded) do
			local value = first(answer.headers[name])
			if value then
				txn.http:req_set_header(name, value)
			elseif name ~= "idempotency-key" then
				txn.http:req_del_header(name) -- a client cannot write it
			end
		end
		for _, name in ipairs{"serial", "sku"} do -- for sluice_settle
			local value = first(answer.headers["sluice-" .. name])
			if value then txn:set_var("txn.sluice_" .. name, value) end
		end
		return
	end
	local reply = txn:reply{status = answer.status, body = answer.body}
	for name, values in pairs(answer.headers) do
		if name == "x-sluice-status" then
			reply:set_status(tonumber(first(values))) -- one that this question could not be answered with
		elseif not hop[name] then
			for _, value in pairs(values) do reply:add_header(name, value) end
		end
	end
	txn:done(reply)
end)

-- An answer of HAProxy itself has no status here: the shop may have the order or not.
core.register_fetches("sluice_settle", function(txn)
	local told = {}
	for _, name in ipairs{"serial", "sku", "status", "order"} do
		local value = txn:get_var("txn.sluice_" .. name)
		if value and value ~= "" then told["sluice-" .. name] = {tostring(value)} end
	end
	core.register_task(function() -- the answer does not wait for it
		core.httpclient():post{url = "http://" .. address .. "/settle", timeout = 2000, headers = told}
	end)
	return ""
end)
