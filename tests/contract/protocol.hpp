/// The agreement between a probe's worker rule and its shards: what happens to a request is a function of its ids. Pure.
#pragma once

#include "strategies/host/events.hpp"

namespace troupe::contract {

/// What a shard does with a request. "Worked on": its payload is added to the centre.
enum class Fate : std::uint8_t {
  answered,  ///< worked on and answered at once
  held,      ///< worked on at once, answered later
  put_off,   ///< worked on and answered later
  dropped,
  refused,  ///< the worker sends numbers that cannot be used
};

/// A worker's exchange ids ascend. `sure`: the request is answered at once and never dropped.
[[nodiscard]] constexpr strategies::ExchangeId exchange_id(std::uint64_t number, bool sure) {
  return number << 1 | (sure ? 1 : 0);
}
[[nodiscard]] constexpr std::uint64_t mix(std::uint64_t a, std::uint64_t b, std::uint64_t c) {
  auto x = a * 0x9e3779b97f4a7c15U + b * 0xbf58476d1ce4e5b9U + c * 0x94d049bb133111ebU;
  x = (x ^ x >> 31) * 0xd6e8feb86659fd93U;
  return x ^ x >> 32;
}
[[nodiscard]] constexpr Fate fate_of(strategies::WorkerId worker, strategies::ExchangeId exchange,
                                     strategies::ShardId shard, strategies::Transfer kind) {
  if (exchange & 1) return Fate::answered;
  switch (mix(worker, exchange, shard) % 8) {
    case 0: return Fate::dropped;
    case 1:
    case 2: return Fate::held;
    case 3:
    case 4: return Fate::put_off;
    case 5: return kind == strategies::Transfer::pull ? Fate::answered : Fate::refused;
    default: return Fate::answered;
  }
}
/// The min_clock of the answer: a value that no other request's answer has.
[[nodiscard]] constexpr strategies::Step clock_of(strategies::ExchangeId exchange, strategies::ShardId shard) {
  return exchange * 64 + shard + 1;
}

}  // namespace troupe::contract
