-- divide takes what one instance is asked for of a budget, and tells which part of it falls to this instance.
-- KEYS: the budget, a hash: of each instance what it was told last, and "#seed" and "#born"
-- ARGV: the instance, for how many milliseconds it lives after this, a seed for a budget that is new, the base part
-- that it has (-1 = none), and for each busy key: its name, how often it is asked for (-1 = not known), a part that it
-- cannot give away yet, the part that it has.
-- Reply: seed, instances, base part, and each busy key with its part in turn.
--
-- All instances together have about 2000 busy keys, so that a call reads no more, however many instances there are.
--
-- A part shrinks at once. It grows by no more than the parts of the others leave. After Redis has lost a budget those
-- who had a part do not grow for a while: others who have one may not have said so yet.

local clock = redis.call('TIME')
local now, life = clock[1] * 1000 + math.floor(clock[2] / 1000), tonumber(ARGV[2])
local id, seed, had, born = ARGV[1], ARGV[3], tonumber(ARGV[4]), nil
local settles = math.max(4000, 1.6 * life) -- milliseconds

local others, n = {}, 1

local raw = redis.call('HGETALL', KEYS[1])
for i = 1, #raw, 2 do
  local field, value = raw[i], raw[i + 1]
  if field == '#seed' then seed = value
  elseif field == '#born' then born = tonumber(value)
  elseif field ~= id then
    local ok, other = pcall(cmsgpack.unpack, value)
    local lives = ok and (other.life or life)
    if ok and other.at > now - lives and other.at <= now + lives then
      n = n + 1
      others[#others + 1] = other
    else
      redis.call('HDEL', KEYS[1], field)
    end
  end
end
born = born and math.min(born, now) -- a later one is of a clock that ran ahead
if not born then
  born = had > 0 and now or 0 -- of one who comes back to an empty Redis, or of the first of all
  redis.call('HSET', KEYS[1], '#seed', seed, '#born', string.format('%d', born))
end

local most = math.max(1, math.min(512, math.floor(2000 / n))) -- busy keys
local keys, known, elsewhere = {}, 0, {}
local function busy(k)
  if not keys[k] and known < most then keys[k], known = {-1, 0, had}, known + 1 end
end
for _, other in ipairs(others) do
  for k in pairs(other.keys) do
    if not keys[k] then
      keys[k] = true
      elsewhere[#elsewhere + 1] = k
    end
  end
end
keys = {}
if #elsewhere > most then table.sort(elsewhere) end -- all instances drop the same keys
for i = 1, math.min(#elsewhere, most) do busy(elsewhere[i]) end
for i = 5, #ARGV, 4 do
  busy(ARGV[i])
  if keys[ARGV[i]] then keys[ARGV[i]] = {tonumber(ARGV[i + 1]), tonumber(ARGV[i + 2]), tonumber(ARGV[i + 3])} end
end

-- part is target, within what is left, and within what it was where the budget is new.
local function part(target, was, left)
  if had > 0 and now - born < settles then target = math.min(target, math.max(was, 0)) end
  return math.max(0, math.min(target, left))
end

local sum = 0
for _, other in ipairs(others) do sum = sum + other.base end
local base = part(1 / n, had, 1 - sum)

local mine, reply = {}, {seed, tostring(n), string.format('%.17g', base)}
for k, e in pairs(keys) do
  local asked, held, was = e[1], e[2], e[3]
  local total, left, target = math.max(asked, 0), 1, 1 / n
  for _, other in ipairs(others) do
    local o = other.keys[k]
    if o then
      total, left = total + math.max(o[1], 0), left - o[2]
    else
      left = left - other.base
    end
  end
  if total > 0 then
    -- A fiftieth is kept for instances that are not asked for it: their next request finds a token.
    target = asked < 0 and was or 0.02 / n + 0.98 * asked / total
  end
  local got = math.max(part(target, was, left), math.min(held, math.max(was, 0)))
  if asked ~= 0 or total > 0 or math.abs(got - base) > 1e-6 then -- else it is as any other key
    mine[k] = {asked, got}
    reply[#reply + 1] = k
    reply[#reply + 1] = string.format('%.17g', got)
  end
end
redis.call('HSET', KEYS[1], id, cmsgpack.pack({at = now, life = life, base = base, keys = mine}))
redis.call('PEXPIRE', KEYS[1], 2 * life)
return reply
