-- Decides admissions and settles earlier ones, all on one server, in one step.
--
-- In front of it stands a prelude with two functions: now_us(), the server's time in microseconds
-- since 1970, and ttl_ms(us), the time to live of a key that says nothing new after so many
-- microseconds. The product's is prelude.lua; tests have one whose time they set.
--
-- KEYS    of each bucket in the plan: its counters; its leases, if the plan says so; its logs
-- ARGV[1] the plan, little-endian:
--   d not_after        a later run changes nothing and answers {0, now}
--   d birth            tells buckets made by this call from others (birth + place in the plan)
--   H n, n specs:      B m, m times: d name, d quota, d capacity
--   H n, n buckets:    B spec, if that is all there is to say; else 0, and behind them all
--                      H spec, B leases (1: has the key), B m, H size, m times: d window of a log,
--                      text (empty: the key is the text)
--   H n, n changes:    H bucket, H spec, d birth (0: any), 16 bytes id, B m, m actions:
--                      B action, d name of the limit, d amount, d when
--   H n, n admissions: H count, B terms (0: those of the one before), H bucket, [terms],
--                      m - 1 more times: H bucket; [16 bytes id]
--   terms:             B m, B flags (1: an id follows, 2: only look), d lease ttl, m buckets:
--                      B shadow, B k, k limits: d need (-1: skip), d charge
-- Changes come first, then the admissions, one after another. `count` stands for so many equal
-- admissions.
-- Reply: {1, now, admitted, changed, bucket...}
--   admitted           H of each admission: how many of `count` (65535: undecided)
--   changed            B of each change: 1 done, 0 not (its bucket cannot be read), 2 not, because
--                      another server has the bucket now
--   bucket             of those that admissions ask, in the order of the plan: what its key held
--                      (nil: nothing) if that says it all; else its state after the changes and
--                      before the admissions (see `snapshot`), or "!" and an error ("moved":
--                      another server has it now)
--
-- Every read comes before the first write: scripts do not roll back. What one bucket's key holds
-- concerns the admissions that ask it, and no others.
--
-- There are two ways through it, which take the same steps for a fixed window. Most buckets have
-- no other limits, and are asked once in a call: see `admit_one` and `admit_light`. All else is in
-- `make_full`. What takes time in a script is each command, then each table and each function that
-- is made, then packing: so the light way makes few, and the functions of the full way are made
-- when one is needed.
--
-- The arithmetic is that of src/limit, in doubles: every number is an integer below 2^53, by the
-- choice of ticks. A bucket is a string:
--   B version (1), B flags (1: a text follows), d birth, B n, n limits, [text]
--   a limit: d name, d quota, and by algorithm
--     0 fixed_window   d start, d used
--     1 sliding_window d start, d current, d previous
--     2 sliding_log    d used, d count, d last; entries in a sorted set: id .. d cost, by instant
--     3 token_bucket   d capacity, d last, d level, d rest, d fills
--     4 concurrency    nothing; leases in a sorted set: id, by expiry
--   name = window in microseconds * 64 + unit * 8 + algorithm
local su, sp, sub, byte, format = struct.unpack, struct.pack, string.sub, string.byte, string.format
local floor, ceil, min, max = math.floor, math.ceil, math.min, math.max
local call = redis.call

local MAX = 9007199254740991 -- 2^53 - 1
local PRODUCT = 4503599627370495 -- 2^52 - 1
local FIXED, SLIDING, LOG, TOKENS, LEASES = 0, 1, 2, 3, 4

local now = now_us()
local plan = ARGV[1]
local not_after, first_birth, at = su('<dd', plan)
if now > not_after then return {0, now} end

-- A limit as steps need it: see limit::compile.
local function limit_of(name, quota, capacity)
  local kind, window = name % 8, floor(name / 64)
  local limit = {name = name, kind = kind, window = window, quota = quota, capacity = capacity,
                 tick = 1, ticks = window, most = MAX}
  if kind == SLIDING or kind == TOKENS then
    local largest, tick = max(quota, capacity, 1), 1
    while tick * 100 < window and ceil(window / tick) > floor(PRODUCT / largest) do
      tick = tick * 10
    end
    limit.tick = tick
    limit.ticks = kind == TOKENS and ceil(window / tick) or floor(window / tick)
    limit.most = floor(MAX / limit.ticks)
  end
  return limit
end

-- A fixed window. A state has its limit as `l`. See src/limit for the reasons of all steps.

-- Brings a state to now. True if it lay ahead, written before the server's time was set back: then
-- that is written down even if nothing is charged, or those who wait would wait for that time.
local function advance_window(s)
  local start, window = s.start, s.l.window
  if now >= start then
    if now - start < window then return false end
    s.used = 0
  end
  s.start = now - now % window
  return now < start
end

-- How many of `count` equal charges, each after a check of `need`, are admitted. As many as are
-- admitted are charged at once: that is the same as one after another, because nothing else
-- happens in between and no amount is cut off (if one might be: nil).
local function most_in_window(s, need, amount, count)
  local l = s.l
  if need > l.quota or l.quota == 0 or s.used + need > l.quota then return 0 end
  if amount == 0 then return count end
  if s.used + count * amount > l.most then return nil end
  return min(count, floor((l.quota - need - s.used) / amount) + 1)
end

local function charge_window(s, amount) s.used = min(s.used + amount, s.l.most) end

