/// The recorder's hand on the journal: the segment that is being written, new ones in its place, and old ones removed so that
/// together they stay about as large as the policy says. A journal that cannot be written ends; the run goes on. One thread.
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
  /// `config` and `plan`: the session's, resolved, and its plan.json; each segment has copies beside it.
  JournalKeeper(std::shared_ptr<const RunDirectory> directory, experiment::JournalPolicy policy, core::Config config,
                std::string plan);

  /// Whether records are kept at all: there is a journal, and it has not failed.
  [[nodiscard]] bool is_on() const noexcept { return writer_.has_value() || !held_.empty(); }
  /// Whether records are kept in memory, until begin().
  [[nodiscard]] bool holds() const noexcept { return !held_.empty(); }
  [[nodiscard]] core::Result<void> append(const JournalRecords& records);
  [[nodiscard]] core::Result<void> flush();
  /// All members' records are in it.
  [[nodiscard]] core::Result<void> close();

  /// Writes the files that a segment has beside its records. Owns what it needs: may run on any thread, whatever is done here meanwhile.
  using Beginning = std::function<core::Result<void>()>;
  /// The session's first segment, and any that follows. What it begins with has to wait for the disk, and nobody else is to: from here on
  /// records are those of the new segment, and kept in memory until begin(), which is to be called for each in the same order. `files`
  /// outlives the Beginning. `start_file`: a checkpoint that the members begin with; empty: a new run.
  [[nodiscard]] core::Result<Beginning> open(const std::string& start_file, std::shared_ptr<nn::FileSystem> files);
  /// The same with members in the middle of a run. REQUIRES is_on().
  [[nodiscard]] core::Result<Beginning> hold(std::shared_ptr<const Checkpoint> start,
                                             std::shared_ptr<nn::FileSystem> files);
  /// `written`: what the Beginning of the oldest that is held has come to. Closes the segment before, and the new one goes on with what
  /// was kept. After an Error the segment before goes on with it, if is_on().
  [[nodiscard]] core::Result<void> begin(const core::Result<void>& written);

  /// What is kept at most: bytes. A journal that needs more ends.
  static constexpr std::size_t kMostHeld = std::size_t{64} << 20;

  /// The segment has grown to its share; says so once.
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
  std::deque<Held> held_;  // segments that are to come
  std::size_t held_bytes_ = 0;
  std::uint64_t full_at_ = 0;  // bytes of the segment that is written
  bool told_ = false;
};

}  // namespace troupe::actors
