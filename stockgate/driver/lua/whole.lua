-- Reads a whole number as strictly as INCRBY does. What is missing is nil; what is no number is an error and never 0.
local function whole(v)
	if not v then return nil end
	if not string.match(v, '^-?%d+$') then error('a value of ' .. KEYS[1] .. ' is not an integer') end
	return tonumber(v)
end
