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
  /// No step follows. Tells the process, and waits for its end, at most patience_at_end(). `in_order`: a program that has computed something
  /// saves its model there. Errc::program: it failed after its last batch, or was killed because it went on for longer. Otherwise it is told
  /// to leave out the rest of its script, and how it ends is no error.
  [[nodiscard]] virtual core::Result<void> end(bool in_order) = 0;
};

/// Null: no process computes `replica`.
[[nodiscard]] inline OwnProcess* own_process_of(Replica& replica) noexcept {
  return dynamic_cast<OwnProcess*>(&replica);
}

/// Of a program to end, when there is nothing for it to save.
inline constexpr std::chrono::seconds kLeastPatienceAtEnd{20};

/// How long a program may go on after its last batch; 0: the model is none of a program. A short model.silence_s is for steps, and a program
/// saves its model here, if the run ended in order.
[[nodiscard]] inline std::chrono::seconds patience_at_end(const ModelConfig& model, bool in_order = true) noexcept {
  if (model.command.empty()) return {};
  return std::max(in_order ? std::chrono::seconds(std::llround(model.silence_s)) : std::chrono::seconds{},
                  kLeastPatienceAtEnd);
}

}  // namespace troupe::nn
