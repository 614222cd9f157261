-- sweep leases overdue holds and forgets released orders whose time has come. It releases nothing, so that neither the
-- numbers nor the version change. A refunded order stays until the sale is archived: the shop has an order under that
-- serial, which a user who sends no key would be given again.
-- ARGV: events, now, lease, the most holds, so many more are looked at
-- Reply: 1 when more is due than was done, else 0; then serial, record, ... of the holds. Nothing when nothing is due,
-- and without a ledger.

local now, lease, most, more = ARGV[2], ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5])
local stock = load()
if not stock then return end
forget(stock)
if stock.due == 0 then return end
local serials = redis.call('ZRANGEBYSCORE', X, '-inf', now, 'LIMIT', 0, most + more)
if #serials == 0 then return end
local records = redis.call('HMGET', R, unpack(serials))
local holds, leases, gone, over = {#serials == most + more and 1 or 0}, {}, {}, {}
for i, serial in ipairs(serials) do
	local state = records[i] and decode(serial, records[i]) or 'none'
	if state == 'H' then
		if #leases < 2 * most then
			push(leases, lease, serial)
			push(holds, serial, records[i])
		else
			holds[1] = 1
		end
	elseif state == 'X' or state == 'R' then
		over[#over + 1] = serial
		if state == 'X' then gone[#gone + 1] = serial end
	else
		fault(X, 'it waits for ' .. serial .. ', which is neither held nor released')
	end
end
if #leases > 0 then redis.call('ZADD', X, unpack(leases)) end
if #gone > 0 then redis.call('HDEL', R, unpack(gone)) end
if #over > 0 then redis.call('ZREM', X, unpack(over)) end
return holds