-- What a key holds, as numbers: version, flags, birth, n, and of each limit name, quota, start and
-- used. Nothing unless it is a bucket of the fixed windows of `spec` as they are now or were before.
local function windows_in(raw, spec)
  if #raw ~= spec.size then return nil end
  local numbers = {su(spec.format, raw)}
  local birth = numbers[3]
  if numbers[1] ~= 1 or numbers[2] ~= 0 or numbers[4] ~= spec.n or
     not (birth >= 0 and birth <= MAX and birth % 1 == 0) then return nil end
  for i = 1, spec.n do
    local limit, start, used = spec[i], numbers[4 * i + 3], numbers[4 * i + 4]
    if numbers[4 * i + 1] ~= limit.name or numbers[4 * i + 2] ~= limit.quota or
       not (start >= 0 and start <= now and start % 1 == 0 and
            used >= 0 and used <= MAX and used % 1 == 0) then return nil end
  end
  return numbers
end

-- The same of a bucket that is new.
local function new_windows(birth, spec)
  local numbers = {1, 0, birth, spec.n}
  for i = 1, spec.n do
    numbers[4 * i + 1], numbers[4 * i + 2] = spec[i].name, spec[i].quota
    numbers[4 * i + 3], numbers[4 * i + 4] = 0, 0
  end
  return numbers
end

-- The plan, read as it is carried out.

local specs = {}
local n
n, at = su('<H', plan, at)
for i = 1, n do
  local m
  m, at = su('B', plan, at)
  local spec = {n = m, light = true, windows = true, counted = true}
  for k = 1, m do
    local name, quota, capacity
    name, quota, capacity, at = su('<ddd', plan, at)
    local limit = limit_of(name, quota, capacity)
    local kind = limit.kind
    if kind ~= FIXED then spec.light = false end
    if kind ~= FIXED and kind ~= SLIDING then spec.windows = false end
    if kind == LOG or kind == LEASES then spec.counted = false end
    spec[k] = limit
  end
  if spec.light then spec.format, spec.size = '<BBdB' .. string.rep('dddd', m), 11 + 32 * m end
  specs[i] = spec
end

n, at = su('<H', plan, at)
local spec_of, counters, more, key = {byte(plan, at, at + n - 1)}, {}, {}, 0
at = at + n
for i = 1, n do
  key = key + 1
  counters[i] = KEYS[key]
  if spec_of[i] == 0 then
    local spec, leases, logs, size
    spec, leases, logs, size, at = su('<HBBH', plan, at)
    local about = {spec = specs[spec]}
    if leases == 1 then
      key = key + 1
      about.leases = KEYS[key]
    end
    if logs > 0 then about.logs = {} end
    for _ = 1, logs do
      local window
      window, at = su('<d', plan, at)
      key = key + 1
      about.logs[window] = KEYS[key]
    end
    if size > 0 then
      about.text = sub(plan, at, at + size - 1)
      at = at + size
    end
    more[i] = about
  end
end

