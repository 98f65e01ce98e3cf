/// The recorder's journal: it writes the current segment, begins new ones, and removes old ones so that the total size stays near the
/// policy's limit. A journal that cannot be written ends; the run goes on. Not thread-safe.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/protocol/messages.hpp"
#include "core/journal.hpp"
#include "nn/checkpoint/file_system.hpp"

namespace troupe::actors {

class JournalKeeper {
 public:
  /// `config`: the session's, resolved. `plan`: its plan.json. Each segment has copies of both beside it.
  JournalKeeper(std::shared_ptr<const RunDirectory> directory, experiment::JournalPolicy policy, core::Config config,
                std::string plan);

  /// Whether records are kept: there is a journal, and it has not failed.
  [[nodiscard]] bool is_on() const noexcept { return writer_.has_value() || !held_.empty(); }
  /// Whether records are held in memory until begin().
  [[nodiscard]] bool holds() const noexcept { return !held_.empty(); }
  [[nodiscard]] core::Result<void> append(const JournalRecords& records);
  [[nodiscard]] core::Result<void> flush();
  /// Closes the journal. REQUIRES that all members' records are in it.
  [[nodiscard]] core::Result<void> close();

  /// Writes the files that a segment has beside its records. Owns what it needs: may run on any thread, while the keeper does other work.
  using Beginning = std::function<core::Result<void>()>;
  /// The session's first segment, and any later one. Its start files wait for the disk; the members do not: from here on records belong to
  /// the new segment and are held in memory until begin(). Call begin() once for each open segment, in order. `files` outlives the
  /// Beginning. `start_file`: the checkpoint that the members begin with; empty: a new run.
  [[nodiscard]] core::Result<Beginning> open(const std::string& start_file, std::shared_ptr<nn::FileSystem> files);
  /// The same in the middle of a run. REQUIRES is_on().
  [[nodiscard]] core::Result<Beginning> hold(std::shared_ptr<const Checkpoint> start,
                                             std::shared_ptr<nn::FileSystem> files);
  /// `written`: the result of the oldest held segment's Beginning. Closes the segment before; the new one continues with the held records.
  /// On an error the segment before continues with them, if is_on().
  [[nodiscard]] core::Result<void> begin(const core::Result<void>& written);

  /// Limit of held records, bytes. A journal that needs more ends.
  static constexpr std::size_t kMostHeld = std::size_t{64} << 20;

  /// Whether the segment has reached its share; true once.
  [[nodiscard]] bool full();

 private:
  struct Held {
    experiment::JournalSegment segment;
    std::vector<JournalRecords> records{};
  };
  [[nodiscard]] core::Result<experiment::JournalSegment> next() const;
  [[nodiscard]] Beginning with_copies(const experiment::JournalSegment& segment, Beginning write_start) const;
  [[nodiscard]] core::Result<void> write(const JournalRecords& records);
  [[nodiscard]] core::Result<void> write_oldest();
  void end();
  void remove_old() const;

  std::shared_ptr<const RunDirectory> directory_;
  experiment::JournalPolicy policy_;
  core::Config config_;
  std::string plan_;
  std::optional<core::JournalWriter> writer_;
  std::deque<Held> held_;  // segments that have not begun
  std::size_t held_bytes_ = 0;
  std::uint64_t full_at_ = 0;  // the current segment's limit, bytes
  bool told_ = false;
};

}  // namespace troupe::actors
