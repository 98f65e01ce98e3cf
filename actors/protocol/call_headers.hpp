/// Headers of calls between exchangers: the kind of call, then the message in CAF's serial form. Internal to the exchanger and its tests.
/// Thread rule: free functions without shared state.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "actors/protocol/handles.hpp"

namespace troupe::actors {

/// The kind of call: the first part of its header.
enum class CallKind : std::uint8_t { shard, peer_message, snapshot, start };

/// Writes a header into `bytes`, which can be used again: it keeps its memory.
template <class... Ts>
std::string_view write_header(caf::actor_system& system, std::vector<char>& bytes, const Ts&... parts) {
  bytes.clear();
  caf::binary_serializer sink(system, bytes);
  if (auto error = sink(parts...)) throw std::logic_error("exchanger: a message cannot be serialised");
  return {bytes.data(), bytes.size()};
}
template <class... Ts>
[[nodiscard]] std::string pack_header(caf::actor_system& system, const Ts&... parts) {
  std::vector<char> bytes;
  return std::string(write_header(system, bytes, parts...));
}

/// Reads the parts of a header in their order, each once. Borrows the header.
class HeaderReader {
 public:
  HeaderReader(caf::actor_system& system, std::string_view header) : source_(system, header.data(), header.size()) {}
  template <class Part>
  [[nodiscard]] bool next(Part& part) {
    return !source_(part);
  }
  /// False if something is left behind the part.
  template <class Part>
  [[nodiscard]] bool last(Part& part) {
    return next(part) && source_.remaining() == 0;
  }

 private:
  caf::binary_deserializer source_;
};

/// False if the header does not consist of exactly this part.
template <class Part>
[[nodiscard]] bool unpack_header(caf::actor_system& system, std::string_view header, Part& part) {
  return HeaderReader(system, header).last(part);
}

}  // namespace troupe::actors
