-- Requests of many users for wrk: STINT_BENCH_USERS names them, STINT_BENCH_PAUSE_MS=n is the
-- longest pause after an answer.
local requests = {}
for user in os.getenv("STINT_BENCH_USERS"):gmatch("[^,]+") do
  requests[#requests + 1] = wrk.format("GET", "/pay", {["Host"] = "bench", ["X-User"] = user})
end

local pause_ms = tonumber(os.getenv("STINT_BENCH_PAUSE_MS"))
local turn = 0

function request()
  turn = turn % #requests + 1
  return requests[turn]
end

function delay()
  return math.random(1, pause_ms)
end

-- Read by bench/redis/flapping.py. Latencies are in microseconds.
function done(summary, latency)
  local errors = summary.errors
  print(string.format('RESULT {"requests":%d,"p50_us":%d,"p99_us":%d,"errors":%d}',
    summary.requests, latency:percentile(50), latency:percentile(99),
    errors.connect + errors.read + errors.write + errors.status + errors.timeout))
end
