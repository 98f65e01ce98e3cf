/// The oracle's book of an epoch: from what a run has recorded, whether every sample of every epoch was trained once, or which was not,
/// and why. It knows docs/formats/journal.md and nothing of the code that writes it. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace troupe::histories {

/// Positions [first, first + count) of an epoch's permutation, under a lease's number.
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
/// A worker was lost: what it had not finished. `again`: it is granted again; else the epoch passes over it.
struct Lost {
  std::uint32_t worker = 0;
  bool again = false;
  std::vector<Piece> pieces{};
};
/// A worker's half began: its first lease is that of this step, and so on.
struct Begun {
  std::uint32_t worker = 0;
  std::uint64_t step = 0;
};
struct Trained {
  std::uint32_t worker = 0;
  std::uint64_t step = 0;
};
/// The coordinator's are in order, and each worker's are; between them the order means nothing.
using Entry = std::variant<Granted, Lost, Begun, Trained>;

/// What a segment begins with: the state of the lease book, and how far the run had come.
struct Start {
  std::uint32_t epoch = 0;
  std::uint64_t next_lease = 0;
  std::vector<std::pair<std::int64_t, std::int64_t>> free{};  ///< (first, count), of the epoch
  std::uint64_t steps = 0;
  std::uint64_t samples = 0;
  bool resumed = false;  ///< a session begins with it; else it is the middle of one
};

struct Segment {
  int number = 1;
  std::optional<Start> start{};  ///< none: the run's beginning
  std::vector<Entry> entries{};
  bool closed = false;  ///< the writer has closed it: every record of every member is there
};

struct Accounts {
  std::vector<std::string> wrong{};  ///< a line for each thing that must not be
  std::uint64_t steps = 0;           ///< that the run's course has, what was undone by a resume left out: at least
  std::uint64_t steps_most = 0;      ///< and at most: lost workers may have trained what returned
  std::uint64_t samples = 0;         ///< at least
  std::uint64_t passed_over = 0;     ///< positions of all epochs that nobody trained, and that the run has said so of
  std::uint32_t epochs = 0;          ///< done
};

struct Plan {
  std::int64_t epoch_size = 0;
  bool shares = false;  ///< Conduct
  bool passes_over = false;
};

/// `segments` in the order of their numbers; the first may not be the run's first, where a bound on the journal has removed older ones.
[[nodiscard]] Accounts account(const Plan& plan, const std::vector<Segment>& segments);

}  // namespace troupe::histories
