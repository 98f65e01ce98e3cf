/// The recorder's hand on the journal: the segment that is being written, new ones in its place, and old ones removed so that
/// together they stay about as large as the policy says. A journal that cannot be written ends; the run goes on. One thread.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "actors/messages.hpp"
#include "core/journal.hpp"

namespace troupe::actors {

class JournalKeeper {
 public:
  /// `config` and `plan`: the session's, resolved, and its plan.json; each segment has copies beside it.
  JournalKeeper(std::shared_ptr<const RunDirectory> directory, experiment::JournalPolicy policy, core::Config config,
                std::string plan);

  /// The first segment of this session. `start`: a checkpoint file that the members begin with; empty: a new run.
  [[nodiscard]] core::Result<void> open(const std::string& start);
  [[nodiscard]] core::Result<void> append(const JournalRecords& records);
  [[nodiscard]] core::Result<void> flush();
  /// All members' records are in it.
  [[nodiscard]] core::Result<void> close();
  /// Closes the segment and begins another with `start`. After an Error the old one goes on.
  [[nodiscard]] core::Result<void> rotate(const Checkpoint& start);

  /// The segment has grown to its share; says so once.
  [[nodiscard]] bool full();

 private:
  [[nodiscard]] core::Result<core::JournalWriter> create(const experiment::JournalSegment& segment) const;
  void remove_old() const;

  std::shared_ptr<const RunDirectory> directory_;
  experiment::JournalPolicy policy_;
  core::Config config_;
  std::string plan_;
  std::optional<core::JournalWriter> writer_;
  bool told_ = false;
};

}  // namespace troupe::actors
