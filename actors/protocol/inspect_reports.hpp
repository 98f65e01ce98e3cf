/// The serial form of what the recorder gets and of a run's result (experiment/reports.hpp), as inspect.hpp has that of the other messages.
#pragma once

#include "actors/protocol/message_types.hpp"

namespace troupe::experiment {

template <class Inspector>
constexpr typename Inspector::result_type inspect(Inspector& f, RunStarted& x) {
  return f(caf::meta::type_name("RunStarted"), x.name, x.directory, x.strategy, x.model, x.dataset, x.workers,
           x.servers, x.epochs, x.parameters, x.epoch_samples, x.epoch_position, x.lr_factor, x.steps, x.samples,
           x.train_s, x.batch, x.accumulate, x.slowdown);
}

template <class Inspector>
constexpr typename Inspector::result_type inspect(Inspector& f, Traffic& x) {
  return f(caf::meta::type_name("Traffic"), x.purpose, x.member, x.bytes);
}

template <class Inspector>
constexpr typename Inspector::result_type inspect(Inspector& f, WorkerProgress& x) {
  return f(caf::meta::type_name("WorkerProgress"), x.worker, x.steps, x.samples, x.loss, x.loss_sum, x.top1,
           x.recent_samples, x.compute_s, x.forward_s, x.backward_s, x.optimizer_s, x.exchange_s, x.wait_s, x.load_s,
           x.exchanges, x.dropped, x.skipped, x.refused, x.passed, x.replaced, x.bytes, x.staleness_sum,
           x.staleness_count, x.staleness_max, x.norm_sum, x.norm_max, x.recent_norm_sum, x.recent_steps, x.staleness,
           x.waits, x.done, x.loss_scale, x.traffic, x.given_up, x.distance);
}

template <class Inspector>
constexpr typename Inspector::result_type inspect(Inspector& f, MemberReport& x) {
  return f(caf::meta::type_name("MemberReport"), x.worker, x.event, x.node, x.reason, x.steps, x.epoch, x.train_s,
           x.members);
}

template <class Inspector>
constexpr typename Inspector::result_type inspect(Inspector& f, LedgerReport& x) {
  return f(caf::meta::type_name("LedgerReport"), x.epoch, x.size, x.done, x.given_up, x.leased, x.free, x.omitted,
           x.useful, x.computed, x.lost, x.returned, x.passed, x.rolled_back, x.possible, x.wall_s);
}

template <class Inspector>
constexpr typename Inspector::result_type inspect(Inspector& f, EpochReport& x) {
  return f(caf::meta::type_name("EpochReport"), x.epoch, x.epochs, x.steps, x.train_loss, x.train_accuracy, x.test_loss,
           x.test_accuracy, x.test_top5, x.images_per_s, x.lr, x.train_s, x.samples);
}

template <class Inspector>
constexpr typename Inspector::result_type inspect(Inspector& f, EvaluationReport& x) {
  return f(caf::meta::type_name("EvaluationReport"), x.validation, x.epoch, x.steps, x.loss, x.accuracy, x.top5,
           x.lr_factor, x.lr, x.train_s, x.samples);
}

template <class Inspector>
constexpr typename Inspector::result_type inspect(Inspector& f, ValidationSummary& x) {
  return f(caf::meta::type_name("ValidationSummary"), x.has, x.loss, x.accuracy, x.top5, x.best_loss, x.best_accuracy,
           x.best_epoch, x.best_train_s, x.evaluations);
}

template <class Inspector>
constexpr typename Inspector::result_type inspect(Inspector& f, Note& x) {
  return f(caf::meta::type_name("Note"), x.level, x.text, x.of_program);
}

template <class Inspector>
constexpr typename Inspector::result_type inspect(Inspector& f, Summary& x) {
  return f(caf::meta::type_name("Summary"), x.run, x.strategy, x.model, x.dataset, x.device, x.precision, x.workers,
           x.servers, x.epochs, x.steps, x.samples, x.wall_s, x.train_loss, x.images_per_s, x.test_loss,
           x.test_accuracy, x.test_top5, x.exchange_count, x.exchange_bytes, x.exchange_dropped, x.exchange_skipped,
           x.refused, x.staleness_mean, x.staleness_max, x.center_hash, x.per_worker, x.stopped_by, x.validation,
           x.time_to_target_s, x.ledger);
}

template <class Inspector>
constexpr typename Inspector::result_type inspect(Inspector& f, RunEnd& x) {
  return f(caf::meta::type_name("RunEnd"), x.summary, x.failed, x.error);
}

}  // namespace troupe::experiment
