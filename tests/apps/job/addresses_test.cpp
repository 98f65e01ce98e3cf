#include "apps/job/addresses.hpp"

#include <gtest/gtest.h>

namespace troupe::apps {
namespace {

using Addresses = std::vector<std::string>;

const HostAddress kBridge{"172.17.0.1", "172.17.0.0/16"};

TEST(JobAddresses, OneHostUsesLoopback) {
  EXPECT_EQ(choose_addresses({{"a", "1"}, {"a", "1"}}).value(), (Addresses{"127.0.0.1", "127.0.0.1"}));
}

TEST(JobAddresses, NetworkWithMostHostsIsChosen) {
  const HostAddress a_office{"192.168.7.4", "192.168.7.0/24"}, a_fast{"10.0.0.1", "10.0.0.0/24"};
  const HostAddress b_fast{"10.0.0.2", "10.0.0.0/24"}, c_fast{"10.0.0.3", "10.0.0.0/24"};
  EXPECT_EQ(choose_addresses({{"a", "1", {kBridge, a_office, a_fast}},
                              {"a", "1", {kBridge, a_office, a_fast}},
                              {"b", "2", {kBridge, b_fast}},
                              {"c", "3", {c_fast}}})
                .value(),
            (Addresses{"10.0.0.1", "10.0.0.1", "10.0.0.2", "10.0.0.3"}));
}

TEST(JobAddresses, RoutedNetworksTakeTheFirst) {
  EXPECT_EQ(choose_addresses({{"a", "1", {{"10.1.0.1", "10.1.0.0/24"}}},
                              {"b", "2", {{"10.2.0.1", "10.2.0.0/24"}, {"10.3.0.1", "10.3.0.0/24"}}}})
                .value(),
            (Addresses{"10.1.0.1", "10.2.0.1"}));
}

TEST(JobAddresses, AHostWithoutAnyIsNamed) {
  const auto none = choose_addresses({{"a", "1", {kBridge}}, {"b", "2", {kBridge}}});
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, core::Errc::config);
  EXPECT_NE(none.error().message.find("host a of rank 0"), std::string::npos) << none.error().message;
}

TEST(JobAddresses, OwnAddressesAreNotLoopback) {
  for (const auto& own : own_addresses()) {
    EXPECT_FALSE(own.address.starts_with("127.")) << own.address;
    EXPECT_NE(own.network.find('/'), std::string::npos) << own.network;
  }
}

}  // namespace
}  // namespace troupe::apps
