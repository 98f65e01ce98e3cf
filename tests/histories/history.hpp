/// A history: a whole run over real processes, and what happens to it on the way. Plain values with one line of text for each, which
/// can be cut down by hand: every event says how many steps after the one before it comes, so that any of them can be left out.
///
///     workers=3 nodes=2 strategy.name=easgd strategy.tau=4 | kill:1+30 start:1+12 interrupt:2/4+40
///
/// Words with a dot are settings of the run; a blank in a value is written `~`. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.hpp"

namespace troupe::histories {

enum class Doing : std::uint8_t {
  kill,       ///< SIGKILL to a node
  freeze,     ///< SIGSTOP to a node for a moment that nobody is evicted for
  silence,    ///< SIGSTOP to a node until it is lost, then SIGCONT
  start,      ///< a node that was killed, or was not there at the beginning, is started
  interrupt,  ///< SIGINT to the process that trains; the run is resumed
  crash,      ///< SIGKILL to it; the run is resumed
  cut,  ///< SIGKILL to it while a resume begins: as soon as there is a new file in the run's directory; the run is resumed again
  last,      ///< SIGKILL to it when it has reported its last epoch; the run is resumed
  evaluate,  ///< `troupe eval` of the run while it trains
  intrude,   ///< a second `troupe train --resume` of the run while it trains
};

struct Event {
  Doing what = Doing::kill;
  std::uint32_t after = 0;    ///< steps over all workers, since the event before or the session's beginning
  std::uint32_t node = 0;     ///< kill, freeze, silence, start
  std::uint32_t nodes = 0;    ///< interrupt, crash, cut, last: the run is resumed on so many nodes; 0: in one process
  std::uint32_t workers = 0;  ///< and with so many workers
  bool operator==(const Event&) const = default;
};

struct History {
  std::uint32_t workers = 2;
  std::uint32_t nodes = 1;  ///< processes that workers are spread over; 0: none, everything is in one process
  std::uint32_t late = 0;   ///< so many of them, the last ones, are not there when the run begins
  std::uint32_t epochs =
      0;  ///< 0: it trains until all has happened, then is interrupted and resumed for the rest of an epoch or two
  bool tls = false;                     ///< with certificates
  std::vector<std::string> settings{};  ///< "strategy.tau=4", in the order of the command line
  std::vector<Event> events{};
  bool operator==(const History&) const = default;

  /// Value of the last setting of `key`; empty: it is not set.
  [[nodiscard]] std::string setting(std::string_view key) const;
  [[nodiscard]] std::string strategy() const { return setting("strategy.name"); }
};

[[nodiscard]] std::string to_text(const Event& event);
[[nodiscard]] std::string to_text(const History& history);
/// Errc::config names the word that cannot be read, or the event that the history has no node for.
[[nodiscard]] core::Result<History> parse(std::string_view text);

}  // namespace troupe::histories
