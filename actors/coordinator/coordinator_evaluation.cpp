// Evaluations of the model, while training is paused or beside it, and what is kept and reported of them.
#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "actors/coordinator/coordinator_body.hpp"
#include "actors/requests/deadlines.hpp"
#include "core/text/plural.hpp"
#include "nn/optimizer.hpp"

namespace troupe::actors {

namespace {

constexpr core::Duration kEvaluatorSilence = kCompileDeadline;  // it compiles its replica at the first request

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

double share_of(std::int64_t hits, const SplitScore& split) {
  return static_cast<double>(hits) / static_cast<double>(std::max<std::int64_t>(split.samples, 1));
}

double accuracy_of(const SplitScore& split) { return split.top1 < 0 ? kUnknown : share_of(split.top1, split); }

/// A program may have no evaluation, or none of the accuracy: such a score is no number, which no target and no best one compares with.
coordination::Score score_of(const SplitScore& split) {
  return split.samples > 0 ? coordination::Score{split.loss, accuracy_of(split)}
                           : coordination::Score{kUnknown, kUnknown};
}

/// A program says nothing while it starts and evaluates.
core::Duration evaluator_silence(const CoordinatorSetup& setup) {
  if (!setup.graph->is_program()) return kEvaluatorSilence;
  const auto& model = setup.settings->model;
  return kEvaluatorSilence +
         std::chrono::duration_cast<core::Duration>(std::chrono::duration<double>(model.start_s + model.silence_s));
}

}  // namespace

/// The model was copied, and no lease is out: an epoch that has ended is closed before the next one begins.
CoordinatorBody::Evaluation CoordinatorBody::begin_evaluation() {
  const double train_s = machine_.trained_s();
  const bool epoch_done = setup_.leases->epoch_done();
  Evaluation evaluation{.model = model_,
                        .report = {.validation = has_validation(),
                                   .epoch = setup_.leases->epoch_position(),
                                   .steps = progress_.steps(),
                                   .lr_factor = setup_.leases->lr_factor(),
                                   .lr = learning_rate(setup_.leases->lr_factor()),
                                   .train_s = train_s,
                                   .samples = progress_.samples()},
                        .reported = machine_.watch().has_seen(setup_.leases->done_count()),
                        .epoch = {},
                        .open = progress_.epoch(),
                        .last = !epoch_done && machine_.stops() && !progress_.epoch_closed(),
                        .best = has_validation() ? begin_checkpoint() : nullptr};
  // At an epoch's end without a validation split the epoch's report has it all.
  if (epoch_done && !has_validation()) evaluation.reported = true;
  // An epoch that was reported, also by an earlier session, is not reported again.
  if (!epoch_done || progress_.epoch_closed()) return evaluation;
  const auto means = progress_.close_epoch(train_s);
  evaluation.epoch = EpochReport{.epoch = setup_.leases->epoch() + 1,
                                 .epochs = setup_.started.epochs,
                                 .steps = progress_.steps(),
                                 .train_loss = means.loss,
                                 .train_accuracy = setup_.graph->is_program() ? kUnknown : means.accuracy};
  evaluation.epoch->images_per_s = means.images_per_s;
  evaluation.epoch->lr = learning_rate(setup_.leases->lr_factor());
  evaluation.epoch->train_s = train_s;
  evaluation.epoch->samples = progress_.samples();
  return evaluation;
}

/// No step of the epoch before is under way. If it was not evaluated, nothing has closed it.
void CoordinatorBody::enter_epoch(std::uint32_t epoch) {
  if (std::exchange(epoch_, epoch) == epoch || progress_.epoch_closed()) return;
  static_cast<void>(progress_.close_epoch(machine_.trained_s()));
}

/// A program that is silent or was killed may be a victim of the machine, as a lost host is.
void CoordinatorBody::evaluator_failed(const Evaluated& evaluated) {
  if (evaluated.code != core::Errc::io || !setup_.graph->is_program()) return fail(evaluated.code, evaluated.error);
  fail(core::Errc::peer_lost, fmt::format("{}: {}", evaluated.error, machine_.advice()));
}

void CoordinatorBody::ask_evaluator(const std::function<void(const coordination::Score&)>& next) {
  const bool test = !has_validation() || setup_.leases->epoch_done() || machine_.stops();
  evaluation_ = begin_evaluation();
  evaluates_ = true;
  ask<Evaluated>(
      kEvaluator, evaluator_silence(setup_), actors_.evaluator,
      [this, next](const Evaluated& evaluated) {
        evaluates_ = false;
        if (machine_.ended()) return;
        if (!evaluated.error.empty()) return evaluator_failed(evaluated);
        report(*evaluation_, evaluated);
        next(score_of(has_validation() ? evaluated.validation : evaluated.test));
        send_report();
      },
      [this](const caf::error& error) { fail(core::Errc::timeout, "evaluation: " + self_->system().render(error)); },
      EvaluateOrder{++snapshots_, has_validation(), test}, BorrowedView{core::Span{*model_}, model_},
      BorrowedView{core::Span{*statistics_}, statistics_});
}

void CoordinatorBody::evaluate(std::uint64_t number) {
  ask_evaluator([this, number](const coordination::Score& score) {
    machine_.answered({.number = number, .score = score, .newest = {}});
  });
}

void CoordinatorBody::evaluate_beside() {
  ask_evaluator([this](const coordination::Score& score) {
    machine_.scored(score);
    if (after_evaluation_ && !machine_.ended()) std::exchange(after_evaluation_, nullptr)();
  });
}

void CoordinatorBody::await_evaluation(const Next& next) {
  if (!evaluates_) return next();
  after_evaluation_ = next;
}

/// Once for each split: scores with samples that stand for others are not quite the split's.
void CoordinatorBody::warn_of_replaced(const Evaluated& evaluated) {
  const auto warn_once = [this](std::string_view split, const SplitScore& score, bool& warned) {
    if (score.replaced == 0 || std::exchange(warned, true)) return;
    warn(fmt::format("{} of the {} split could not be read: others stand in their place (data.max_bad)",
                     core::counted(static_cast<std::uint64_t>(score.replaced), "sample"), split));
  };
  warn_once("validation", evaluated.validation, warned_of_validation_);
  warn_once("test", evaluated.test, warned_of_test_);
}

void CoordinatorBody::report(const Evaluation& evaluation, const Evaluated& evaluated) {
  warn_of_replaced(evaluated);
  auto& summary = result_.summary;
  if (const auto& test = evaluated.test; test.samples > 0) {
    summary.test_loss = test.loss;
    summary.test_accuracy = accuracy_of(test);
    summary.test_top5 = test.top5 < 0 ? -1 : share_of(test.top5, test);
  }
  if (const auto& validation = evaluated.validation; validation.samples > 0) {
    summary.validation.loss = validation.loss;
    summary.validation.accuracy = accuracy_of(validation);
    summary.validation.top5 = validation.top5 < 0 ? -1 : share_of(validation.top5, validation);
  }
  if (auto epoch = evaluation.epoch) {
    epoch->test_loss = summary.test_loss;
    epoch->test_accuracy = summary.test_accuracy;
    epoch->test_top5 = summary.test_top5;
    self_->send(actors_.recorder, *epoch);
  }
  if (evaluation.last)
    note(Note::Level::info, fmt::format("test loss {:.4f}{} after {:.2f} epochs", summary.test_loss,
                                        std::isnan(summary.test_accuracy)
                                            ? std::string()
                                            : fmt::format(", accuracy {:.2f} %", 100 * summary.test_accuracy),
                                        evaluation.report.epoch));
  if (evaluation.reported) return;
  const auto& split = has_validation() ? evaluated.validation : evaluated.test;
  auto line = evaluation.report;
  line.loss = score_of(split).loss;
  line.accuracy = score_of(split).accuracy;
  line.top5 = split.top5 < 0 ? -1 : share_of(split.top5, split);
  report_ = line;
}

/// When it is known what the score leads to, and before that is said: the factor is that of the leases that follow.
void CoordinatorBody::send_report() {
  if (!report_) return;
  report_->lr_factor = setup_.leases->lr_factor();
  self_->send(actors_.recorder, *std::exchange(report_, std::nullopt));
}

double CoordinatorBody::learning_rate(double factor) const {
  return nn::learning_rate(setup_.settings->train, setup_.leases->epoch_position(), setup_.started.epochs,
                           static_cast<int>(setup_.started.workers)) *
         factor;
}

void CoordinatorBody::stops_early(coordination::EarlyStop why) {
  send_report();
  const auto& run = setup_.settings->run;
  result_.summary.stopped_by = name(why);
  const auto where = fmt::format("the run ends after {:.2f} of {} epochs", setup_.leases->epoch_position(), run.epochs);
  if (why == coordination::EarlyStop::max_seconds)
    note(Note::Level::info, fmt::format("run.max_seconds = {:g}: {:.1f} s of training are over: {}", run.max_seconds,
                                        machine_.trained_s(), where));
  if (why == coordination::EarlyStop::max_epochs)
    note(Note::Level::info, fmt::format("run.max_epochs = {}: {}; `--resume` with a greater run.max_epochs goes on",
                                        run.max_epochs, where));
  const auto& summary = result_.summary;
  if (why == coordination::EarlyStop::target_accuracy)
    note(Note::Level::info, fmt::format("run.target_accuracy = {:g}: the model has {:.4f}: {}", run.target_accuracy,
                                        has_validation() ? summary.validation.accuracy : summary.test_accuracy, where));
  if (why == coordination::EarlyStop::target_loss)
    note(Note::Level::info, fmt::format("run.target_loss = {:g}: the validation loss is {:.4f}: {}", run.target_loss,
                                        summary.validation.loss, where));
  if (why == coordination::EarlyStop::patience)
    note(Note::Level::info, fmt::format("run.patience = {}: the validation {} has not improved since epoch {:.2f}: {}",
                                        run.patience, run.monitor, machine_.watch().state().best_at.epoch, where));
}

void CoordinatorBody::judged(const coordination::EvaluationWatch::Verdict& verdict) {
  send_report();
  if (verdict.improved && has_validation()) keep_best();
  if (verdict.falls)
    note(Note::Level::info,
         fmt::format(
             "train.lr_policy = \"plateau\": the validation {} has not improved for {}: the learning rate falls to "
             "{:.3g}{}",
             setup_.settings->run.monitor,
             core::counted(static_cast<std::uint64_t>(setup_.settings->train.lr_patience), "evaluation"),
             learning_rate(machine_.watch().state().lr_factor),
             setup_.settings->run.evaluation == "beside" ? " when the next evaluation begins" : ""));
}

/// The evaluated copy, without the members' states. It is written while training goes on.
void CoordinatorBody::keep_best() {
  const auto best = evaluation_->best;
  best->vectors.emplace("", evaluation_->model);
  ask<CheckpointWritten>(
      kDisk, kRecorderSilence, actors_.recorder,
      [this](const CheckpointWritten& written) {
        if (!written.error.empty() && !machine_.ended()) warn("best.safetensors is not written: " + written.error);
      },
      [this](const caf::error& error) {
        fail(core::Errc::timeout, "best.safetensors: " + self_->system().render(error));
      },
      CheckpointOrder{best->step, true}, CheckpointPayload{best});
}

}  // namespace troupe::actors
