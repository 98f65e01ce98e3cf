/// Messages as the headers of calls between exchangers: what is asked, then the message as CAF writes it. Internal to the exchanger, and to
/// who tests it. Thread rule: none of its own.
#pragma once

#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "actors/protocol/handles.hpp"

namespace troupe::actors {

/// What a call's header begins with.
enum class What : std::uint8_t { shard, letter, snapshot, start };

template <class... Ts>
[[nodiscard]] std::string pack_header(caf::actor_system& system, const Ts&... parts) {
  std::vector<char> bytes;
  caf::binary_serializer sink(system, bytes);
  if (auto error = sink(parts...)) throw std::logic_error("exchanger: a message cannot be serialised");
  return {bytes.begin(), bytes.end()};
}

/// False when the header is anything but these parts.
template <class... Ts>
[[nodiscard]] bool unpack_header(caf::actor_system& system, const std::string& header, Ts&... parts) {
  const std::vector<char> bytes(header.begin(), header.end());
  caf::binary_deserializer source(system, bytes);
  return !source(parts...) && source.remaining() == 0;
}

}  // namespace troupe::actors
