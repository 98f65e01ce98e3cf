/// The backend whose replicas are processes of the user's: a program with its own model, data and optimizer, for instance in PyTorch
/// (docs/guests.md). Its vectors are memory that both map, so that a strategy's exchange reads and writes them in place.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "guest/guest.hpp"
#include "nn/backend.hpp"

namespace troupe::guest {

/// What a program says of itself, and the values that its model begins with.
struct Description {
  Introduction introduction;
  TrainingPlan plan;
  std::vector<float> parameters;  // canonical
  std::vector<float> statistics;  // canonical, in the order of nn::statistics_layout
};

class GuestBackend : public nn::Backend {
 public:
  /// Starts the program and asks it. The process stays: the next replica that only evaluates takes it. Errors: those of Guest::start() and
  /// welcome(), and of Graph::of_program(). The calling thread must outlive the backend's evaluations.
  [[nodiscard]] virtual core::Result<Description> describe() = 0;
};

/// Why a program with this plan cannot take batches of `batch` samples; empty: it can.
[[nodiscard]] std::string too_large_for(const TrainingPlan& plan, std::int64_t batch);

/// `on_line` takes what the evaluator's program prints; any thread.
[[nodiscard]] std::unique_ptr<GuestBackend> make_backend(GuestProgram program, GuestProcess::OnLine on_line = {});

}  // namespace troupe::guest
