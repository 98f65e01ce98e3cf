/// The recorder actor, one per run, spawned detached: metrics, journal, checkpoints on disk, progress on the terminal. Only it and its
/// Disk's thread wait for the disk. While a checkpoint is written it records everything else as usual; the end (Finish) waits for the
/// checkpoint. A failing disk is reported once and costs records, never the training.
#pragma once

#include <memory>

#include "actors/protocol/handles.hpp"
#include "actors/protocol/member_message_checks.hpp"
#include "actors/protocol/vocabulary.hpp"
#include "core/clock.hpp"
#include "experiment/report/console.hpp"
#include "nn/checkpoint/metered_files.hpp"

namespace troupe::actors {

/// What a recorder is spawned with.
struct RecorderSetup {
  std::shared_ptr<const RunDirectory> directory;
  std::shared_ptr<nn::MeteredFiles> disk;            // written by `checkpoints`
  std::shared_ptr<nn::CheckpointStore> checkpoints;  // owned by the Disk's jobs from now on
  report::ConsoleOptions console;
  std::vector<Note> notes;  // from the time before the recorder
  experiment::JournalPolicy journal;
  std::string start_file{};            // the checkpoint that the members begin with; empty: a new run
  bool tensorboard = true;             // write event files
  const core::Clock* clock = nullptr;  // outlives the actor
  core::Config config{};               // the session's, resolved: each journal segment has a copy
  std::string plan{};                  // the session's plan.json: copied in the same way
  MemberMessageChecks checks{};        // for members in other processes
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
