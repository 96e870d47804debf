// How resources are looked up.
#include "config/snapshot.h"

#include <gmock/gmock.h>

#include <string>

namespace stint::config {
namespace {

std::shared_ptr<const Snapshot> snapshot_of(const std::string& text) {
  auto loaded = load_snapshot("r.yaml", "_format_version: \"1\"\n" + text, {}, 7);
  for (const Fault& fault : loaded.faults) ADD_FAILURE() << to_string(fault);
  return loaded.value.value_or(nullptr);
}

TEST(Snapshot, FindsKeysByWhatCallersPresent) {
  const auto snapshot =
      snapshot_of("api_keys: [{display_name: a, key: sk-1}, {display_name: b, key: sk-2}]\n");
  EXPECT_EQ(snapshot->generation(), 7U);
  EXPECT_EQ(snapshot->find_api_key("sk-1")->display_name, "a");
  EXPECT_EQ(snapshot->find_api_key(hash_key("sk-2"))->display_name, "b");
  EXPECT_EQ(snapshot->find_api_key("sk-3"), nullptr);
  EXPECT_EQ(snapshot->find_api_key(""), nullptr);
}

TEST(Snapshot, FindsModelsExactlyElseByTheLongestPrefix) {
  const auto snapshot = snapshot_of(
      "provider_keys: [{id: pk, display_name: p}]\n"
      "models:\n"
      "  - {display_name: gpt, provider_key: p}\n"
      "  - {display_name: a/*, provider_key: p}\n"
      "  - {display_name: a/b/*, provider_key: p}\n"
      "  - {display_name: a/b/c, provider_key: p}\n");
  const auto find = [&](std::string_view name) {
    const Model* model = snapshot->find_model(name);
    return model == nullptr ? "" : model->display_name;
  };
  EXPECT_EQ(find("gpt"), "gpt");
  EXPECT_EQ(find("gpt2"), "");
  EXPECT_EQ(find("a/x"), "a/*");
  EXPECT_EQ(find("a/x/y"), "a/*");
  EXPECT_EQ(find("a/b/x"), "a/b/*");
  EXPECT_EQ(find("a/b/c"), "a/b/c");
  EXPECT_EQ(find("a/b"), "a/*");
  EXPECT_EQ(find("a/"), "");
  EXPECT_EQ(find("a/b/"), "a/*");
  EXPECT_EQ(find("a"), "");
  EXPECT_EQ(find(""), "");
  EXPECT_EQ(find("/"), "");
  EXPECT_EQ(find("x/" + std::string(1'000'000, '/')), "");
  EXPECT_EQ(snapshot->find_provider_key("pk")->display_name, "p");
  EXPECT_EQ(snapshot->find_provider_key("p"), nullptr);
}

TEST(Snapshot, FindsTheMostSpecificRoute) {
  const auto snapshot = snapshot_of(R"(
routes:
  - {name: any, match: {path_prefix: /}, upstream: "http://u"}
  - {name: api, match: {path_prefix: /api}, upstream: "http://u"}
  - {name: api-users, match: {path_prefix: /api/users/}, upstream: "http://u"}
  - {name: me, match: {path: /api/users/me}, upstream: "http://u"}
  - {name: me-post, match: {path: /api/users/me, methods: [POST]}, upstream: "http://u"}
  - {name: wild, match: {host: "*.example.com"}, upstream: "http://u"}
  - {name: wild-deep, match: {host: "*.a.example.com"}, upstream: "http://u"}
  - {name: exact, match: {host: b.example.com, path_prefix: /}, upstream: "http://u"}
  - {name: me-put, match: {path: /api/users/me, methods: [POST, PUT]}, upstream: "http://u"}
)");
  const auto find = [&](std::string_view host, std::string_view path,
                        std::string_view method = "GET") {
    const RouteMatch match = snapshot->find_route(host, path, method);
    return match.route == nullptr ? "" : match.route->name;
  };
  EXPECT_EQ(find("h", "/"), "any");
  EXPECT_EQ(find("h", "/apis"), "any");
  EXPECT_EQ(find("h", "/api"), "api");
  EXPECT_EQ(find("h", "/api/x"), "api");
  EXPECT_EQ(find("h", "/api/users"), "api");
  EXPECT_EQ(find("h", "/api/users/"), "api-users");
  EXPECT_EQ(find("h", "/api/users/7"), "api-users");
  EXPECT_EQ(find("h", "/api/users/me"), "me");
  EXPECT_EQ(find("h", "/api/users/me", "POST"), "me-post");
  EXPECT_EQ(find("h", "/api/users/me", "PUT"), "me-put");
  EXPECT_EQ(find("h", "/api/users/me/x"), "api-users");
  EXPECT_EQ(find("x.example.com", "/api"), "wild");
  EXPECT_EQ(find("x.a.example.com", "/api"), "wild-deep");
  EXPECT_EQ(find("example.com", "/api"), "api");
  EXPECT_EQ(find("b.example.com", "/api"), "exact");
}

TEST(Snapshot, TellsAWrongMethodFromAWrongPath) {
  const auto snapshot = snapshot_of(
      "routes: [{name: a, match: {path: /a, methods: [POST, PUT]}, upstream: \"http://u\"}]\n");
  EXPECT_EQ(snapshot->find_route("h", "/a", "PUT").route->name, "a");
  EXPECT_EQ(snapshot->find_route("h", "/a", "GET").route, nullptr);
  EXPECT_TRUE(snapshot->find_route("h", "/a", "GET").other_method);
  EXPECT_FALSE(snapshot->find_route("h", "/b", "GET").other_method);
}

TEST(Snapshot, RefusesPoliciesThatShareAnId) {
  const auto loaded = load_snapshot("r.yaml",
                                    "_format_version: \"1\"\n"
                                    "rate_limit_policies:\n"
                                    "  - {id: x, name: a, limits: {rpm: 1}}\n"
                                    "  - {id: x, name: b, limits: {rpm: 1}}\n",
                                    {}, 1);
  EXPECT_FALSE(loaded.value);
  EXPECT_EQ(to_string(loaded.faults.at(0)),
            "r.yaml:4:10: rate_limit_policies[1].id: is the id of rate_limit_policies[0], too");
}

}  // namespace
}  // namespace stint::config
