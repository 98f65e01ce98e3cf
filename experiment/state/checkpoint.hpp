/// The state from which a run can resume: whole vectors in canonical form under their prefixes, and the bookkeeping. nn::CheckpointStore
/// writes it to a file (docs/formats/checkpoint.md). Plain values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "experiment/run_totals.hpp"
#include "nn/checkpoint/checkpoint.hpp"
#include "nn/graph.hpp"
#include "strategies/host/types.hpp"

namespace troupe::experiment {

/// What a replica with its own optimizer keeps of it (nn::OwnOptimizer::own_state).
using OwnState = std::shared_ptr<const std::vector<std::byte>>;

/// A vector in canonical form, shared and read only: checkpoints, start states and the coordinator's model are one copy where they are equal.
using CanonicalVector = std::shared_ptr<const std::vector<float>>;

struct Checkpoint {
  std::uint64_t step = 0;  // sum over all workers; part of the file's name
  std::shared_ptr<const nn::Graph> graph;
  std::map<std::string, CanonicalVector> vectors;  // not null; by prefix: "" parameters, "optimizer.velocity.", …
  std::map<std::string, std::uint64_t>
      optimizer_steps{};                           // by prefix of a worker's optimizer state: steps that made it
  std::map<std::uint32_t, OwnState> own_states{};  // by worker; not null
  std::vector<float> statistics;                   // canonical, mean over the workers; empty: the model has none
  std::string leases;                              // data::LeaseScheduler::state()
  std::string strategy;                            // its name
  std::string optimizer;                           // of the workers: the rule that made their state
  std::string server_optimizer;                    // the same of the servers; empty: none
  std::string data{};                              // data_fingerprint() of the data it was trained on; empty: not known
  std::string validation{};  // validation_fingerprint() of the split that decided; empty: not known
  RunTotals totals;
  std::string config{};  // TOML, resolved, of the session that wrote it; empty: not known, as in files of version 0.1
  /// Start state of a journal segment: each member's state besides its vectors, by name ("worker.0", "server.1"). Empty in a checkpoint for
  /// resume: its members begin anew.
  std::map<std::string, std::string> members;
};

/// The tensor of a worker's own_states ("worker.0.optimizer").
[[nodiscard]] std::string own_state_name(std::uint32_t worker);
/// Prefix of a worker's k-th optimizer state vector: its own, or for `worker` below 0 the common one ("optimizer.velocity.").
[[nodiscard]] std::string optimizer_prefix(int worker, int k);
[[nodiscard]] std::string server_state_prefix(int k);  // "server.state.0."
/// Prefix of the centre, or of the workers' parameters, where the model is an average of them (Needs::model_slot) and has no prefix.
inline constexpr const char* kCenterPrefix = "center.";
/// Prefix of a worker's slot and of an unread peer message in a start state.
[[nodiscard]] std::string worker_slot_prefix(std::uint32_t worker, strategies::Slot slot);  // "worker.0.slot.3.1."
[[nodiscard]] std::string peer_message_prefix(std::uint32_t worker, std::uint32_t from);    // "worker.0.letter.2."

/// Writes a new generation; returns its path. Errors: nn::CheckpointStore::save.
[[nodiscard]] core::Result<std::string> save(nn::CheckpointStore& store, const Checkpoint& checkpoint);

/// The same file in memory, for other processes.
[[nodiscard]] core::Result<std::vector<std::byte>> encode(const Checkpoint& checkpoint);

/// The checkpoint in `path` as a newcomer needs it, in memory: without the states of programs' optimizers, which are the larger part of it. The
/// newcomer's begins anew. Errors: nn::read_selected.
[[nodiscard]] core::Result<std::vector<std::byte>> encode_for_newcomer(const std::string& path);

/// Writes only the file `path`: a segment's start state. Errors: nn::write_checkpoint.
[[nodiscard]] core::Result<void> save_start(const std::string& path, const Checkpoint& checkpoint,
                                            nn::FileSystem& files = nn::system_files());

/// Reads a checkpoint of `graph`. Errc::config when it belongs to another model, Errc::corrupt when a field is missing.
[[nodiscard]] core::Result<Checkpoint> load(const nn::SafetensorsFile& file, std::shared_ptr<const nn::Graph> graph);

}  // namespace troupe::experiment
