-- A chat for wrk; STINT_BENCH_PAUSE_MS=n: after each answer a pause of 1 to n ms.
local body = [[{"model":"chat","messages":[{"role":"system","content":"You answer briefly, and]] ..
  [[ only what you know."},{"role":"user","content":"What does the word stint mean, as a noun and]] ..
  [[ as a verb?"}],"max_tokens":200,"temperature":0.2,"user":"bench"}]]

wrk.method = "POST"
wrk.path = "/v1/chat/completions"
wrk.body = body
wrk.headers["Authorization"] = "Bearer sk-bench"
wrk.headers["Content-Type"] = "application/json"
wrk.headers["User-Agent"] = "wrk"

local pause_ms = tonumber(os.getenv("STINT_BENCH_PAUSE_MS"))
if pause_ms then
  function delay()
    return math.random(1, pause_ms)
  end
end

-- Read by run.py. Latencies are in microseconds.
function done(summary, latency)
  local errors = summary.errors
  print(string.format('RESULT {"requests":%d,"seconds":%.6f,"p50_us":%d,"p99_us":%d,"errors":%d}',
    summary.requests, summary.duration / 1e6, latency:percentile(50), latency:percentile(99),
    errors.connect + errors.read + errors.write + errors.status + errors.timeout))
end
