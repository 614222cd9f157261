-- What the scripts of the records share. KEYS: records, payloads, due, owed, tries, sums, skus; all in one slot.
-- A record is state|quantity|time|user under "sku serial", as the ledger writes it: H held until the time, C confirmed,
-- X released and R refunded: tombstones. Its payload is what the script that gives back needs. owed has those whose
-- units are to be given back, by the time of the next try; tries has tries|since|begun of each. sums has what is held
-- and sold of each SKU, and how many records it has. A SKU is in skus as long as it has any.
local R, D, X, O, T, N, S = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7]

local function decode(record)
	local state, quantity, time, user = string.match(record, '^([HCXR])|(%d+)|(%d+)|(.*)$')
	if not state then error('a record of an order cannot be read', 0) end
	return state, quantity, time, user
end

-- count adds records of a SKU, or takes them away.
local function count(sku, n)
	if redis.call('HINCRBY', N, 'all ' .. sku, n) > 0 then
		redis.call('SADD', S, sku)
	else
		redis.call('HDEL', N, 'all ' .. sku, 'held ' .. sku, 'sold ' .. sku)
		redis.call('SREM', S, sku)
	end
end

local function sum(sku, state, delta)
	local name = state == 'H' and 'held ' or state == 'C' and 'sold '
	if name then redis.call('HINCRBY', N, name .. sku, delta) end
end
