/// A replica that a guest computes. Thread rule: as nn::Replica, only the thread that made it.
#pragma once

#include <memory>
#include <optional>

#include "core/buffer.hpp"
#include "guest/guest.hpp"
#include "guest/vectors.hpp"
#include "nn/backend.hpp"
#include "nn/checkpoint/own_state.hpp"
#include "nn/program/own_process.hpp"

namespace troupe::guest {

/// The vectors of one guest, laid out plainly.
struct GuestMemory {
  std::shared_ptr<const nn::Layout> layout;
  nn::Layout statistics_layout;
  core::Buffer parameters, gradients, statistics;
  std::vector<nn::Bucket> buckets;  // of the gradients, from the tail: backward runs from the last layer to the first

  /// Errc::out_of_memory.
  [[nodiscard]] static core::Result<GuestMemory> create(GuestVectors& vectors, const nn::Graph& graph, bool gradients);
  /// The files and places for Guest::welcome(); `empty` is the file of vectors without floats.
  [[nodiscard]] SharedVectors shared(const GuestVectors& vectors, int empty) const;
};

class GuestReplica final : public nn::Replica, public nn::OwnOptimizer, public nn::OwnProcess {
 public:
  /// `guest` has been welcomed to `memory`. `steps_alone`: it steps its optimizer within step(), and shares no gradients.
  GuestReplica(const nn::Graph& graph, std::int64_t batch, bool steps_alone, GuestMemory memory,
               std::unique_ptr<Guest> guest);

  [[nodiscard]] const nn::Graph& graph() const noexcept override { return graph_; }
  [[nodiscard]] std::int64_t batch() const noexcept override { return batch_; }
  [[nodiscard]] const std::shared_ptr<const nn::Layout>& layout() const noexcept override { return memory_.layout; }
  /// Fetches the newest values of a guest that has them elsewhere. The next step returns its error.
  [[nodiscard]] core::Span parameters() noexcept override;
  [[nodiscard]] core::Span gradients() noexcept override { return memory_.gradients.view(); }
  [[nodiscard]] core::Span statistics() noexcept override;
  void parameters_written() noexcept override;
  [[nodiscard]] std::uint64_t parameters_version() const noexcept override { return version_; }
  [[nodiscard]] const std::vector<nn::Bucket>& buckets() const noexcept override { return memory_.buckets; }
  [[nodiscard]] core::Result<nn::StepResult> step(const nn::Batch& batch,
                                                  const std::function<void(int)>& on_bucket_ready) override;
  /// core::KernelsFailed: the guest has failed.
  void apply(const core::OptimizerStep& step, core::OptimizerState state) override;
  [[nodiscard]] const core::Error* failure() const noexcept override { return failed_ ? &*failed_ : nullptr; }
  [[nodiscard]] bool owns_optimizer() const noexcept override { return true; }
  [[nodiscard]] core::Result<std::vector<std::byte>> own_state() override;
  [[nodiscard]] core::Result<void> set_own_state(std::span<const std::byte> state) override;
  [[nodiscard]] core::Result<nn::StepResult> evaluate(const nn::Batch& batch) override;
  [[nodiscard]] core::Result<void> end(bool in_order) override { return guest_->end(in_order); }
  [[nodiscard]] std::span<const float> outputs() const noexcept override { return {}; }
  [[nodiscard]] const nn::Plan& plan() const noexcept override { return plan_; }
  [[nodiscard]] std::size_t workspace_bytes() const noexcept override { return 0; }

 private:
  void fetch() noexcept;

  const nn::Graph& graph_;
  const std::int64_t batch_;
  const bool steps_alone_;
  GuestMemory memory_;
  nn::Plan plan_;
  std::uint64_t version_ = 0;
  std::uint64_t optimizer_steps_ = 0;
  bool newer_there_ = false;           // the guest has values that the vectors do not have yet
  bool written_ = false;               // the vectors have values that the guest has not been told of
  std::optional<core::Error> failed_;  // of a call that cannot report it
  std::unique_ptr<Guest> guest_;       // ends before the vectors
};

}  // namespace troupe::guest
