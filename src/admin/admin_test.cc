#include "admin/admin.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "admin/admin_testing.h"
#include "admission/limiter_core.h"
#include "base/entropy.h"
#include "base/simulated_clock.h"
#include "net/loop_testing.h"
#include "policy/table.h"
#include "store/memory/forward_clock.h"
#include "store/memory/memory_store.h"

namespace stint::admin {
namespace {

using testing::HasSubstr;

constexpr TimePoint kNow{std::chrono::seconds{1'767'312'000}};

constexpr const char* kResources = R"(_format_version: "1"
rate_limit_policies:
  - {id: clients, name: per client, group_by: [client_ip], limits: {rpm: 10}}
)";

// Two servers, the second one away.
class TwoServers final : public Places {
 public:
  [[nodiscard]] Ring ring() const override {
    return {.backend = "redis",
            .mode = "ring",
            .virtual_nodes = 150,
            .shards = {
                {.name = "a", .address = "h1:6379/0", .points = 2400, .share = 0.25},
                {.name = "b", .address = "h2:6379/0", .weight = 3, .points = 7200, .share = 0.75}}};
  }
  [[nodiscard]] std::vector<ShardHealth> health() const override {
    return {{.name = "a"},
            {.name = "b", .degraded = true, .why = "connection refused", .since = kNow}};
  }
  [[nodiscard]] std::string shard_of(std::string_view bucket_key) const override {
    return bucket_key.contains("10.0.0.1") ? "a" : "b";
  }
};

class AdminTest : public testing::Test {
 protected:
  AdminTest() {
    const auto& policies = program_.snapshot()->early();
    EXPECT_TRUE(limiter_.set_policies(policies));
    EXPECT_EQ(policies.size(), 1U);
  }

  void request_from(const std::string& client) {
    Attributes attributes;
    attributes.set(Dimension::client_ip, client);
    EXPECT_TRUE(limiter_.admit(attributes, {})->admitted());
  }

  OneExchange& ask(std::string method, std::string path, std::string query = "",
                   std::optional<std::string> body = "", bool is_json = true) {
    exchange_ = std::make_unique<OneExchange>();
    http::RequestHead& head = exchange_->request;
    head.method = std::move(method);
    head.path = std::move(path);
    head.query = std::move(query);
    head.host = "localhost";
    head.fields.add("Host", "localhost");
    if (is_json) head.fields.add("Content-Type", "application/json; charset=utf-8");
    exchange_->body = std::move(body);
    net::run(loop_, admin_.handle(*exchange_));
    return *exchange_;
  }
  // The body of an answer that is 200.
  std::string get(std::string path, std::string query = "") {
    OneExchange& exchange = ask("GET", "/admin/v1" + path, std::move(query));
    EXPECT_EQ(exchange.answer->status, 200) << exchange.answer_body;
    EXPECT_EQ(exchange.answer->fields.get("content-type"), "application/json");
    EXPECT_EQ(exchange.answer->fields.get("cache-control"), "no-store");
    return exchange.answer_body;
  }
  std::string refused(OneExchange& exchange, int status) {
    EXPECT_EQ(exchange.answer->status, status) << exchange.answer_body;
    return exchange.answer_body;
  }

  net::EventLoop loop_;
  base::SimulatedClock clock_{kNow};
  base::FixedEntropy entropy_;
  observe::Log log_{observe::LogOptions{.level = observe::LogLevel::off, .access_log = false}};
  std::shared_ptr<store::MemoryStore> store_ = std::make_shared<store::MemoryStore>(
      store::MemoryStoreOptions{}, std::make_unique<store::ForwardClock>(clock_, nullptr));
  TextProgram program_{"resources_file: r\nadmin: {enabled: true}\n", kResources};
  admission::LimiterCore limiter_{store_, *policy::Table::create({}), clock_,
                                  std::chrono::seconds{30}, entropy_};
  TwoServers places_;
  Admin admin_{loop_, program_.bootstrap().admin, program_, places_, *store_, log_};
  std::unique_ptr<OneExchange> exchange_;
};

TEST_F(AdminTest, ShowsTheRing) {
  EXPECT_EQ(get("/ring"),
            R"({"backend":"redis","mode":"ring","virtual_nodes":150,"shards":[)"
            R"({"name":"a","address":"h1:6379/0","weight":1E0,"points":2400,"share":2.5E-1},)"
            R"({"name":"b","address":"h2:6379/0","weight":3E0,"points":7200,"share":7.5E-1}]})"
            "\n");
}

TEST_F(AdminTest, ShowsHowTheShardsAreDoing) {
  EXPECT_EQ(get("/shards"),
            R"({"degraded":true,"shards":[{"name":"a","degraded":false,"why":null,"since":null},)"
            R"({"name":"b","degraded":true,"why":"connection refused",)"
            R"("since":"2026-01-02T00:00:00Z"}]})"
            "\n");
}

TEST_F(AdminTest, ShowsWhereABucketLives) {
  EXPECT_EQ(get("/location", "?key=clients:client_ip%3D10.0.0.1"),
            R"({"key":"clients:client_ip=10.0.0.1","shard":"a","address":"h1:6379/0"})"
            "\n");
  EXPECT_THAT(refused(ask("GET", "/admin/v1/location"), 400), HasSubstr("key is missing"));
}

TEST_F(AdminTest, ListsLiveBuckets) {
  request_from("10.0.0.1");
  request_from("10.0.0.1");
  request_from("10.0.0.2");
  EXPECT_EQ(
      get("/buckets", "?pattern=clients:*.1&limit=10"),
      R"({"buckets":[{"key":"clients:client_ip=10.0.0.1","policy":{"id":"clients","name":)"
      R"("per client"},"shard":"a","limits":[{"unit":"requests","algorithm":"fixed_window",)"
      R"("quota":10,"window_secs":60,"used":2,"remaining":8,"reset_ms":60000}]}],"next":null,)"
      R"("complete":true,"unreached":[]})"
      "\n");
  EXPECT_THAT(get("/buckets"), HasSubstr("10.0.0.2"));  // all, if no pattern is named
}

TEST_F(AdminTest, ListsPageByPage) {
  for (int i = 0; i < 25; ++i) request_from("10.0.1." + std::to_string(i));
  std::size_t seen = 0;
  std::string cursor = "0";
  int pages = 0;
  for (; pages < 100; ++pages) {
    const json::value page = json::parse(get("/buckets", "?limit=4&cursor=" + cursor));
    EXPECT_LE(page.at("buckets").as_array().size(), 4U);
    seen += page.at("buckets").as_array().size();
    if (page.at("next").is_null()) break;
    cursor = page.at("next").as_string().c_str();
  }
  EXPECT_EQ(seen, 25U);
}

TEST_F(AdminTest, ForgetsBuckets) {
  request_from("10.0.0.1");
  request_from("10.0.0.2");
  const auto& deleted = ask("DELETE", "/admin/v1/buckets", "?pattern=*10.0.0.1");
  EXPECT_EQ(deleted.answer_body,
            "{\"removed\":1,\"next\":null,\"complete\":true,\"unreached\":[]}\n");
  EXPECT_EQ(store_->stats().buckets, 1U);
  const auto& reset = ask("POST", "/admin/v1/reset", "", R"({"pattern":"*"})");
  EXPECT_EQ(reset.answer->status, 200);
  EXPECT_EQ(reset.answer_body,
            "{\"removed\":1,\"next\":null,\"complete\":true,\"unreached\":[]}\n");
  EXPECT_EQ(store_->stats().buckets, 0U);
}

TEST_F(AdminTest, ForgetsNothingUnlessItIsSaidWhat) {
  request_from("10.0.0.1");
  EXPECT_THAT(refused(ask("DELETE", "/admin/v1/buckets"), 400), HasSubstr("pattern is missing"));
  EXPECT_THAT(refused(ask("DELETE", "/admin/v1/buckets", "?pattern="), 400),
              HasSubstr("pattern is missing"));
  EXPECT_THAT(refused(ask("DELETE", "/admin/v1/buckets", "?patern=*"), 400),
              HasSubstr("unknown parameter"));
  EXPECT_THAT(
      refused(ask("DELETE", "/admin/v1/buckets", "?pattern=" + std::string(2049, '*')), 400),
      HasSubstr("too long"));
  for (const char* body : {"", "{}", "[\"*\"]", "{\"pattern\":1}", "{\"pattern\":\"*\",\"x\":\"\"}",
                           "{\"pattern\":\"*\",\"cursor\":\"-1\"}"}) {
    EXPECT_THAT(refused(ask("POST", "/admin/v1/reset", "", body), 400),
                HasSubstr("invalid_argument"))
        << body;
  }
  EXPECT_THAT(
      refused(ask("POST", "/admin/v1/reset", "", R"({"pattern":"*"})", /*is_json=*/false), 415),
      HasSubstr("application/json"));
  EXPECT_FALSE(ask("POST", "/admin/v1/reset", "", std::nullopt).answer) << "the server says why";
  EXPECT_EQ(store_->stats().buckets, 1U);
}

TEST_F(AdminTest, RefusesWhatIsNotAllowed) {
  for (const char* query : {"?limit=0", "?limit=1001", "?limit=x", "?limit=-1", "?cursor=x",
                            "?cursor=18446744073709551616", "?cursor=1&cursor=2"}) {
    EXPECT_THAT(refused(ask("GET", "/admin/v1/buckets", query), 400), HasSubstr("invalid_argument"))
        << query;
  }
  EXPECT_THAT(refused(ask("GET", "/admin/v1/ring", "?x=1"), 400), HasSubstr("no parameters"));
  for (const char* path : {"/", "/admin", "/admin/v1/", "/admin/v1/nothing", "/admin/v1x",
                           "/admin/v2", "/v1/models"}) {
    refused(ask("GET", path), 404);
  }
  OneExchange& wrong = ask("POST", "/admin/v1/ring");
  refused(wrong, 405);
  EXPECT_EQ(wrong.answer->fields.get("allow"), "GET, HEAD");
  refused(ask("GET", "/admin/v1/reset"), 405);
  refused(ask("HEA", "/admin/v1/ring"), 405);
}

TEST_F(AdminTest, SaysWhatThereIs) {
  EXPECT_THAT(get(""), HasSubstr(R"("path":"/admin/v1/buckets","methods":"GET, HEAD, DELETE")"));
  EXPECT_EQ(ask("HEAD", "/admin/v1/ring").answer->status, 200);
}

TEST_F(AdminTest, ShowsTheConfiguration) {
  EXPECT_THAT(get("/config"), HasSubstr(R"("key":"admin.enabled","value":"true")"));
  EXPECT_THAT(get("/policies"), HasSubstr(R"("id":"clients")"));
  EXPECT_THAT(get("/config/errors"), HasSubstr(R"("in_force":true)"));
}

TEST_F(AdminTest, AsksWhoItIsBeforeItSaysAnything) {
  const config::Admin keyed{.enabled = true, .admin_keys = {"k"}};
  Admin guarded(loop_, keyed, program_, places_, *store_, log_);
  for (const char* path : {"/admin/v1/ring", "/nothing"}) {
    OneExchange exchange;
    exchange.request.method = "GET";
    exchange.request.path = path;
    net::run(loop_, guarded.handle(exchange));
    EXPECT_EQ(exchange.answer->status, 401);
    EXPECT_EQ(exchange.answer->fields.get("www-authenticate"), "Bearer");
  }
}

TEST(AdminInMemory, IsOnePlace) {
  const InMemory memory;
  EXPECT_EQ(memory.ring().mode, "memory");
  EXPECT_EQ(memory.ring().shards.size(), 1U);
  EXPECT_EQ(memory.shard_of("p:x=1"), memory.ring().shards[0].name);
  EXPECT_FALSE(memory.health().at(0).degraded);
}

}  // namespace
}  // namespace stint::admin
