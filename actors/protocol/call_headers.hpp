/// Headers of calls between exchangers: the kind of call, then the message in CAF's serial form. Internal to the exchanger and its tests.
/// Thread rule: free functions without shared state.
#pragma once

#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "actors/protocol/handles.hpp"

namespace troupe::actors {

/// The kind of call: the first part of its header.
enum class What : std::uint8_t { shard, peer_message, snapshot, start };

template <class... Ts>
[[nodiscard]] std::string pack_header(caf::actor_system& system, const Ts&... parts) {
  std::vector<char> bytes;
  caf::binary_serializer sink(system, bytes);
  if (auto error = sink(parts...)) throw std::logic_error("exchanger: a message cannot be serialised");
  return {bytes.begin(), bytes.end()};
}

/// False if the header does not consist of exactly these parts.
template <class... Ts>
[[nodiscard]] bool unpack_header(caf::actor_system& system, const std::string& header, Ts&... parts) {
  const std::vector<char> bytes(header.begin(), header.end());
  caf::binary_deserializer source(system, bytes);
  return !source(parts...) && source.remaining() == 0;
}

}  // namespace troupe::actors
