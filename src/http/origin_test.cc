#include "http/origin.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>

namespace stint::http {
namespace {

Origin origin(bool tls, std::string host, std::uint16_t port, std::string base_path = "") {
  return {tls, std::move(host), port, std::move(base_path)};
}

TEST(Origin, Parses) {
  EXPECT_EQ(parse_origin("https://api.example.com"), origin(true, "api.example.com", 443));
  EXPECT_EQ(parse_origin("http://127.0.0.1"), origin(false, "127.0.0.1", 80));
  EXPECT_EQ(parse_origin("HTTPS://API.Example.com:8443/Base/v1"),
            origin(true, "api.example.com", 8443, "/Base/v1"));
  EXPECT_EQ(parse_origin("http://[::1]:8080/"), origin(false, "::1", 8080));
  EXPECT_EQ(parse_origin("http://[2001:DB8::1]"), origin(false, "2001:db8::1", 80));
  EXPECT_EQ(parse_origin("http://my_service:80"), origin(false, "my_service", 80));
  EXPECT_EQ(parse_origin("http://host/a//"), origin(false, "host", 80, "/a"));
  EXPECT_EQ(parse_origin("http://host//"), origin(false, "host", 80));
  EXPECT_EQ(parse_origin("http://host/a%20b;c=d/e.f"), origin(false, "host", 80, "/a%20b;c=d/e.f"));
}

TEST(Origin, RefusesWhatIsNone) {
  for (const char* url : {"",
                          "host",
                          "host:80",
                          "//host",
                          "ftp://host",
                          "http:/host",
                          "http://",
                          "http:///path",
                          "http://:80",
                          "http://user@host",
                          "http://user:secret@host",
                          "http://host:",
                          "http://host:0",
                          "http://host:65536",
                          "http://host:+1",
                          "http://host:8x",
                          "http://host:80:80",
                          "http://host?query",
                          "http://host/a?b",
                          "http://host/a#b",
                          "http://host#b",
                          "http://ho st",
                          "http://host\r\nX: y",
                          "http://host/a b",
                          "http://host/a\r\nX: y",
                          "http://host/caf\xC3\xA9",
                          "http://host/a/../b",
                          "http://host/..",
                          "http://host/./b",
                          "http://[::1",
                          "http://[]",
                          "http://[::1]x",
                          "http://[1.2.3.4]",
                          "http://[::1%lo]",
                          "http://::1",
                          "http://.host",
                          "http://a..b",
                          "http://host\\path"}) {
    EXPECT_EQ(parse_origin(url), std::nullopt) << url;
  }
  EXPECT_EQ(parse_origin("http://" + std::string(300, 'a')), std::nullopt);
}

TEST(Origin, TheHostFieldHasThePortIfItIsNotTheSchemes) {
  EXPECT_EQ(host_field(origin(true, "a.example", 443)), "a.example");
  EXPECT_EQ(host_field(origin(true, "a.example", 80)), "a.example:80");
  EXPECT_EQ(host_field(origin(false, "a.example", 80)), "a.example");
  EXPECT_EQ(host_field(origin(false, "::1", 8080)), "[::1]:8080");
  EXPECT_EQ(host_field(origin(true, "::1", 443)), "[::1]");
}

}  // namespace
}  // namespace stint::http
