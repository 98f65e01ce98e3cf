/// How many connections and requests each address has. Not thread-safe. It knows no clock: the caller says the time.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <unordered_map>

#include "service/http/limits.hpp"

namespace troupe::service {

class AddressLimits {
 public:
  using Time = std::chrono::steady_clock::time_point;

  explicit AddressLimits(const Limits& limits) : limits_(limits) {}

  enum class Admission : bool { too_many, admitted };
  /// A connection. An admitted one must leave() once.
  [[nodiscard]] Admission enter(const std::string& address);
  void leave(const std::string& address);
  [[nodiscard]] std::size_t connections() const noexcept { return connections_; }

  /// Whether the address may make one more request now: a bucket of `burst` requests that fills at `requests_per_s`.
  [[nodiscard]] bool allow(const std::string& address, Time now);

 private:
  struct Use {
    std::size_t connections = 0;
    double tokens = 0;
    Time at{};
  };
  void forget_idle(Time now);
  [[nodiscard]] double tokens_at(const Use& use, Time now) const;

  Limits limits_;
  std::size_t connections_ = 0;
  std::unordered_map<std::string, Use> uses_;
};

}  // namespace troupe::service
