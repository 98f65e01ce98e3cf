/// Which messages come in from other processes, and what they are made of: everything else ends the connection before CAF has read it
/// (conversation.hpp). A message that is to travel stands in the lists of accepted_messages.cpp. Pure functions.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "actors/control/reader.hpp"

namespace troupe::actors {

enum class WireUse : std::uint8_t {
  told,      ///< a message that nobody waits for
  asked,     ///< one that somebody waits for the answer to
  answered,  ///< what has been asked
};

/// Reads the content of a message, its types first. Nothing: it is not one that travels so, or is not well formed. `actors` gets whoever is
/// named in it.
[[nodiscard]] bool is_wire_message(WireReader& content, WireUse use, std::vector<WireHandle>& actors);

}  // namespace troupe::actors