-- What the keys of counters hold, by one command. A key of another type is as good as none to it:
-- unless none of those is there, they are read one by one, which tells.
local held = n > 0 and redis.pcall('MGET', unpack(counters)) or {}
local none = {}
for i = 1, n do
  if not held[i] then none[#none + 1] = counters[i] end
end
local sure = #none == 0 or redis.pcall('EXISTS', unpack(none)) == 0

-- The terms of an admission: of how many buckets, whether it is only looked at, has an id; of each
-- bucket whether a refusal of it counts, and of how many limits; of each limit need and charge.
local m, look, has_id, lease_ttl
local shadows, sizes, needs, charges = {}, {}, {}, {}
local light -- one bucket, charged

local function read_terms()
  local flags
  m, flags, lease_ttl, at = su('<BBd', plan, at)
  look, has_id = flags >= 2, flags % 2 == 1
  light = false
  local slots = 0
  for j = 1, m do
    shadows[j], sizes[j], at = su('BB', plan, at)
    for _ = 1, sizes[j] do
      slots = slots + 1
      needs[slots], charges[slots], at = su('<dd', plan, at)
      if needs[slots] >= 0 and charges[slots] > 0 then light = true end
    end
  end
  light = light and m == 1 and flags == 0 and shadows[1] == 0
end

-- What the light way has done to a bucket: all that its key is to hold, when that ends, and whether
-- the key ends then already; or only the new number of what is used.
local values, ends, in_place, used_only = {}, {}, {}, {}

-- Which buckets admissions have asked, and in which order.
local asked, in_order = {}, {}

-- `count` times the same charge of a bucket that nobody has asked yet, by the same steps as all
-- others, with a state that is only lent. How many were admitted; nothing if it takes more than
-- this to decide.
-- This is of one fixed window that goes on: what happens most, without any table.
local lent = {}
local function admit_one(place, limit, count)
  local raw = held[place]
  if not raw or #raw ~= 43 then return nil end
  local version, flags, birth, n_limits, name, quota, start, used = su('<BBdBdddd', raw)
  if version ~= 1 or flags ~= 0 or n_limits ~= 1 or name ~= limit.name or quota ~= limit.quota or
     not (birth >= 0 and birth <= MAX and birth % 1 == 0 and
          start <= now and now - start < limit.window and start >= 0 and start % 1 == 0 and
          used > 0 and used <= MAX and used % 1 == 0) then return nil end
  lent.l, lent.start, lent.used = limit, start, used
  local done = most_in_window(lent, needs[1], charges[1], count)
  if done and done > 0 then
    charge_window(lent, done * charges[1])
    used_only[place] = sp('<d', lent.used)
  end
  return done
end

-- As admit_one, of one or more fixed windows, new or not.
local function admit_light(place, spec, count)
  local raw, numbers = held[place]
  if raw then
    numbers = windows_in(raw, spec)
  elseif sure then
    numbers = new_windows(first_birth + place, spec)
  end
  if not numbers then return nil end
  local done, ended = count, 0
  for i = 1, spec.n do
    local limit, start, used = spec[i], numbers[4 * i + 3], numbers[4 * i + 4]
    if used > 0 then ended = max(ended, start + limit.window) end
    lent.l, lent.start, lent.used = limit, start, used
    advance_window(lent)
    numbers[4 * i + 3], numbers[4 * i + 4] = lent.start, lent.used
    if needs[i] >= 0 then
      local most = most_in_window(lent, needs[i], charges[i], count)
      if not most then return nil end
      if most < done then done = most end
    end
  end
  if done == 0 then return 0 end
  local latest = 0
  for i = 1, spec.n do
    local used = numbers[4 * i + 4]
    if needs[i] >= 0 then used = used + done * charges[i] end
    numbers[4 * i + 4] = used
    if used > 0 then latest = max(latest, numbers[4 * i + 3] + spec[i].window) end
  end
  values[place] = sp(spec.format, unpack(numbers, 1, 4 + 4 * spec.n))
  ends[place], in_place[place] = latest, raw and ended == latest
  return done
end

-- Mostly many buckets live equally long, and a number takes long to become a text.
local ttl_texts = {}
local function ttl_text(us)
  local ttl = ttl_texts[us]
  if not ttl then
    ttl = format('%.0f', ttl_ms(us))
    ttl_texts[us] = ttl
  end
  return ttl
end

-- Buckets that take more than that: those that have a table.
local buckets = {}

local function make_full()
  local UNDECIDED = 65535
  local MOST = 255 * 7 -- numbers of limits that a bucket can hold
  local GIVE_BACK, TAKE, TAKE_IN_WINDOW, REMOVE, PUT, RENEW = 1, 2, 3, 4, 5, 6

  local function text(number) return format('%.0f', number) end

  -- Steps by algorithm.

  local function fill(s)
    s.level, s.rest, s.fills = s.l.capacity, 0, (s.fills + 1) % 262144
  end

  local function whole_at(s)
    local l = s.l
    if l.quota == 0 then return s.last + l.window end
    local ticks = ceil(((l.capacity - s.level) * l.ticks - s.rest) / l.quota)
    return s.last + min(ticks, floor(MAX / l.tick)) * l.tick
  end

  -- See advance_window.
  local advance = {
    [FIXED] = advance_window,
    [SLIDING] = function(s)
      local l, start = s.l, s.start
      s.current, s.previous = min(s.current, l.most), min(s.previous, l.most)
      if now >= start and now - start < l.window then return false end
      local aligned = now - now % l.window
      if now >= start then
        s.previous = aligned - start == l.window and s.current or 0
        s.current = 0
      end
      s.start = aligned
      return now < start
    end,
    [LOG] = function(s) return #s.ahead > 0 end, -- see read_log
    [TOKENS] = function(s)
      local l = s.l
      s.rest = min(s.rest, l.ticks - 1)
      s.level = max(s.level, l.capacity - l.most)
      if now <= s.last or s.level >= l.capacity then
        local ahead = now < s.last
        if s.level >= l.capacity then fill(s) end
        s.last = now
        return ahead
      end
      local ticks = floor((now - s.last) / l.tick)
      if ticks == 0 then return false end
      local filled
      if l.quota > 0 then
        filled = ticks >= ceil(((l.capacity - s.level) * l.ticks - s.rest) / l.quota)
      else
        filled = now >= whole_at(s)
      end
      if filled then
        fill(s)
        s.last = now
        return false
      end
      local refill = ticks * l.quota + s.rest
      s.level = s.level + floor(refill / l.ticks)
      s.rest = refill % l.ticks
      s.last = s.last + ticks * l.tick
      return false
    end,
    [LEASES] = function() return false end, -- see cut_leases
  }

  local fits = {
    [FIXED] = function(s, need)
      local quota = s.l.quota
      return need <= quota and quota > 0 and s.used + need <= quota
    end,
    [SLIDING] = function(s, need)
      local l = s.l
      if need > l.quota or l.quota == 0 then return false end
      local room = l.quota - need - s.current
      if room < 0 then return false end
      if s.previous == 0 then return true end
      local ticks = min(ceil((s.start + l.window - now) / l.tick), l.ticks)
      return ceil(s.previous * ticks / l.ticks) <= room
    end,
    [LOG] = function(s, need)
      local quota = s.l.quota
      if need > quota or quota == 0 then return false end
      local over = s.used + need - quota
      if over > s.over then s.over = over end
      return over <= 0
    end,
    [TOKENS] = function(s, need)
      local l = s.l
      return need <= l.capacity and l.quota > 0 and l.capacity > 0 and s.level >= need
    end,
    [LEASES] = function(s, need)
      local quota = s.l.quota
      return need <= quota and quota > 0 and s.bucket.live + need <= quota
    end,
  }

  local charge = {
    [FIXED] = charge_window,
    [SLIDING] = function(s, amount) s.current = min(s.current + amount, s.l.most) end,
    [LOG] = function(s, amount, id)
      if amount == 0 then return end
      s.added[#s.added + 1] = id .. sp('<d', amount)
      s.used, s.count, s.last = s.used + amount, s.count + 1, now
    end,
    [TOKENS] = function(s, amount) s.level = max(s.level - amount, s.l.capacity - s.l.most) end,
    [LEASES] = function(s, amount, id, ttl)
      if amount == 0 then return end
      local bucket = s.bucket
      bucket.puts[id] = now + ttl
      bucket.live, bucket.latest = bucket.live + 1, max(bucket.latest, now + ttl)
    end,
  }

  -- From when on the state says no more than a fresh one; 0: it does not now.
  local spent_at = {
    [FIXED] = function(s) return s.used > 0 and s.start + s.l.window or 0 end,
    [SLIDING] = function(s)
      if s.current > 0 then return s.start + 2 * s.l.window end
      return s.previous > 0 and s.start + s.l.window or 0
    end,
    [LOG] = function(s) return s.count > 0 and s.last + s.l.window or 0 end,
    [TOKENS] = function(s) return s.level < s.l.capacity and whole_at(s) or 0 end,
    [LEASES] = function(s)
      local bucket = s.bucket -- without a key for them if nobody asks about them
      return bucket.leases and bucket.live > 0 and bucket.latest or 0
    end,
  }

  local function bucket_spent_at(bucket)
    local latest, states = 0, bucket.states
    for i = 1, #states do
      local spent = spent_at[states[i].l.kind](states[i])
      if spent > latest then latest = spent end
    end
    return latest
  end

  -- Reading.

  -- Of so many numbers as a bucket holds them.
  local formats = {}
  local function format_of(count)
    local known = formats[count] or '<BBdB' .. string.rep('d', count - 4)
    formats[count] = known
    return known
  end

  -- An integer that a double holds; not so what somebody else wrote there.
  local function checked(number, least)
    if number and number >= least and number <= MAX and number % 1 == 0 then return number end
    error('holds a number that is none of ours', 0)
  end

  local function cost_of(entry)
    local cost = su('<d', entry, 17)
    return checked(cost, 1)
  end

  -- Of an entry or a lease: what somebody else wrote there may be no integer, and infinite.
  local function instant_of(score) return min(floor(tonumber(score)), MAX) end

  -- Entries that were made in time that is still to come are taken as made now.
  local function read_log(bucket, s)
    s.key = bucket.logs and bucket.logs[s.l.window]
    if not s.key then return end -- nobody asks about it: it stays as it is
    local gone = call('ZRANGEBYSCORE', s.key, '-inf', text(now - s.l.window))
    local count = call('ZCARD', s.key)
    if count ~= s.count then -- entries were lost
      s.used = 0
      for _, entry in ipairs(call('ZRANGE', s.key, 0, -1)) do s.used = s.used + cost_of(entry) end
    end
    for _, entry in ipairs(gone) do s.used = s.used - cost_of(entry) end
    s.count = count - #gone
    if s.count == 0 then return end
    s.last = min(instant_of(call('ZREVRANGE', s.key, 0, 0, 'WITHSCORES')[2]), now)
    s.ahead = call('ZRANGEBYSCORE', s.key, '(' .. text(now), '+inf')
  end

  local function state_of(bucket, l)
    if l.kind == LOG then
      return {l = l, over = 0, added = {}, removed = {}, placed = {}, ahead = {}}
    end
    return {l = l, bucket = bucket}
  end

  local function fresh_state(bucket, limit)
    local kind = limit.kind
    local s = state_of(bucket, limit)
    if kind == FIXED then
      s.start, s.used = 0, 0
    elseif kind == SLIDING then
      s.start, s.current, s.previous = 0, 0, 0
    elseif kind == LOG then
      s.key, s.fresh = bucket.logs and bucket.logs[limit.window], true
      s.used, s.count, s.last = 0, 0, 0
    elseif kind == TOKENS then
      s.last, s.level, s.rest, s.fills = 0, limit.capacity, 0, 0
    end
    advance[kind](s)
    return s
  end

  local function make_fresh(bucket, spec)
    bucket.birth, bucket.layout, bucket.states = first_birth + bucket.place, spec, {}
    bucket.advanced = true
    for i, limit in ipairs(spec) do bucket.states[i] = fresh_state(bucket, limit) end
  end

  -- The limit that stands at place `from` of the numbers, which is not the one that is asked for.
  local function other_limit(numbers, from)
    local name, quota = checked(numbers[from], 0), checked(numbers[from + 1], 0)
    local kind, capacity = name % 8, quota
    if kind > LEASES then error('holds a limit of an unknown kind', 0) end
    if kind ~= LEASES and name < 64 then error('holds a limit without a window', 0) end
    if kind == TOKENS then capacity = checked(numbers[from + 2], 0) end
    return limit_of(name, quota, capacity)
  end

  -- What the numbers say of a limit from place `from` on, and where they go on.
  local read_state = {
    [FIXED] = function(_, l, numbers, from)
      return {l = l, start = checked(numbers[from], 0),
              used = checked(numbers[from + 1], 0)}, from + 2
    end,
    [SLIDING] = function(_, l, numbers, from)
      return {l = l, start = checked(numbers[from], 0), current = checked(numbers[from + 1], 0),
              previous = checked(numbers[from + 2], 0)}, from + 3
    end,
    [LOG] = function(bucket, l, numbers, from)
      local s = state_of(bucket, l)
      s.used, s.count = checked(numbers[from], 0), checked(numbers[from + 1], 0)
      s.last = checked(numbers[from + 2], 0)
      return s, from + 3
    end,
    [TOKENS] = function(_, l, numbers, from)
      return {l = l, last = checked(numbers[from], 0), level = checked(numbers[from + 1], -MAX),
              rest = checked(numbers[from + 2], 0), fills = checked(numbers[from + 3], 0)}, from + 4
    end,
    [LEASES] = function(bucket, l, _, from) return state_of(bucket, l), from end,
  }

  local function same(layout, spec)
    if layout == spec then return true end
    if #layout ~= #spec then return false end
    for i = 1, #layout do
      local a, b = layout[i], spec[i]
      if a.name ~= b.name or a.quota ~= b.quota or a.capacity ~= b.capacity then return false end
    end
    return true
  end

  -- `raw`: what its key holds; false: nothing, or unless that is `certain` another type.
  local function read(bucket, raw, certain)
    if not raw and not certain then raw = call('GET', bucket.key) end
    if bucket.leases then
      bucket.live = call('ZCOUNT', bucket.leases, '(' .. text(now), '+inf')
      bucket.latest = instant_of(call('ZREVRANGE', bucket.leases, 0, 0, 'WITHSCORES')[2] or 0)
    end
    if not raw then
      if bucket.logs then -- of another type: an error
        for _, log in pairs(bucket.logs) do call('ZCARD', log) end
      end
      return
    end
    if #raw < 11 then error('holds something else than a bucket', 0) end
    -- All at once; of a text behind them nothing is used.
    local numbers = {su(format_of(4 + min(floor((#raw - 11) / 8), MOST)), raw)}
    local version, flags, count, from = numbers[1], numbers[2], numbers[4], 5
    if version ~= 1 or flags > 1 then error('holds something else than a bucket', 0) end
    bucket.birth, bucket.raw = checked(numbers[3], 0), raw
    local states, spec, known = {}, bucket.spec, true
    for i = 1, count do
      local l = spec[i]
      local tokens = l and l.kind == TOKENS
      if not l or numbers[from] ~= l.name or numbers[from + 1] ~= l.quota or
         tokens and numbers[from + 2] ~= l.capacity then
        l = other_limit(numbers, from)
        tokens, known = l.kind == TOKENS, false
      end
      states[i], from = read_state[l.kind](bucket, l, numbers, tokens and from + 3 or from + 2)
    end
    bucket.states, bucket.layout = states, spec
    if not known or count ~= #spec then
      local layout = {}
      for i = 1, count do layout[i] = states[i].l end
      bucket.layout = layout
    end
    local size = 11 + 8 * (from - 5)
    if flags == 1 then
      bucket.text = sub(raw, size + 1)
    elseif size ~= #raw then
      error('holds something else than a bucket', 0)
    end
    if bucket.layout == spec and spec.windows then bucket.ends = bucket_spent_at(bucket) end
    if not bucket.logs then return end
    for i = 1, #states do
      if states[i].l.kind == LOG then read_log(bucket, states[i]) end
    end
  end

  -- A bucket is as it was when it was used last until it is known by which limits it goes on.
  local function advance_all(bucket)
    if bucket.advanced then return end
    bucket.advanced = true
    local states = bucket.states
    for i = 1, #states do
      local s = states[i]
      if advance[s.l.kind](s) then bucket.turned = true end
    end
  end

  -- A bucket that is there, for limits that somebody comes with: one that is spent and has others
  -- is as good as gone.
  local function ready(bucket, spec)
    if not bucket.states then return make_fresh(bucket, spec) end
    if same(bucket.layout, spec) or bucket_spent_at(bucket) > now then return end
    make_fresh(bucket, spec)
  end

  -- Takes over the limits of `spec`: counters of the same name stay.
  local function take_over(bucket, spec)
    ready(bucket, spec)
    if same(bucket.layout, spec) then
      bucket.layout = spec
      advance_all(bucket)
      return
    end
    local kept = {}
    for _, s in ipairs(bucket.states) do kept[s.l.name] = s end
    for i, limit in ipairs(spec) do
      local s = kept[limit.name]
      if s then
        s.l = limit
        if advance[limit.kind](s) then bucket.turned = true end -- by the new numbers
      else
        s = fresh_state(bucket, limit)
      end
      bucket.states[i] = s
    end
    for i = #spec + 1, #bucket.states do bucket.states[i] = nil end
    bucket.layout, bucket.advanced = spec, true
  end

  -- Changes.

  local function live_lease(bucket, id)
    local expiry = bucket.puts[id]
    if expiry == nil then expiry = tonumber(call('ZSCORE', bucket.leases, id) or 0) end
    return expiry and expiry > now
  end

  local function put_lease(bucket, id, expiry)
    if not bucket.leases or expiry <= now then return end
    if not live_lease(bucket, id) then bucket.live = bucket.live + 1 end
    bucket.puts[id], bucket.latest = expiry, max(bucket.latest, expiry)
  end

  local function drop_lease(bucket, id)
    if not bucket.leases then return end
    if live_lease(bucket, id) then bucket.live = bucket.live - 1 end
    bucket.puts[id] = false
  end

  local function last_entry(s)
    local from = 0
    while true do
      local entry = call('ZREVRANGE', s.key, from, from, 'WITHSCORES')
      if not entry[1] then return 0 end
      if not s.removed[entry[1]] then return min(instant_of(entry[2]), now) end
      from = from + 1
    end
  end

  local function remove_entry(s, entry, cost)
    if not s.key or s.fresh or s.removed[entry] then return end
    local instant = tonumber(call('ZSCORE', s.key, entry) or nil)
    if not instant or instant + s.l.window <= now then return end
    s.removed[entry] = true
    s.used, s.count = s.used - cost, s.count - 1
    s.last = s.count > 0 and last_entry(s) or 0
  end

  local function add_entry(s, entry, cost, instant)
    if not s.key or instant + s.l.window <= now then return end
    s.placed[entry] = instant
    s.used, s.count, s.last = s.used + cost, s.count + 1, max(s.last, instant)
  end

  local function give_back(s, amount, window)
    local kind = s.l.kind
    if kind == FIXED then
      if window == s.start then s.used = max(s.used - amount, 0) end
    elseif kind == SLIDING then
      if window == s.start then
        s.current = max(s.current - amount, 0)
      elseif window + s.l.window == s.start then
        s.previous = max(s.previous - amount, 0)
      end
    elseif kind == TOKENS and window == s.fills then
      s.level = s.level + amount
      if s.level >= s.l.capacity then fill(s) end
    end
  end

  local function take_in_window(s, amount, window)
    local kind = s.l.kind
    if kind == TOKENS or window == s.start then
      charge[kind](s, amount)
    elseif kind == SLIDING and window + s.l.window == s.start then
      s.previous = min(s.previous + amount, s.l.most)
    end
  end

  local function change(bucket, s, action, amount, when, id, own)
    local kind = s.l.kind
    if action == GIVE_BACK then
      if own then give_back(s, amount, when) end
    elseif action == TAKE then
      if kind ~= LOG and kind ~= LEASES then charge[kind](s, amount) end
    elseif action == TAKE_IN_WINDOW then
      if kind ~= LOG and kind ~= LEASES then take_in_window(s, amount, when) end
    elseif action == REMOVE then
      if kind == LOG then remove_entry(s, id .. sp('<d', amount), amount) end
      if kind == LEASES then drop_lease(bucket, id) end
    elseif action == PUT then
      if kind == LOG then add_entry(s, id .. sp('<d', amount), amount, min(when, now)) end
      if kind == LEASES then put_lease(bucket, id, when) end
    elseif action == RENEW and kind == LEASES then
      put_lease(bucket, id, now + amount)
    end
  end

  local function creates(action) return action ~= GIVE_BACK and action ~= REMOVE end

  -- Whether another server counts the bucket now: see take.lua.
  local function moved(bucket)
    return call('TYPE', bucket.key).ok == 'list' and call('LINDEX', bucket.key, 0) == 'moved'
  end

  local function bucket_at(place)
    local bucket = buckets[place]
    if bucket then return bucket end
    local about = more[place]
    bucket = {place = place, key = counters[place], raw = false, birth = 0, states = false,
              layout = false, spec = about and about.spec or specs[spec_of[place]]}
    if about then
      bucket.leases, bucket.logs, bucket.text = about.leases, about.logs, about.text
      if about.leases then bucket.puts, bucket.live, bucket.latest = {}, 0, 0 end
    end
    buckets[place] = bucket
    local raw = held[place] or false
    if values[place] or used_only[place] then
      read(bucket, values[place] or sub(raw, 1, 35) .. used_only[place], true)
      bucket.raw, bucket.advanced, bucket.dirty = raw, true, true
      if values[place] and not in_place[place] then bucket.ends = nil end
      return bucket
    end
    local ok, why = pcall(read, bucket, raw, sure)
    if not ok then
      bucket.moved = moved(bucket)
      bucket.bad = bucket.moved and 'moved' or type(why) == 'table' and why.err or tostring(why)
    end
    return bucket
  end

  -- Carries out the next change of the plan. What is answered of it: see above.
  local function change_next()
    local place, spec, birth, steps
    place, spec, birth, at = su('<HHd', plan, at)
    local id = sub(plan, at, at + 15)
    steps, at = su('B', plan, at + 16)
    local bucket = bucket_at(place)
    for _ = 1, steps do
      local action, name, amount, when
      action, name, amount, when, at = su('<Bddd', plan, at)
      if not bucket.bad and (bucket.states or creates(action)) then
        ready(bucket, specs[spec])
        advance_all(bucket)
        for _, s in ipairs(bucket.states) do
          if s.l.name == name then
            change(bucket, s, action, amount, when, id, birth == 0 or birth == bucket.birth)
          end
        end
        bucket.dirty, bucket.changed = true, true
      end
    end
    return bucket.moved and '\2' or bucket.bad and '\0' or '\1'
  end

  -- The state that a bucket's admissions start from: "=", d birth, then by algorithm
  --   0: d start, d used   1: d start, d current, d previous   2: d used, d last, entries follow
  --   3: d last, d level, d rest, d fills                      4: d live
  -- and in the end of each log H n, n times: d instant, d cost: its oldest entries, as many as must
  -- leave before what was refused fits.
  local function snapshot(bucket)
    local out = {'=' .. sp('<d', bucket.birth)}
    for i, s in ipairs(bucket.states) do
      local kind = s.l.kind
      if kind == FIXED then
        out[i + 1] = sp('<dd', s.start, s.used)
      elseif kind == SLIDING then
        out[i + 1] = sp('<ddd', s.start, s.current, s.previous)
      elseif kind == LOG then
        s.stored = s.count
        out[i + 1] = sp('<dd', s.used, s.last)
      elseif kind == TOKENS then
        out[i + 1] = sp('<dddd', s.last, s.level, s.rest, s.fills)
      else
        out[i + 1] = sp('<d', bucket.live)
      end
    end
    return out
  end

  local function oldest_entries(s)
    local entries, n_entries, left, from = {}, 0, s.over, 0
    local listed = not s.fresh and s.key and s.stored > 0
    while listed and left > 0 do
      local page = call('ZRANGEBYSCORE', s.key, '(' .. text(now - s.l.window), '+inf', 'WITHSCORES',
                        'LIMIT', from, 64)
      for i = 1, #page, 2 do
        if left > 0 and n_entries < 65535 and not s.removed[page[i]] then
          local ours, cost = pcall(cost_of, page[i])
          if ours then
            n_entries, left = n_entries + 1, left - cost
            entries[n_entries] = sp('<dd', min(instant_of(page[i + 1]), now), cost)
          else
            left = 0 -- what is behind it is taken as made last
          end
        end
      end
      from = from + 64
      listed = #page == 128 and n_entries < 65535
    end
    return sp('<H', n_entries) .. table.concat(entries)
  end

  -- Leases that would outlive one made now: the time was set back, or the ttl made shorter.
  local function cut_leases(bucket, ttl)
    if bucket.cut == ttl then return end
    bucket.cut = ttl
    local longest = now + ttl
    for _, id in ipairs(call('ZRANGEBYSCORE', bucket.leases, '(' .. text(longest), '+inf')) do
      if bucket.puts[id] == nil then
        bucket.puts[id], bucket.turned = longest, true
      end
    end
    bucket.latest = min(bucket.latest, longest)
  end

  -- See most_in_window.
  local most_of = {
    [FIXED] = most_in_window,
    [SLIDING] = function(s, need, amount, count)
      local l = s.l
      if not fits[SLIDING](s, need) then return 0 end
      if amount == 0 then return count end
      if s.current + count * amount > l.most then return nil end
      local weight = 0
      if s.previous > 0 then
        local ticks = min(ceil((s.start + l.window - now) / l.tick), l.ticks)
        weight = ceil(s.previous * ticks / l.ticks)
      end
      return min(count, floor((l.quota - need - s.current - weight) / amount) + 1)
    end,
    [TOKENS] = function(s, need, amount, count)
      local l = s.l
      if not fits[TOKENS](s, need) then return 0 end
      if amount == 0 then return count end
      if s.level - count * amount < l.capacity - l.most then return nil end
      return min(count, floor((s.level - need) / amount) + 1)
    end,
  }

  local row, row_fits = {}, {}

  -- One after another, over the buckets of `row`. How many were admitted.
  local function admit_each(count, id)
    local done = 0
    while done < count do
      local all, slot = true, 0
      for j = 1, m do
        local fit, states = true, row[j].states
        for k = 1, #states do
          slot = slot + 1
          local s = states[k]
          if needs[slot] >= 0 and not fits[s.l.kind](s, needs[slot]) then fit = false end
        end
        row_fits[j] = fit
        if not fit and shadows[j] == 0 then all = false end
      end
      if not all then break end
      done = done + 1
      slot = 0
      for j = 1, m do
        local bucket = row[j]
        local states = bucket.states
        local charged = row_fits[j] and not look
        for k = 1, #states do
          slot = slot + 1
          local s = states[k]
          if charged and needs[slot] >= 0 then charge[s.l.kind](s, charges[slot], id, lease_ttl) end
        end
        if charged then bucket.dirty = true end
      end
    end
    return done
  end

  -- The same at once, for equal admissions of one bucket without leases and logs.
  local function admit_many(bucket, count)
    local states, done = bucket.states, count
    for k = 1, #states do
      local s = states[k]
      if needs[k] >= 0 then
        local most = most_of[s.l.kind](s, needs[k], charges[k], count)
        if not most then return admit_each(count) end
        if most < done then done = most end
      end
    end
    if done == 0 then return 0 end
    for k = 1, #states do
      local s = states[k]
      if needs[k] >= 0 then charge[s.l.kind](s, done * charges[k]) end
    end
    bucket.dirty = true
    return done
  end

  -- What a bucket's first admission finds is what is answered of it.
  local function begin(bucket)
    if bucket.bad then return end
    -- What was stored says it all, if nobody has changed it and it holds all there is.
    local untouched = not bucket.changed and not bucket.leases and not bucket.logs and
                      (not bucket.raw or bucket.layout == bucket.spec)
    if bucket.layout == bucket.spec then
      advance_all(bucket)
    else
      take_over(bucket, bucket.spec)
    end
    if not untouched then bucket.snapshot = snapshot(bucket) end
  end

  -- `count` times the next admission, whose first bucket stands at `place`. How many are admitted.
  local function admit(place, count)
    local bad, slots, counted = false, 0, m == 1
    for j = 1, m do
      if j > 1 then place, at = su('<H', plan, at) end
      local bucket = bucket_at(place)
      row[j] = bucket
      if not asked[place] then
        asked[place] = true
        in_order[#in_order + 1] = place
        begin(bucket)
      end
      bad = bad or bucket.bad
      counted = counted and bucket.spec.counted
      if bucket.leases and not look and not bucket.bad then
        for k, limit in ipairs(bucket.spec) do
          if limit.kind == LEASES and needs[slots + k] >= 0 then cut_leases(bucket, lease_ttl) end
        end
      end
      slots = slots + sizes[j]
      bucket.asked = bucket.asked or not look
    end
    local id
    if has_id then
      id = sub(plan, at, at + 15)
      at = at + 16
    end
    if bad then return UNDECIDED end
    if counted and not look and shadows[1] == 0 then return admit_many(row[1], count) end
    return admit_each(count, id)
  end

  -- Writing.

  -- What is put in comes before what is taken out: a node of a Cluster that gives its slot away
  -- refuses to make a key anew that it had, in the middle of a script.
  local function write_log(s)
    if not s.key then return end
    if s.fresh or s.count == 0 then call('UNLINK', s.key) end
    if s.count == 0 then return end
    for _, entry in ipairs(s.ahead) do
      if not s.removed[entry] then call('ZADD', s.key, text(now), entry) end
    end
    for entry, instant in pairs(s.placed) do call('ZADD', s.key, text(instant), entry) end
    for _, entry in ipairs(s.added) do call('ZADD', s.key, text(now), entry) end
    if not s.fresh then
      for entry in pairs(s.removed) do
        if not s.placed[entry] then call('ZREM', s.key, entry) end
      end
      call('ZREMRANGEBYSCORE', s.key, '-inf', text(now - s.l.window))
    end
    call('PEXPIRE', s.key, ttl_ms(s.l.window))
  end

  local function write_leases(bucket)
    if not bucket.leases then return end
    if bucket.live == 0 then
      call('UNLINK', bucket.leases)
      return
    end
    for id, expiry in pairs(bucket.puts) do
      if expiry then call('ZADD', bucket.leases, text(expiry), id) end
    end
    for id, expiry in pairs(bucket.puts) do
      if not expiry then call('ZREM', bucket.leases, id) end
    end
    call('ZREMRANGEBYSCORE', bucket.leases, '-inf', text(now))
    call('PEXPIRE', bucket.leases, ttl_ms(max(bucket.latest - now, 1)))
  end

  local numbers = {} -- one list for all buckets, one after another
  local function encoded(bucket)
    local states, to = bucket.states, 5
    numbers[1], numbers[2], numbers[3], numbers[4] =
      1, bucket.text and 1 or 0, bucket.birth, #states
    for i = 1, #states do
      local s = states[i]
      local l, kind = s.l, s.l.kind
      numbers[to], numbers[to + 1], to = l.name, l.quota, to + 2
      if kind == FIXED then
        numbers[to], numbers[to + 1], to = s.start, s.used, to + 2
      elseif kind == SLIDING then
        numbers[to], numbers[to + 1], numbers[to + 2], to = s.start, s.current, s.previous, to + 3
      elseif kind == LOG then
        numbers[to], numbers[to + 1], numbers[to + 2], to = s.used, s.count, s.last, to + 3
      elseif kind == TOKENS then
        numbers[to], numbers[to + 1], numbers[to + 2] = l.capacity, s.last, s.level
        numbers[to + 3], numbers[to + 4], to = s.rest, s.fills, to + 5
      end
    end
    local value = sp(format_of(to - 1), unpack(numbers, 1, to - 1))
    return bucket.text and value .. bucket.text or value
  end

  -- What is answered of a bucket: see above.
  local function answer_of(bucket)
    if bucket.bad then return '!' .. bucket.bad end
    if not bucket.snapshot then return bucket.raw end
    local out = bucket.snapshot
    for _, s in ipairs(bucket.states) do
      if s.l.kind == LOG then out[#out + 1] = oldest_entries(s) end
    end
    return table.concat(out)
  end

  local function write(bucket)
    local due = bucket.dirty or (bucket.asked and bucket.turned)
    if not due or not bucket.states or bucket.bad then return end
    local spent = bucket_spent_at(bucket)
    if spent > now then
      local value = encoded(bucket)
      -- One that ends when it ended before keeps its time to live, and its place in memory.
      if bucket.ends == spent and #value == #bucket.raw then
        call('SETRANGE', bucket.key, '0', value)
      else
        call('PSETEX', bucket.key, ttl_text(spent - now), value)
      end
    elseif bucket.raw then
      call('UNLINK', bucket.key)
    end
    if bucket.logs then
      for _, s in ipairs(bucket.states) do
        if s.l.kind == LOG then write_log(s) end
      end
    end
    if bucket.leases then write_leases(bucket) end
  end

  return {change_next = change_next, admit = admit, answer_of = answer_of, write = write}
end

local made
local function full()
  made = made or make_full()
  return made
end

-- The call.

local changed = {}
n, at = su('<H', plan, at)
for i = 1, n do changed[i] = full().change_next() end

local admitted = {}
n, at = su('<H', plan, at)
for i = 1, n do
  local count, new, place
  count, new, place, at = su('<HBH', plan, at)
  if new == 1 then read_terms() end
  local spec = specs[spec_of[place]]
  local done
  if light and spec and spec.light and not asked[place] and not buckets[place] then
    done = spec.n == 1 and admit_one(place, spec[1], count) or admit_light(place, spec, count)
    if done then
      asked[place] = true
      in_order[#in_order + 1] = place
    end
  end
  admitted[i] = done or full().admit(place, count)
end

local reply = {1, now, sp('<' .. string.rep('H', n), unpack(admitted)), table.concat(changed)}
for i = 1, #in_order do
  local place = in_order[i]
  local bucket = buckets[place]
  reply[i + 4] = bucket and made.answer_of(bucket) or not bucket and held[place] or false
end

for place = 1, #counters do
  local bucket = buckets[place]
  if bucket then
    made.write(bucket)
  elseif used_only[place] then
    call('SETRANGE', counters[place], '35', used_only[place])
  elseif in_place[place] then
    call('SETRANGE', counters[place], '0', values[place])
  elseif values[place] then
    call('PSETEX', counters[place], ttl_text(ends[place] - now), values[place])
  end
end
return reply
