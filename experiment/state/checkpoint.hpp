/// What a run keeps so that it can go on: whole vectors in canonical form under their prefixes, and the book-keeping. Between
/// this and a file stand nn::CheckpointStore and docs/formats/checkpoint.md. Plain values.
#pragma once

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

struct Checkpoint {
  std::uint64_t step = 0;  // over all workers; names the file
  std::shared_ptr<const nn::Graph> graph;
  std::map<std::string, std::vector<float>> vectors;  // by prefix: "" parameters, "optimizer.velocity.", …
  std::map<std::string, std::uint64_t>
      optimizer_steps{};          // by prefix of a worker's optimizer state: that it is made of
  std::vector<float> statistics;  // canonical, the workers' mean; empty: the model has none
  std::string leases;             // data::LeaseBook::state()
  std::string strategy;           // its name
  std::string optimizer;          // of the workers: whose state theirs is
  std::string server_optimizer;   // whose state the servers' is; empty: none
  RunTotals totals;
  /// Start state of a journal segment: what each member is besides its vectors, by name ("worker.0", "server.1"). Empty in a
  /// checkpoint to resume from, whose members join anew.
  std::map<std::string, std::string> members;
};

/// Prefix of a worker's k-th optimizer state vector: one for all (worker below 0: "optimizer.velocity."), or its own.
[[nodiscard]] std::string optimizer_prefix(int worker, int k);
[[nodiscard]] std::string server_state_prefix(int k);  // "server.state.0."
/// Prefix of the centre where the model is another vector of the servers (Needs::model_slot), and is the one without a prefix.
inline constexpr const char* kCenterPrefix = "center.";
/// Prefix of a worker's slot, and of an unread letter, in a start state.
[[nodiscard]] std::string worker_slot_prefix(std::uint32_t worker, strategies::Slot slot);  // "worker.0.slot.3.1."
[[nodiscard]] std::string letter_prefix(std::uint32_t worker, std::uint32_t from);          // "worker.0.letter.2."

/// Writes a new generation; the path comes back. Errors: nn::CheckpointStore::save.
[[nodiscard]] core::Result<std::string> save(nn::CheckpointStore& store, const Checkpoint& checkpoint);

/// Writes directory/name alone: a segment's start state. Errors: nn::write_checkpoint.
[[nodiscard]] core::Result<void> save_start(const std::string& path, const Checkpoint& checkpoint,
                                            nn::FileSystem& files = nn::system_files());

/// Reads what was saved for `graph`. Errc::config when it is of another model, Errc::corrupt for a field that is missing.
[[nodiscard]] core::Result<Checkpoint> load(const nn::SafetensorsFile& file, std::shared_ptr<const nn::Graph> graph);

}  // namespace troupe::experiment
