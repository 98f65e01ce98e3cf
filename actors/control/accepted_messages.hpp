/// The messages that may come from other processes, and their types. Any other message ends the connection before CAF reads it
/// (conversation.hpp). A message between processes must be in a list of accepted_messages.cpp. Pure functions.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "actors/control/reader.hpp"

namespace troupe::actors {

enum class MessageUse : std::uint8_t {
  notification,  ///< a message without an answer
  request,
  response,
};

/// Reads the content of a message, its types first. False: the message is not in the list for `use`, or is not well formed. Adds the actors
/// that the message names to `actors`.
[[nodiscard]] bool is_wire_message(ValueReader& content, MessageUse use, std::vector<RemoteHandle>& actors);

}  // namespace troupe::actors
