/// A history: a whole run over real processes and its events. Plain values with one line of text, which can be shortened by hand: an
/// event is timed in steps after the event before it, so any event can be left out.
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
  freeze,     ///< SIGSTOP to a node, too short for an eviction
  silence,    ///< SIGSTOP to a node until it is lost, then SIGCONT
  start,      ///< starts a node that was killed or has not been started yet
  interrupt,  ///< SIGINT to the training process; the run is resumed
  crash,      ///< SIGKILL to it; the run is resumed
  cut,        ///< SIGKILL to it during a resume, at the first new file in the run's directory; the run is resumed
  last,       ///< SIGKILL to it when it has reported its last epoch; the run is resumed
  evaluate,   ///< `troupe eval` of the run while it trains
  intrude,    ///< a second `troupe train --resume` of the run while it trains
};

struct Event {
  Doing what = Doing::kill;
  std::uint32_t after = 0;    ///< steps over all workers, since the event before or the session's beginning
  std::uint32_t node = 0;     ///< kill, freeze, silence, start
  std::uint32_t nodes = 0;    ///< interrupt, crash, cut, last: number of nodes of the resumed run; 0: one process
  std::uint32_t workers = 0;  ///< its number of workers
  bool operator==(const Event&) const = default;
};

struct History {
  std::uint32_t workers = 2;
  std::uint32_t nodes = 1;   ///< processes that the workers are spread over; 0: everything is in one process
  std::uint32_t late = 0;    ///< number of nodes, the last ones, that are not up when the run begins
  std::uint32_t epochs = 0;  ///< 0: trains until all events are done, is interrupted, then resumed for an epoch or two
  bool tls = false;          ///< with certificates
  std::vector<std::string> settings{};  ///< "strategy.tau=4", in the order of the command line
  std::vector<Event> events{};
  bool operator==(const History&) const = default;

  /// Value of the last setting of `key`; empty: it is not set.
  [[nodiscard]] std::string setting(std::string_view key) const;
  [[nodiscard]] std::string strategy() const { return setting("strategy.name"); }
};

[[nodiscard]] std::string to_text(const Event& event);
[[nodiscard]] std::string to_text(const History& history);
/// Errc::config: names the unreadable word, or the event whose node the history does not have.
[[nodiscard]] core::Result<History> parse(std::string_view text);

}  // namespace troupe::histories
