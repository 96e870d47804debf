-- What clients of a gateway send, in turn; some of it is refused.
local function chat(model, key, more)
  return wrk.format("POST", "/v1/chat/completions", {
    ["Host"] = "bench", ["Content-Type"] = "application/json", ["User-Agent"] = "OpenAI/Python 1.0",
    ["Accept"] = "application/json", ["Authorization"] = "Bearer " .. key,
  }, '{"model":"' .. model .. '","messages":[{"role":"system","content":"You answer briefly."},' ..
    '{"role":"user","content":"What does the word \\"stint\\" mean, as a noun and as a verb?\\n"}],' ..
    '"temperature":0.2,"max_tokens":200' .. more .. "}")
end

local function embed()
  return wrk.format("POST", "/v1/embeddings", {
    ["Host"] = "bench", ["Content-Type"] = "application/json", ["Authorization"] = "Bearer sk-many",
  }, '{"model":"embed","input":["What does the word mean?","And as a verb?"]}')
end

local function plain(method, user, body)
  return wrk.format(method, "/pay/by/card", {["Host"] = "bench", ["X-User"] = user}, body)
end

local requests = {}
for turn = 1, 10 do
  for _ = 1, 4 do
    requests[#requests + 1] = chat("chat", "sk-many", "")
  end
  requests[#requests + 1] = chat("talk", "sk-many", ',"stream":true')
  requests[#requests + 1] =
    chat("talk", "sk-many", ',"stream":true,"stream_options":{"include_usage":true}')
  requests[#requests + 1] = embed()
  requests[#requests + 1] = plain("GET", "user" .. turn, nil)
  requests[#requests + 1] = plain("POST", "user" .. turn, "amount=" .. turn)
  requests[#requests + 1] = chat("chat", "sk-few", "")
end
requests[#requests + 1] = chat("chat", "sk-nobody", "")
requests[#requests + 1] = chat("unknown", "sk-many", "")
requests[#requests + 1] =
  wrk.format("GET", "/v1/models", {["Host"] = "bench", ["Authorization"] = "Bearer sk-many"})

local pause_ms = tonumber(os.getenv("STINT_BENCH_PAUSE_MS"))
if pause_ms then
  function delay()
    return math.random(1, pause_ms)
  end
end

local turn = 0

function request()
  turn = turn % #requests + 1
  return requests[turn]
end

-- Statuses as they come are counted, for train.py to see that all kinds were answered.
local answers = {}
local threads = {}

function setup(thread)
  threads[#threads + 1] = thread
end

function response(status)
  answers[status] = (answers[status] or 0) + 1
  counted = ""
  for code, count in pairs(answers) do
    counted = counted .. " " .. code .. "=" .. count
  end
end

function done()
  print("ANSWERS" .. threads[1]:get("counted"))
end
