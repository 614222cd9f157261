-- tick takes in what an instance knows of stock and sale, and tells the state of a room.
-- KEYS: the room, its steps, passes that an order is expected of, passes that are good, a HyperLogLog of people, passes
-- of people who were called lately
-- ARGV: starts, ends of the caller's sale (Unix ms, 0 = none), news: "started" where the caller has not read the room
-- before, "moved" where its sale has other hours than it has told, else ""; 1 where the stock is known, its epoch, its
-- version, free, held, for how many ms a unit is held at most, steps that the caller has, "draw" or "fifo", a seed and
-- its commitment for a new draw, a fingerprint of the stock's SKUs, a round of the beacon (0 = no beacon), when it is
-- published, ms from one round to the next, the key of the beacon, which sale and draw the steps of the caller are of,
-- the last number that the caller has heard of, when the room of this number was opened, starts and ends that the room
-- had when the caller read it, and their number, for how many ms an order is expected, and a pass may be claimed
-- Reply: nil where the room is not there, else its fields, passes that an order is expected of, this clock in ms, steps
-- that there were, those that the caller lacks, people, passes of people who were called lately.

if redis.call('EXISTS', KEYS[1]) == 0 then return false end
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local function get(field) return tonumber(redis.call('HGET', KEYS[1], field) or '0') end
local function set(field, value) redis.call('HSET', KEYS[1], field, string.format('%.0f', value)) end
local function has(field) return redis.call('HEXISTS', KEYS[1], field) == 1 end
local starts, ends, news = tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV[3]

-- Hours have a number, which only rises: an instance that knows a higher one than Redis tells them again. A draw that
-- has begun keeps its start, unless that is moved into the future.
local begun, moved = has('early') or has('drawn_by'), false
local function tell(starts, ends, number)
  moved = moved or get('starts') ~= starts and (not begun or now < starts)
  if not begun or now < starts then set('starts', starts) end
  set('ends', ends)
  set('said_hours', number)
end
local same = string.match(ARGV[19], '^%d+') == string.format('%.0f', get('opened')) -- the caller has read this room
if same and tonumber(ARGV[24]) > get('said_hours') then
  tell(tonumber(ARGV[22]), tonumber(ARGV[23]), tonumber(ARGV[24]))
end
-- The room of a sale that is over is not that of the next one: the caller makes it anew. Where it has told this room
-- the hours of its sale, another instance has told an earlier end: the caller tells its own again.
local over = get('ends')
if over > 0 and now >= over and starts >= over then
  if news ~= '' or not same then return false end
  news = 'moved'
end
-- Only news are told: an instance that has not heard of other hours yet, or of the next sale, must not bring those
-- before back.
local told = moved
if news ~= '' and (ends == 0 or now < ends) then
  tell(starts, ends, math.max(now, get('said_hours') + 1))
  told = moved or get('starts') == starts
end
starts = get('starts')

-- Steps that are later than now, and passes that no clock that is right would keep for so long, are of one that ran
-- ahead: they are of now.
for i = -1, -redis.call('LLEN', KEYS[2]), -1 do
  local ahead, rest = string.match(redis.call('LINDEX', KEYS[2], i), '^(%d+)(.*)$')
  if tonumber(ahead) <= now then break end
  redis.call('LSET', KEYS[2], i, string.format('%.0f', now) .. rest)
end
local latest = string.format('%.0f', now + tonumber(ARGV[25]))
for _, passes in ipairs({KEYS[3], KEYS[6]}) do
  for _, user in ipairs(redis.call('ZRANGEBYSCORE', passes, '(' .. latest, '+inf', 'LIMIT', 0, 1000)) do
    redis.call('ZADD', passes, latest, user)
  end
end
local gone = redis.call('ZREMRANGEBYSCORE', KEYS[3], '-inf', string.format('%.0f', now))
if gone > 0 then redis.call('HINCRBY', KEYS[1], 'expired', gone) end
redis.call('ZREMRANGEBYSCORE', KEYS[4], '-inf', string.format('%.0f', now))
redis.call('ZREMRANGEBYSCORE', KEYS[6], '-inf', string.format('%.0f', now))

