/// The oracle's accounts: from a run's journal, whether every sample of every epoch was trained once, and otherwise which was not and why.
/// Depends on docs/formats/journal.md only, not on the code that writes journals. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace troupe::histories {

/// Positions [first, first + count) of an epoch's permutation, granted as lease number `lease`.
struct Piece {
  std::uint64_t lease = 0;
  std::uint32_t epoch = 0;
  std::int64_t first = 0;
  std::int64_t count = 0;
  bool operator==(const Piece&) const = default;
};

struct Granted {
  std::uint32_t worker = 0;
  Piece piece{};
};
/// A worker was lost with these unfinished leases. `again`: they are granted again; else the epoch passes over them.
struct Lost {
  std::uint32_t worker = 0;
  bool again = false;
  std::vector<Piece> pieces{};
};
/// A worker's rule began: its first lease is that of step `step`, the next lease that of the next step.
struct Begun {
  std::uint32_t worker = 0;
  std::uint64_t step = 0;
};
struct Trained {
  std::uint32_t worker = 0;
  std::uint64_t step = 0;
};
/// The coordinator's entries are in order, and so are each worker's; between members the order has no meaning.
using Entry = std::variant<Granted, Lost, Begun, Trained>;

/// A segment's start state: the state of the lease scheduler, and the run's totals.
struct Start {
  std::uint32_t epoch = 0;
  std::uint64_t next_lease = 0;
  std::vector<std::pair<std::int64_t, std::int64_t>> free{};  ///< (first, count), of the epoch
  std::uint64_t steps = 0;
  std::uint64_t samples = 0;
  bool resumed = false;  ///< a session begins with it; else it is in the middle of one
};

struct Segment {
  int number = 1;
  std::optional<Start> start{};  ///< none: the run's beginning
  std::vector<Entry> entries{};
  bool closed = false;  ///< the writer has closed it: it has every record of every member
};

struct Accounts {
  std::vector<std::string> wrong{};  ///< one line per violation
  std::uint64_t steps = 0;           ///< lower bound; steps undone by a resume do not count
  std::uint64_t steps_most = 0;      ///< upper bound: lost workers may have trained returned leases
  std::uint64_t samples = 0;         ///< lower bound
  std::uint64_t passed_over = 0;     ///< positions of all epochs recorded as not trained
  std::uint32_t epochs = 0;          ///< epochs done
};

struct RunFacts {
  std::int64_t epoch_size = 0;
  bool in_step = false;  ///< as in Conduct
  bool passes_over = false;
};

/// REQUIRES `segments` in the order of their numbers. The run's first ones may be missing: a bound on the journal removes the oldest.
[[nodiscard]] Accounts account(const RunFacts& facts, const std::vector<Segment>& segments);

}  // namespace troupe::histories
