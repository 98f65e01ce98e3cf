/// Chooses addresses under which the ranks of a job reach each other, from the addresses of all hosts. Pure, except own_addresses(). Thread
/// rule: values.
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
  std::string place;  // NodeFacts::shared_memory_domain
  std::vector<HostAddress> addresses{};
};

/// Addresses of network interfaces that are up, in their order, without loopback and link-local ones.
[[nodiscard]] std::vector<HostAddress> own_addresses();

[[nodiscard]] bool in_one_place(const std::vector<RankHost>& ranks);

/// An address for each rank: 127.0.0.1 when all ranks are in one place; else the host's first address in the network that most ranks
/// elsewhere share. Skips an address that two hosts have (container bridges). Errc::config for a host without an address.
[[nodiscard]] core::Result<std::vector<std::string>> choose_addresses(const std::vector<RankHost>& ranks);

}  // namespace troupe::apps
