/// Refusals of peers' messages: reason, number, and limits that several kinds of checks share.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace troupe::actors {

/// The reason; none: the message is accepted.
using Refusal = std::optional<std::string>;

/// Upper limit of a step number: no run reaches it, and arithmetic with it stays far below 2^64.
constexpr std::uint64_t kMostSteps = std::uint64_t{1} << 40;
constexpr double kMostWeight =
    1000;  ///< a worker's share of the model: shares add up to 1, or more when members come back

/// Counts refusals by sender. Reports the 1st, 2nd, 4th, 8th … one, so that no sender fills a disk. A value; not thread-safe.
class RefusalCount {
 public:
  /// A correct member is never refused. A sender with this many refusals is given up; after a return, with as many again.
  static constexpr std::uint64_t kMost = 256;

  /// Counts a refusal of `who`. Returns a line for the log, or none.
  [[nodiscard]] std::optional<std::string> add(const std::string& who, const std::string& why);
  /// Whether the last refusal of `who` reached a multiple of kMost.
  [[nodiscard]] bool enough(const std::string& who) const;

 private:
  std::map<std::string, std::uint64_t> counts_;
};

/// A peer's text, made fit for display: one line, limited length.
[[nodiscard]] std::string one_line(const std::string& text);

}  // namespace troupe::actors
