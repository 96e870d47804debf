
-- The logs of a bucket, as texts of their windows: they follow from what its key of counters holds,
-- see decide.lua. An error if that is no bucket.
local function log_windows(raw)
  local SIZES = {[0] = 2, 3, 3, 5, 0} -- numbers of a limit behind name and quota, by algorithm
  local LOG = 2
  local windows = {}
  local n, at = struct.unpack('<B', raw, 11)
  for _ = 1, n do
    local name = struct.unpack('<d', raw, at)
    if name % 8 == LOG then
      windows[#windows + 1] = string.format('%.0f', math.floor(name / 64))
    end
    at = at + 16 + 8 * (SIZES[name % 8] or error('unknown', 0))
  end
  return windows
end

