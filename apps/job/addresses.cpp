#include "apps/job/addresses.hpp"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <memory>
#include <span>

#include <fmt/format.h>

namespace troupe::apps {
namespace {

std::string text_of(int family, const void* bytes) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  return ::inet_ntop(family, bytes, text.data(), text.size()) ? text.data() : "";
}

template <class Bytes>
HostAddress address_of(int family, const Bytes& address, const Bytes& mask) {
  Bytes network{};
  int bits = 0;
  for (std::size_t i = 0; i < address.size(); ++i) {
    network[i] = static_cast<unsigned char>(address[i] & mask[i]);
    bits += std::popcount(mask[i]);
  }
  return {text_of(family, address.data()), fmt::format("{}/{}", text_of(family, network.data()), bits)};
}

template <class Bytes>
Bytes bytes_of(const void* from) {
  Bytes bytes{};
  std::memcpy(bytes.data(), from, bytes.size());
  return bytes;
}

bool has_address(const RankHost& host, const std::string& address) {
  return std::ranges::any_of(host.addresses, [&](const auto& own) { return own.address == address; });
}

}  // namespace

std::vector<HostAddress> own_addresses() {
  using V4 = std::array<unsigned char, 4>;
  using V6 = std::array<unsigned char, 16>;
  std::vector<HostAddress> all;
  ifaddrs* found = nullptr;
  if (::getifaddrs(&found) != 0) return all;
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner(found, ::freeifaddrs);
  for (const auto* entry = found; entry; entry = entry->ifa_next) {
    if (!entry->ifa_addr || !entry->ifa_netmask || !(entry->ifa_flags & IFF_UP) || (entry->ifa_flags & IFF_LOOPBACK))
      continue;
    if (entry->ifa_addr->sa_family == AF_INET) {
      const auto* own = reinterpret_cast<const sockaddr_in*>(entry->ifa_addr);
      const auto* mask = reinterpret_cast<const sockaddr_in*>(entry->ifa_netmask);
      all.push_back(address_of(AF_INET, bytes_of<V4>(&own->sin_addr), bytes_of<V4>(&mask->sin_addr)));
    } else if (entry->ifa_addr->sa_family == AF_INET6) {
      const auto* own = reinterpret_cast<const sockaddr_in6*>(entry->ifa_addr);
      const auto* mask = reinterpret_cast<const sockaddr_in6*>(entry->ifa_netmask);
      if (IN6_IS_ADDR_LINKLOCAL(&own->sin6_addr)) continue;
      all.push_back(address_of(AF_INET6, bytes_of<V6>(&own->sin6_addr), bytes_of<V6>(&mask->sin6_addr)));
    }
  }
  return all;
}

bool in_one_place(const std::vector<RankHost>& ranks) {
  return std::ranges::all_of(ranks, [&](const RankHost& rank) { return rank.place == ranks.front().place; });
}

core::Result<std::vector<std::string>> choose_addresses(const std::vector<RankHost>& ranks) {
  std::vector<std::string> chosen(ranks.size(), "127.0.0.1");
  if (in_one_place(ranks)) return chosen;
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    const auto elsewhere = [&](const RankHost& other) { return other.place != ranks[r].place; };
    std::ptrdiff_t most = -1;
    for (const auto& own : ranks[r].addresses) {
      const auto another_has_it = [&](const RankHost& other) {
        return other.name != ranks[r].name && has_address(other, own.address);
      };
      if (std::ranges::any_of(ranks, another_has_it)) continue;
      const auto neighbours = std::ranges::count_if(ranks, [&](const RankHost& other) {
        return elsewhere(other) && std::ranges::any_of(other.addresses, [&](const HostAddress& address) {
                 return address.network == own.network;
               });
      });
      if (neighbours <= most) continue;
      most = neighbours;
      chosen[r] = own.address;
    }
    if (most < 0)
      return core::fail(
          core::Errc::config,
          fmt::format("host {} of rank {} has no address that other hosts could reach", ranks[r].name, r));
  }
  return chosen;
}

}  // namespace troupe::apps
