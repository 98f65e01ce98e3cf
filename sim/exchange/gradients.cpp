#include "sim/exchange/gradients.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "core/buffer.hpp"
#include "experiment/evaluation.hpp"
#include "experiment/state/accumulation.hpp"
#include "experiment/state/initial_model.hpp"
#include "experiment/state/local_rank.hpp"
#include "experiment/state/weighted_mean.hpp"
#include "nn/hash.hpp"
#include "nn/layout.hpp"

namespace troupe::sim {

using core::Errc;
using strategies::ModelHome;
using strategies::WorkerId;

namespace {

core::Result<void> check_precision(const experiment::Settings& settings, const nn::Backend& backend) {
  const auto wanted = settings.precision();
  const auto served = backend.capabilities().precisions;
  if (std::find(served.begin(), served.end(), wanted) != served.end()) return {};
  return core::fail(
      Errc::config,
      fmt::format("{}: cluster.precision = \"{}\": {} does not compute in it; --gradients needs \"fp32\"",
                  settings.config.where("cluster.precision"), settings.cluster.precision, backend.name()));
}

}  // namespace

core::Result<std::unique_ptr<Gradients>> Gradients::create(const experiment::RunSpec& spec, nn::Backend& backend,
                                                           int buckets) {
  const auto& settings = *spec.settings;
  if (auto checked = check_precision(settings, backend); !checked) return tl::unexpected(std::move(checked.error()));
  std::unique_ptr<Gradients> gradients(new Gradients);
  auto& g = *gradients;
  g.spec_ = spec;
  g.kernels_ = &backend.kernels_for(g.allocator_);
  const auto initial = experiment::initial_model(spec);
  if (!initial) return tl::unexpected(initial.error());
  g.start_ = experiment::start_state(spec, initial->checkpoint.get());
  for (WorkerId worker = 0; worker < spec.workers; ++worker)
    if (auto compiled = g.compile(backend, worker); !compiled) return tl::unexpected(std::move(compiled.error()));
  const nn::Layout* const layout = &g.layout();
  auto evaluator = experiment::compile_evaluation(
      backend, *spec.graph, experiment::evaluation_options(spec, settings.threads(0), g.allocator_), *spec.source.test);
  if (!evaluator) return tl::unexpected(std::move(evaluator.error()));
  g.evaluator_ = std::move(*evaluator);
  auto shards =
      experiment::cut_shards(g.start_, *layout, spec.servers, spec.needs.server_states, *g.kernels_, g.allocator_);
  if (!shards) return tl::unexpected(std::move(shards.error()));
  PhantomMemory::Options options{.floats = layout->arena_floats(),
                                 .statistics = nn::statistics_layout(*spec.graph).arena_floats(),
                                 .workers = spec.workers,
                                 .slots = spec.needs.worker_slots,
                                 .buckets = buckets,
                                 .kernels = g.kernels_,
                                 .allocator = &g.allocator_};
  for (int k = 0; k < core::state_slots(nn::optimizer_kind(settings.train)); ++k)
    options.slots.push_back(experiment::optimizer_state(k));
  g.memory_.emplace(options, std::move(*shards));
  const auto statistics = g.computing_.front().replica->statistics();
  if (g.start_.statistics) nn::statistics_layout(*spec.graph).from_canonical(*g.start_.statistics, statistics);
  g.first_statistics_.assign(statistics.begin(), statistics.end());
  g.model_.resize(layout->canonical_floats());
  return gradients;
}

core::Result<void> Gradients::compile(nn::Backend& backend, WorkerId worker) {
  const auto& settings = *spec_.settings;
  auto options = settings.compile_options(worker);
  options.local_rank = experiment::local_rank(settings, {}, worker);  // as if all were on one host
  const auto* const arenas = &backend.arenas(options);
  const auto same = std::ranges::find_if(computing_, [&](const Computing& one) {
    return one.batch == options.batch && one.backend == settings.backend(worker) && one.arenas == arenas;
  });
  computes_.push_back(static_cast<std::size_t>(same - computing_.begin()));
  if (same != computing_.end()) return {};
  const auto& train = *spec_.source.train;
  const auto bytes = experiment::byte_preparation(train);
  options.arenas = &allocator_;
  options.bytes = bytes.get();
  auto compiled = experiment::compile_worker(backend, *spec_.graph, options, settings.train.accumulate);
  if (!compiled) return tl::unexpected(std::move(compiled.error()));
  auto memory = std::make_unique<experiment::BatchMemory>(**compiled, train);
  const auto first_state = (*compiled)->state_of_steps();
  computing_.push_back(
      {options.batch, settings.backend(worker), arenas, first_state, std::move(*compiled), std::move(memory)});
  if (computing_.back().replica->layout_fingerprint() == layout().fingerprint()) return {};
  return core::fail(Errc::config,
                    fmt::format("{}: workers lay their parameters out otherwise with batch {} than with others and "
                                "cannot exchange them in place: use one batch size for all workers",
                                settings.config.where("data.batch"), options.batch));
}

core::Result<void> Gradients::begin(WorkerId worker) {
  if (auto begun = memory_->begin(worker); !begun) return begun;
  std::copy(first_statistics_.begin(), first_statistics_.end(), memory_->view(worker, strategies::kStatistics).begin());
  states_[worker] = computing_[computes_.at(worker)].first_state;  // as a new replica has it
  const auto& layout = this->layout();
  layout.from_canonical(*start_.parameters, memory_->view(worker, strategies::kParams));
  if (start_.average) layout.from_canonical(*start_.average, memory_->view(worker, start_.average_slot));
  return {};
}

void Gradients::fetch_center(WorkerId worker) {
  const auto params = memory_->view(worker, strategies::kParams);
  for (strategies::ShardId shard = 0; shard < memory_->shards(); ++shard) {
    const auto center = memory_->shard(shard).view(strategies::kCenter);
    const auto slice = core::slice_of(params.size(), shard, memory_->shards());
    std::copy(center.begin(), center.end(), params.begin() + static_cast<std::ptrdiff_t>(slice.offset));
  }
}

core::Result<void> Gradients::step(WorkerId worker, strategies::Step step, const data::Lease& lease) {
  const auto& computing = computing_[computes_.at(worker)];
  auto& replica = *computing.replica;
  const auto batch = computing.memory->build(lease);
  if (!batch) return tl::unexpected(batch.error());
  const auto params = memory_->view(worker, strategies::kParams), grads = memory_->view(worker, strategies::kGrads);
  const auto statistics = memory_->view(worker, strategies::kStatistics);
  std::copy(params.begin(), params.end(), replica.parameters().begin());
  std::copy(statistics.begin(), statistics.end(), replica.statistics().begin());
  replica.parameters_written();
  replica.set_state_of_steps(states_.at(worker));
  const auto guarded = experiment::guarded_step(replica, *kernels_, core::kLargestUsable, *batch, {});
  if (!guarded) return tl::unexpected(guarded.error());
  states_[worker] = replica.state_of_steps();
  const auto* const result = &guarded->result;
  auto& losses = losses_[worker];
  if (losses.diverged(step, result->loss))
    return core::fail(Errc::diverged, losses.text(worker) + experiment::against_divergence(spec_.settings->train.lr));
  auto& bad = bad_gradients_.try_emplace(worker, spec_.settings->train.max_bad_updates).first->second;
  guarded->refused ? bad.bad() : bad.good();
  if (bad.too_many())
    return core::fail(Errc::diverged, experiment::bad_gradient(worker, step, bad) + ": diverged" +
                                          experiment::against_divergence(spec_.settings->train.lr));
  std::copy(replica.gradients().begin(), replica.gradients().end(), grads.begin());
  std::copy(replica.statistics().begin(), replica.statistics().end(), statistics.begin());
  if (std::exchange(epoch_, lease.epoch) != lease.epoch) close_epoch();  // it had no evaluation
  loss_ += result->loss * static_cast<double>(result->samples);
  correct_ += result->top1;
  samples_ += result->samples;
  return {};
}

core::Result<void> Gradients::take_model(std::span<const WorkerId> workers, std::span<const double> weights,
                                         std::span<const UnreadMessage> peer_messages) {
  const auto& layout = this->layout();
  const auto& needs = spec_.needs;
  std::vector<float> arena(layout.arena_floats());
  if (needs.model == ModelHome::center) {
    for (strategies::ShardId shard = 0; shard < memory_->shards(); ++shard) {
      const auto part = memory_->shard(shard).view(needs.model_slot);
      const auto slice = core::slice_of(arena.size(), shard, memory_->shards());
      std::copy(part.begin(), part.end(), arena.begin() + static_cast<std::ptrdiff_t>(slice.offset));
    }
  } else if (needs.model == ModelHome::any_worker) {
    const auto params = memory_->view(workers[0], needs.model_vector());
    std::copy(params.begin(), params.end(), arena.begin());
  } else {
    experiment::WeightedMean mean;
    auto unread = peer_messages.begin();
    for (std::size_t i = 0; i < workers.size(); ++i) {
      mean.add(memory_->view(workers[i], needs.model_vector()), weights[i]);
      for (; !needs.averages() && unread != peer_messages.end() && unread->reader == workers[i]; ++unread)
        mean.add(memory_->view(unread->reader, unread->slot), unread->weight);
    }
    mean.take(arena);
  }
  layout.to_canonical(arena, model_);
  std::vector<core::ConstSpan> statistics;
  for (const auto worker : workers) statistics.push_back(memory_->view(worker, strategies::kStatistics));
  if (workers.empty()) statistics.push_back(first_statistics_);
  statistics_ = experiment::mean_statistics(nn::statistics_layout(*spec_.graph), statistics);
  if (core::host_kernels().all_finite(model_)) return {};
  return core::fail(Errc::diverged, "diverged: the model's parameters are not finite any more" +
                                        experiment::against_divergence(spec_.settings->train.lr));
}

core::Result<void> Gradients::evaluate(std::span<const WorkerId> workers, std::span<const double> weights,
                                       std::span<const UnreadMessage> peer_messages, bool closes_epoch, EpochPoint at) {
  if (auto taken = take_model(workers, weights, peer_messages); !taken) return taken;
  auto score = experiment::evaluate(*evaluator_, *spec_.source.test, model_, statistics_);
  if (!score) return tl::unexpected(std::move(score.error()));
  score_ = deciding_ = *score;
  if (spec_.source.validation) {
    auto validated = experiment::evaluate(*evaluator_, *spec_.source.validation, model_, statistics_);
    if (!validated) return tl::unexpected(std::move(validated.error()));
    deciding_ = *validated;
  }
  if (!closes_epoch) return {};
  at.train_loss = train_loss();
  at.train_accuracy = samples_ > 0 ? static_cast<double>(correct_) / static_cast<double>(samples_) : 0;
  at.test = score_;
  epochs_.push_back(at);
  close_epoch();
  return {};
}

void Gradients::close_epoch() {
  last_loss_ = train_loss();
  loss_ = 0;
  correct_ = samples_ = 0;
}

double Gradients::train_loss() const noexcept {
  return samples_ > 0 ? loss_ / static_cast<double>(samples_) : last_loss_;
}

std::string Gradients::model_hash() const { return nn::center_hash(model_); }

}  // namespace troupe::sim
