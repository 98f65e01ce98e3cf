/// Where ranks of a job reach each other: each says what addresses its host has, one of them chooses. Pure, but for own_addresses().
/// Thread rule: values.
#pragma once

#include <string>
#include <vector>

#include "core/error.hpp"

namespace troupe::apps {

struct HostAddress {
  std::string address;  // "10.0.0.11"
  std::string network;  // "10.0.0.0/24"
};

struct RankHost {
  std::string name;   // of the host
  std::string place;  // NodeFacts::place
  std::vector<HostAddress> addresses{};
};

/// Of network interfaces that are up, in their order; neither loopback nor link-local ones.
[[nodiscard]] std::vector<HostAddress> own_addresses();

[[nodiscard]] bool in_one_place(const std::vector<RankHost>& ranks);

/// An address for each rank: 127.0.0.1 when all are in one place; else the one whose network most ranks elsewhere are in, and of
/// those the first. An address that two hosts have leads to neither (container bridges). Errc::config for a host that has none.
[[nodiscard]] core::Result<std::vector<std::string>> choose_addresses(const std::vector<RankHost>& ranks);

}  // namespace troupe::apps
