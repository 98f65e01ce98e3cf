/// For replicas that a process of its own computes: programs of the user's, which go on after their last batch.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>

#include "core/error.hpp"
#include "nn/backend.hpp"
#include "nn/zoo/models.hpp"

namespace troupe::nn {

/// Thread rule: as nn::Replica.
class OwnProcess {
 public:
  virtual ~OwnProcess() = default;
  /// No step follows. Tells the process, and waits for its end, at most patience_at_end(): a program saves its model there. Errc::program: it
  /// failed after its last batch, or was killed because it went on for longer.
  [[nodiscard]] virtual core::Result<void> end() = 0;
};

/// Null: no process computes `replica`.
[[nodiscard]] inline OwnProcess* own_process_of(Replica& replica) noexcept {
  return dynamic_cast<OwnProcess*>(&replica);
}

/// How long a program may go on after its last batch; 0: the model is none of a program. At least 20 s: a short model.silence_s is for steps,
/// and a program saves its model here.
[[nodiscard]] inline std::chrono::seconds patience_at_end(const ModelConfig& model) noexcept {
  constexpr double kLeast = 20;
  return std::chrono::seconds(model.command.empty() ? 0 : std::llround(std::max(model.silence_s, kLeast)));
}

}  // namespace troupe::nn