if ARGV[4] == '1' then
  local epoch, version = tonumber(ARGV[5]), tonumber(ARGV[6])
  local was, at = get('epoch'), get('version')
  local other = redis.call('HGET', KEYS[1], 'skus') ~= ARGV[14] -- sums of other SKUs are not compared
  if other then redis.call('HSET', KEYS[1], 'skus', ARGV[14]) end
  if other or epoch > was or epoch == was and version >= at then
    if epoch ~= was then set('epoch', epoch) end
    if version ~= at then set('version', version) end
    local free, held = tonumber(ARGV[7]), tonumber(ARGV[8])
    if get('free') ~= free then set('free', free) end
    if get('held') ~= held then set('held', held) end
    if free > 0 or held == 0 then
      redis.call('HDEL', KEYS[1], 'returns')
    elseif get('returns') == 0 or get('returns') > now + tonumber(ARGV[9]) then
      set('returns', now + tonumber(ARGV[9])) -- a later one is of a clock that ran ahead
    end
  end
  if math.abs(now - get('stock_at')) > 500 then set('stock_at', now) end
end

-- Order, seed and beacon stand from the start on. Before it, an instance that has started decides. Calls and a draw that
-- have begun are not those of a later start: all are called anew, and drawn by a seed that was not published.
if told and (now < starts or moved or get('issued') == 0 and not begun) then
  if begun or now < starts and get('called') > 0 then
    redis.call('DEL', KEYS[2], KEYS[6])
    redis.call('HSET', KEYS[1], 'serving', 0, 'threshold', 0, 'called', 0, 'claimed', 0, 'steps', 0)
    if has('seed') then redis.call('HSET', KEYS[1], 'seed', ARGV[12], 'commit', ARGV[13]) end
    redis.call('HINCRBY', KEYS[1], 'moves', 1)
    redis.call('HINCRBY', KEYS[1], 'redrawn', 1)
    redis.call('HDEL', KEYS[1], 'early', 'early_people', 'drawn_by', 'beacon')
  end
  if news == 'started' and (now < starts or get('issued') == 0) then
    redis.call('HDEL', KEYS[1], 'round', 'due', 'period', 'key')
    if ARGV[11] == 'fifo' then
      redis.call('HDEL', KEYS[1], 'seed', 'commit')
    else
      if not has('seed') then redis.call('HSET', KEYS[1], 'seed', ARGV[12], 'commit', ARGV[13]) end
      if ARGV[15] ~= '0' then
        redis.call('HSET', KEYS[1], 'round', ARGV[15], 'due', ARGV[16], 'period', ARGV[17], 'key', ARGV[18])
      end
    end
  end
  -- The round is the first one after the start and after now: its randomness is not known yet.
  if has('round') then
    local more = math.floor((math.max(starts, now) - get('due')) / get('period')) + 1
    more = math.max(more, 1 - get('round'))
    set('due', get('due') + more * get('period'))
    set('round', get('round') + more)
  end
end
-- A replica that took over may not have heard of the last numbers: who has one would never be called, and others would
-- have the same.
if get('opened') == tonumber(ARGV[21]) and get('issued') < tonumber(ARGV[20]) then set('issued', tonumber(ARGV[20])) end
if now >= starts and has('seed') then
  if not has('early') then
    set('early', get('issued'))
    if not has('lost') then set('early_people', redis.call('PFCOUNT', KEYS[5])) end
  end
  if get('round') == 0 and not has('drawn_by') then redis.call('HSET', KEYS[1], 'drawn_by', 'shop') end
end

local count, length = get('steps'), redis.call('LLEN', KEYS[2])
local first, seen = count - length, tonumber(ARGV[10])
if string.format('%.0f %.0f', get('opened'), get('redrawn')) ~= ARGV[19] then seen = 0 end
local from = 0 -- the last one that the caller has may have changed
if seen > 0 and seen <= count then from = math.max(seen - 1 - first, 0) end
return {redis.call('HGETALL', KEYS[1]), redis.call('ZCARD', KEYS[3]), string.format('%.0f', now),
  string.format('%.0f', count), redis.call('LRANGE', KEYS[2], from, -1),
  redis.call('PFCOUNT', KEYS[5]), redis.call('ZCARD', KEYS[6])}
