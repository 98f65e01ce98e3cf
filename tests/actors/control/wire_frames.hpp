/// Frames of CAF's protocol (BASP), made by hand: for the tests of the filters on incoming frames.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <caf/all.hpp>
#include <caf/io/basp/header.hpp>

#include "actors/protocol/handles.hpp"

namespace troupe::actors::testing {

using caf::io::basp::message_type;

template <class... Ts>
[[nodiscard]] std::string in_wire_form(caf::actor_system& system, const Ts&... parts) {
  std::vector<char> bytes;
  caf::binary_serializer sink(system, bytes);
  if (auto error = sink(parts...)) throw std::logic_error("it cannot be written");
  return {bytes.begin(), bytes.end()};
}

struct FrameFields {
  message_type type = message_type::direct_message;
  std::uint8_t flags = 0;
  std::uint64_t id = caf::message_id::default_async_value;
  std::uint64_t from = 0;
  std::uint64_t to = 0;
};

[[nodiscard]] inline std::string frame(const FrameFields& fields, const std::string& payload) {
  std::string bytes{static_cast<char>(fields.type), 0, 0, static_cast<char>(fields.flags)};
  const auto number = [&](std::uint64_t value, int size) {
    for (int shift = 8 * (size - 1); shift >= 0; shift -= 8) bytes.push_back(static_cast<char>(value >> shift));
  };
  number(payload.size(), 4);
  number(fields.id, 8);
  number(fields.from, 8);
  number(fields.to, 8);
  return bytes + payload;
}

/// A message's payload: an empty forwarding stack, then the parts of the message.
template <class... Ts>
[[nodiscard]] std::string content(caf::actor_system& system, const Ts&... parts) {
  return in_wire_form(system, std::vector<caf::strong_actor_ptr>{}, caf::make_message(parts...));
}

[[nodiscard]] inline caf::node_id test_node(std::uint32_t number) {
  return caf::make_node_id(number, caf::node_id::default_data::host_id_type{1, 2, 3});
}
[[nodiscard]] inline std::string client_handshake(caf::actor_system& system, const caf::node_id& node) {
  return frame({.type = message_type::client_handshake, .id = 0}, in_wire_form(system, node));
}
[[nodiscard]] inline std::string server_handshake(caf::actor_system& system, const caf::node_id& node,
                                                  caf::actor_id published) {
  return frame({.type = message_type::server_handshake, .id = 4},
               in_wire_form(system, node, std::vector<std::string>{"generic-caf-app"}, published,
                            std::set<std::string>{"a", "b"}));
}

}  // namespace troupe::actors::testing
