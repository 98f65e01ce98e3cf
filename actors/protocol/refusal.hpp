/// Refusing what a peer says: why, how often, and limits of what a peer may say that more than one set of rules keeps.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace troupe::actors {

/// Why not; nothing: it may be heard.
using Refusal = std::optional<std::string>;

/// A step's number: beyond what any run comes to, and so far below 2^64 that arithmetic with it is safe.
constexpr std::uint64_t kMostSteps = std::uint64_t{1} << 40;
constexpr double kMostWeight =
    1000;  ///< a worker's share of the model: they add up to 1; more with members that come back

/// How often who was refused: said the 1st, 2nd, 4th, 8th … time, so that nobody fills a disk with it. A value; one thread.
class RefusalCount {
 public:
  /// Members never say what is refused: one that has done so this often is given up, and again when it has come back.
  static constexpr std::uint64_t kMost = 256;

  /// A line for the log, now and then. `who` tells those apart that are counted apart.
  [[nodiscard]] std::optional<std::string> add(const std::string& who, const std::string& why);
  /// The last add() was the one too many.
  [[nodiscard]] bool enough(const std::string& who) const;

 private:
  std::map<std::string, std::uint64_t> counts_;
};

/// A text from elsewhere, fit to be shown: one line, not too long.
[[nodiscard]] std::string one_line(const std::string& text);

}  // namespace troupe::actors
