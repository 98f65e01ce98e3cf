#include "service/http/address_limits.hpp"

#include <algorithm>

namespace troupe::service {
namespace {

constexpr std::size_t kMostAddresses = 4096;  // then those are forgotten that use nothing

}  // namespace

AddressLimits::Admission AddressLimits::enter(const std::string& address) {
  auto [use, is_new] = uses_.try_emplace(address, Use{0, limits_.burst, {}});
  if (use->second.connections >= limits_.connections_per_address) return Admission::too_many;
  ++use->second.connections;
  ++connections_;
  return Admission::admitted;
}

void AddressLimits::leave(const std::string& address) {
  const auto use = uses_.find(address);
  if (use == uses_.end() || use->second.connections == 0) return;
  --use->second.connections;
  --connections_;
}

double AddressLimits::tokens_at(const Use& use, Time now) const {
  const auto seconds = std::chrono::duration<double>(std::max(now - use.at, Time::duration{})).count();
  return std::min(limits_.burst, use.tokens + seconds * limits_.requests_per_s);
}

bool AddressLimits::allow(const std::string& address, Time now) {
  if (uses_.size() > kMostAddresses) forget_idle(now);
  auto& use = uses_.try_emplace(address, Use{0, limits_.burst, now}).first->second;
  use.tokens = tokens_at(use, now);
  use.at = now;
  if (use.tokens < 1) return false;
  use.tokens -= 1;
  return true;
}

void AddressLimits::forget_idle(Time now) {
  std::erase_if(uses_, [&](const auto& one) {
    return one.second.connections == 0 && tokens_at(one.second, now) >= limits_.burst;
  });
}

}  // namespace troupe::service
