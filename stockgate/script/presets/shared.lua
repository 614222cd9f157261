-- Reads a whole number as strictly as INCRBY does, of at most 15 digits, which Lua still counts one by one. What is missing
-- is nil; what is no such number is an error, and never 0 or plenty.
local function whole(v)
	if not v then return nil end
	if v ~= '0' and not string.find(v, '^-?[1-9]%d*$') or #string.gsub(v, '-', '') > 15 then
		error('a value of ' .. KEYS[1] .. ' is not an integer of at most 15 digits')
	end
	return tonumber(v)
end

-- The error in a reply to pcall, such as of a command that this user may not run; nil when there is none. Lua undoes
-- nothing by itself.
local function denied(reply)
	return type(reply) == 'table' and reply.err and reply or nil
end
