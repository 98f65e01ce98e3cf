/// One run as a simulation sees it: the strategy and the settings that matter in virtual time. A value.
#pragma once

#include <memory>

#include "data/order/lease.hpp"
#include "nn/optimizer.hpp"
#include "sim/cluster/cluster.hpp"
#include "strategies/coordination/checkpoint_schedule.hpp"
#include "strategies/coordination/evaluation_watch.hpp"
#include "strategies/strategy.hpp"

namespace troupe::sim {

struct SimulatedRun {
  std::shared_ptr<const strategies::Strategy> strategy;
  strategies::Needs needs;
  std::uint32_t workers = 1;
  std::uint32_t servers = 0;  ///< 0 when the strategy needs none
  std::uint64_t seed = 1;
  data::LeaseOptions leases;
  nn::TrainConfig train;
  std::uint64_t floats = 0;      ///< parameters of the model
  std::uint32_t tensors = 1;     ///< tensors of the model
  std::uint32_t wire_bytes = 4;  ///< per float that the wire may round: 2 for fp16 and bf16
  /// Bytes per float to the server and back (core::Rounding).
  [[nodiscard]] std::uint32_t bytes_there(strategies::Rounding rounding) const noexcept {
    return rounding == strategies::Rounding::both ? wire_bytes : 4;
  }
  [[nodiscard]] std::uint32_t bytes_back(strategies::Rounding rounding) const noexcept {
    return rounding == strategies::Rounding::none ? 4 : wire_bytes;
  }
  Algorithm algorithm = Algorithm::automatic;
  std::int64_t prefetch = 4;         ///< leases that a loader holds beside the one in computation
  std::vector<double> slowdown{1};   ///< as cluster.slowdown: one for all, or one per worker
  core::Duration synthetic_step{0};  ///< minimum time of a step, before slowdown
  double max_seconds = 0;            ///< limit of training; 0: none
  std::uint32_t max_epochs = 0;      ///< as run.max_epochs
  coordination::CheckpointPeriod evaluations{.epochs = 1};
  bool evaluates_beside = false;       ///< training goes on meanwhile
  coordination::WatchOptions watch{};  ///< with gradients: targets, patience and plateaus

  [[nodiscard]] double slowdown_of(std::uint32_t worker) const {
    return slowdown.size() == 1 ? slowdown.front() : slowdown.at(worker);
  }
};

}  // namespace troupe::sim
