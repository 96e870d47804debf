#include "gateway/client_address.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace stint::gateway {
namespace {

Cidr network(std::string_view text) {
  auto cidr = Cidr::parse(text);
  EXPECT_TRUE(cidr.has_value()) << text << (cidr ? "" : cidr.error());
  return cidr.value_or(Cidr());
}

http::Fields forwarded(const std::vector<std::string>& lines) {
  http::Fields fields;
  for (const std::string& line : lines) fields.add("X-Forwarded-For", line);
  return fields;
}

class ClientAddressTest : public testing::Test {
 protected:
  [[nodiscard]] std::string key(std::string_view peer,
                                const std::vector<std::string>& lines) const {
    return ClientAddresses(options).of(peer, forwarded(lines)).key;
  }

  RealIpOptions options{.trusted_proxies = {network("10.0.0.0/8"), network("2001:db8:ffff::/48")}};
};

TEST(IpAddress, ParsesAndWrites) {
  const auto text = [](std::string_view from) {
    const auto address = IpAddress::parse(from);
    return address ? address->to_string() : "none";
  };
  EXPECT_EQ(text("203.0.113.7"), "203.0.113.7");
  EXPECT_EQ(text("2001:DB8:0:0:0:0:0:1"), "2001:db8::1");
  EXPECT_EQ(text("::1"), "::1");
  EXPECT_EQ(text("::ffff:203.0.113.7"), "203.0.113.7");
  EXPECT_EQ(text("::ffff:cb00:7107"), "203.0.113.7");
  EXPECT_EQ(text("0:0:0:0:0:ffff:203.0.113.7"), "203.0.113.7");
  for (const char* bad : {"", "203.0.113", "203.0.113.256", "203.0.113.07", "0x7f.0.0.1", "1",
                          " ::1", "::1 ", "fe80::1%eth0", "[::1]", "::1/64", "localhost",
                          "1.2.3.4.5", "2001:db8::1::2", "12345::", ":", "203.0.113.7\n"}) {
    EXPECT_EQ(text(bad), "none") << bad;
  }
  EXPECT_EQ(text(std::string_view("1.2.3.4\0", 8)), "none");
  EXPECT_EQ(text(std::string(1'000, '1')), "none");
}

TEST(Cidr, Contains) {
  const auto in = [](std::string_view net, std::string_view address) {
    return network(net).contains(IpAddress::parse(address).value());
  };
  EXPECT_TRUE(in("10.0.0.0/8", "10.255.255.255"));
  EXPECT_TRUE(in("10.0.0.0/8", "::ffff:10.1.2.3"));
  EXPECT_FALSE(in("10.0.0.0/8", "11.0.0.0"));
  EXPECT_TRUE(in("10.1.2.3", "10.1.2.3"));
  EXPECT_FALSE(in("10.1.2.3", "10.1.2.4"));
  EXPECT_TRUE(in("10.1.2.2/31", "10.1.2.3"));
  EXPECT_TRUE(in("0.0.0.0/0", "203.0.113.7"));
  EXPECT_FALSE(in("0.0.0.0/0", "2001:db8::1"));
  EXPECT_TRUE(in("2001:db8::/33", "2001:db8:7fff::1"));
  EXPECT_FALSE(in("2001:db8::/33", "2001:db8:8000::1"));
  EXPECT_TRUE(in("::1", "::1"));
  EXPECT_TRUE(in("::ffff:10.0.0.0/104", "10.9.9.9"));
  EXPECT_FALSE(in("::ffff:10.0.0.0/104", "11.0.0.0"));
}

TEST(Cidr, RefusesWhatIsNoNetwork) {
  for (const char* bad :
       {"", "10.0.0.0/", "10.0.0.0/33", "10.0.0.0/-1", "10.0.0.0/08", "10.0.0.0/8 ", "10.0.0.0/8/8",
        "10/8", "::/129", "example.com", "10.0.0.0/+8", "10.0.0.0/99999999999"}) {
    EXPECT_FALSE(Cidr::parse(bad).has_value()) << bad;
  }
  EXPECT_EQ(Cidr::parse("10.0.0.1/8").error(),
            "has bits set after its prefix: write \"10.0.0.0/8\"");
  EXPECT_EQ(Cidr::parse("2001:db8::1/32").error(),
            "has bits set after its prefix: write \"2001:db8::/32\"");
}

TEST(ClientAddresses, TrustsNobodyByDefault) {
  const ClientAddresses addresses;
  EXPECT_EQ(addresses.of("10.0.0.1", forwarded({"203.0.113.7"})).key, "10.0.0.1");
}

TEST_F(ClientAddressTest, AnUntrustedPeerIsTheClientWhateverItSends) {
  for (int i = 0; i < 50; ++i) {
    EXPECT_EQ(key("198.51.100.1", {"203.0.113." + std::to_string(i)}), "198.51.100.1");
  }
}

TEST_F(ClientAddressTest, WhatAClientPutsInFrontDoesNotCount) {
  for (const char* front : {"1.2.3.4", "10.0.0.9", "unknown", "", "2001:db8::1", ",,,"}) {
    EXPECT_EQ(key("10.0.0.1", {std::string(front) + ", 203.0.113.7"}), "203.0.113.7") << front;
  }
}

TEST_F(ClientAddressTest, LinesAreJoinedInOrder) {
  EXPECT_EQ(key("10.0.0.1", {"1.2.3.4", "203.0.113.7, 10.0.0.2"}), "203.0.113.7");
  EXPECT_EQ(key("10.0.0.1", {"203.0.113.7", "10.0.0.3", "10.0.0.2"}), "203.0.113.7");
  EXPECT_EQ(key("10.0.0.1", {"203.0.113.7, 10.0.0.2", "1.2.3.4"}), "1.2.3.4");
}

TEST_F(ClientAddressTest, SkipsTrustedHopsFromTheRight) {
  EXPECT_EQ(key("10.0.0.1", {"203.0.113.9, 203.0.113.7, 10.1.1.1, 2001:db8:ffff::5"}),
            "203.0.113.7");
  EXPECT_EQ(key("::ffff:10.0.0.1", {"203.0.113.7,\t10.1.1.1 "}), "203.0.113.7");
}

TEST_F(ClientAddressTest, NotRecursiveTakesTheRightmostOnly) {
  options.recursive = false;
  EXPECT_EQ(key("10.0.0.1", {"203.0.113.7, 10.0.0.2"}), "10.0.0.2");
  EXPECT_EQ(key("10.0.0.1", {"1.2.3.4, 203.0.113.7"}), "203.0.113.7");
}

TEST_F(ClientAddressTest, AllHopsTrusted) {
  EXPECT_EQ(key("10.0.0.1", {"10.0.0.3, 10.0.0.2"}), "10.0.0.3");
}

TEST_F(ClientAddressTest, WithoutTheHeaderThePeerIsTheClient) {
  EXPECT_EQ(key("10.0.0.1", {}), "10.0.0.1");
  EXPECT_EQ(key("10.0.0.1", {""}), "10.0.0.1");
}

TEST_F(ClientAddressTest, WhatIsNoAddressEndsTheWalk) {
  for (const char* bad :
       {"unknown", "", "_hidden", "203.0.113.300", "203.0.113.7:", "203.0.113.7:http",
        "203.0.113.7:123456", "[2001:db8::1", "[2001:db8::1]x", "[2001:db8::1]:", "[203.0.113.7]",
        "203.0.113.7 x", "\"203.0.113.7\"", "for=203.0.113.7", "fe80::1%eth0"}) {
    EXPECT_EQ(key("10.0.0.1", {"198.51.100.4, " + std::string(bad) + ", 10.0.0.2"}), "10.0.0.2")
        << bad;
    EXPECT_EQ(key("10.0.0.1", {"198.51.100.4, " + std::string(bad)}), "10.0.0.1") << bad;
  }
}

TEST_F(ClientAddressTest, EntriesMayHaveAPort) {
  EXPECT_EQ(key("10.0.0.1", {"203.0.113.7:1234"}), "203.0.113.7");
  EXPECT_EQ(key("10.0.0.1", {"[2001:db8::1]:1234"}), "2001:db8::/64");
  EXPECT_EQ(key("10.0.0.1", {"[2001:db8::1]"}), "2001:db8::/64");
}

TEST_F(ClientAddressTest, AnotherHeader) {
  options.header = "x-real-ip";
  http::Fields fields = forwarded({"1.2.3.4"});
  fields.add("X-Real-IP", "203.0.113.7");
  EXPECT_EQ(ClientAddresses(options).of("10.0.0.1", fields).key, "203.0.113.7");
}

TEST_F(ClientAddressTest, Ipv6IsKeyedByPrefixAndLoggedInFull) {
  const ClientAddresses addresses(options);
  const ClientAddress one = addresses.direct("2001:db8:1:2:3:4:5:6");
  EXPECT_EQ(one.address, "2001:db8:1:2:3:4:5:6");
  EXPECT_EQ(one.key, "2001:db8:1:2::/64");
  EXPECT_EQ(addresses.direct("2001:db8:1:2::").key, one.key);
  EXPECT_NE(addresses.direct("2001:db8:1:3::").key, one.key);

  options.ipv6_prefix = 57;
  EXPECT_EQ(ClientAddresses(options).direct("2001:db8:1:2ff::1").key, "2001:db8:1:280::/57");
  options.ipv6_prefix = 128;
  EXPECT_EQ(ClientAddresses(options).direct("2001:db8:1:2ff::1").key, "2001:db8:1:2ff::1");
}

TEST_F(ClientAddressTest, MappedIpv4IsIpv4) {
  const ClientAddresses addresses(options);
  EXPECT_EQ(addresses.direct("::ffff:203.0.113.7").key, "203.0.113.7");
  EXPECT_EQ(addresses.direct("::ffff:203.0.113.7").address, "203.0.113.7");
  EXPECT_EQ(key("::ffff:10.0.0.1", {"::ffff:203.0.113.7"}), "203.0.113.7");
}

TEST_F(ClientAddressTest, UnusualPeers) {
  const ClientAddresses addresses(options);
  EXPECT_EQ(addresses.direct("fe80::1%eth0").key, "fe80::/64");
  EXPECT_EQ(addresses.of("unix:", forwarded({"203.0.113.7"})).key, "unix:");
}

TEST_F(ClientAddressTest, WhoIsTrusted) {
  const ClientAddresses addresses(options);
  EXPECT_TRUE(addresses.trusts("10.1.2.3"));
  EXPECT_TRUE(addresses.trusts("2001:db8:ffff::1"));
  EXPECT_FALSE(addresses.trusts("203.0.113.7"));
  EXPECT_FALSE(addresses.trusts("not an address"));
  EXPECT_FALSE(ClientAddresses().trusts("10.1.2.3"));
}

TEST_F(ClientAddressTest, WhatAnUntrustedPeerClaimsGoesNoFurther) {
  options.header = "CF-Connecting-IP";
  const ClientAddresses addresses(options);
  const auto left = [&](bool trusted) {
    http::Fields fields;
    for (const char* name : {"Forwarded", "X-Forwarded-For", "x-forwarded-proto",
                             "X-Forwarded-Port", "X-Real-IP", "cf-connecting-ip", "X_Forwarded_For",
                             "X_REAL-IP", "cf_connecting_ip", "X-Forward", "X_Custom"}) {
      fields.add(name, "x");
    }
    addresses.remove_claims(fields, trusted);
    std::string names;
    for (const http::Field& field : fields.all()) names += field.name + " ";
    return names;
  };
  EXPECT_EQ(left(false), "X-Forward X_Custom ");
  EXPECT_EQ(left(true),
            "Forwarded X-Forwarded-For x-forwarded-proto X-Forwarded-Port X-Real-IP "
            "cf-connecting-ip X-Forward X_Custom ");
}

}  // namespace
}  // namespace stint::gateway
