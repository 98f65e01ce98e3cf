/// The recorder's hand on the journal: the segment that is being written, new ones in its place, and old ones removed so that
/// together they stay about as large as the policy says. A journal that cannot be written ends; the run goes on. One thread, but for
/// write_beginning().
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/messages.hpp"
#include "core/journal.hpp"
#include "nn/file_system.hpp"

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
  /// Another segment, in steps, as what it begins with has to wait for the disk and nobody else is to. From here on records are those of
  /// the new one, and kept in memory. Nothing: there is no journal. REQUIRES !holds().
  [[nodiscard]] core::Result<std::optional<experiment::JournalSegment>> hold();
  [[nodiscard]] bool holds() const noexcept { return held_.has_value(); }
  /// The files that a segment has beside its records. On any thread, whatever else is done here.
  [[nodiscard]] core::Result<void> write_beginning(const experiment::JournalSegment& segment, const Checkpoint& start,
                                                   nn::FileSystem& files) const;
  /// REQUIRES that write_beginning() has succeeded. Closes the old segment, and the new one goes on with what was kept.
  [[nodiscard]] core::Result<void> begin(const experiment::JournalSegment& segment);
  /// Or it did not, or begin() has not: the old segment goes on with what was kept.
  [[nodiscard]] core::Result<void> resume();

  /// What is kept at most: bytes. A journal that needs more ends.
  static constexpr std::size_t kMostHeld = std::size_t{64} << 20;

  /// The segment has grown to its share; says so once.
  [[nodiscard]] bool full();

 private:
  [[nodiscard]] core::Result<void> write_copies(const experiment::JournalSegment& segment) const;
  [[nodiscard]] core::Result<void> write_held();
  void remove_old() const;

  std::shared_ptr<const RunDirectory> directory_;
  experiment::JournalPolicy policy_;
  core::Config config_;
  std::string plan_;
  std::optional<core::JournalWriter> writer_;
  std::optional<std::vector<JournalRecords>> held_;  // of the segment that is to come
  std::size_t held_bytes_ = 0;
  bool told_ = false;
};

}  // namespace troupe::actors
