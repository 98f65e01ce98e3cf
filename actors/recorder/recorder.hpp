/// The recorder actor, one per run, spawned detached: metrics, journal, checkpoints on disk, progress on the terminal. It and the
/// thread of its Disk wait for the disk, and nobody else. While a checkpoint is written everything else is recorded
/// as ever; the end (Finish) waits for it. A disk that fails is said once and costs records, never the training.
#pragma once

#include <memory>

#include "experiment/report/console.hpp"
#include "actors/protocol/handles.hpp"
#include "actors/coordinator/member_rules.hpp"
#include "actors/protocol/vocabulary.hpp"
#include "core/clock.hpp"
#include "nn/checkpoint/metered_files.hpp"

namespace troupe::actors {

/// What a recorder is spawned with.
struct RecorderSetup {
  std::shared_ptr<const RunDirectory> directory;
  std::shared_ptr<nn::MeteredFiles> disk;            // that `checkpoints` writes to
  std::shared_ptr<nn::CheckpointStore> checkpoints;  // its Disk's from now on
  report::ConsoleOptions console;
  std::vector<Note> notes;  // what came up before there was a recorder
  experiment::JournalPolicy journal;
  std::string start_file{};            // the checkpoint that the members begin with; empty: a new run
  bool tensorboard = true;             // write event files
  const core::Clock* clock = nullptr;  // outlives the actor
  core::Config config{};               // the session's, resolved: a journal segment has a copy of it
  std::string plan{};                  // the session's plan.json, of which it has one, too
  MemberRules rules{};                 // for members in other processes
};

class RecorderBody;
struct RecorderState {
  std::unique_ptr<RecorderBody> body;
  static inline const char* name = "recorder";
  RecorderState();
  ~RecorderState();
};

[[nodiscard]] RecorderActor::behavior_type recorder(RecorderActor::stateful_pointer<RecorderState> self,
                                                    RecorderSetup setup);

}  // namespace troupe::actors
