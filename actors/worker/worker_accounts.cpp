// What a worker counts and reports: progress and unusable gradients.
#include <fmt/format.h>

#include "actors/worker/worker_body.hpp"

namespace troupe::actors {

namespace {

/// A worker reports when it must wait for a batch, and before a step if the last report is older than this.
constexpr core::Duration kReportEvery = std::chrono::milliseconds(100);

/// Steps between two looks at the parameters: one pass over them, a small part of a step.
constexpr strategies::Step kParametersEvery = 64;

}  // namespace

bool WorkerBody::report_is_due() const { return now() - reported_at_ >= kReportEvery; }

void WorkerBody::report() {
  const auto& totals = host_->totals();
  progress_.worker = setup_.self;
  progress_.loss = progress_.recent_samples ? progress_.loss_sum / static_cast<double>(progress_.recent_samples) : 0;
  progress_.compute_s = core::seconds(compute_time_ + totals.local);
  progress_.optimizer_s = core::seconds(totals.local);
  experiment::take(progress_, totals);
  progress_.refused += bad_gradients_;
  progress_.load_s = core::seconds(load_time_);
  progress_.waits.assign(actors_.workers.size() + actors_.servers.size(), 0);
  for (const auto& [cause, time] : totals.waits.by_cause()) {
    const auto column = cause.kind == strategies::Cause::Kind::worker ? cause.id : actors_.workers.size() + cause.id;
    progress_.waits.at(column) = core::seconds(time);
  }
  self_->send(actors_.coordinator, progress_);
  if (!journal_.empty()) self_->send(actors_.recorder, journal_.take());
  output_->tell_left_out_if_quiet();
  progress_.done.clear();
  progress_.given_up.clear();
  progress_.distance = experiment::kUnknown;
  progress_.loss_sum = 0;
  progress_.top1 = 0;
  progress_.recent_samples = 0;
  progress_.recent_norm_sum = 0;
  progress_.recent_steps = 0;
  reported_at_ = now();
}

/// Looks at the parameters now and then, and counts an unusable gradient. False: training diverged. Max pooling and ReLU take a NaN for a
/// small number, so that the loss can stay finite on parameters that are not.
bool WorkerBody::look_at(const experiment::GuardedStep& step) {
  if (host_->steps() % kParametersEvery == 0 && !memory_->kernels().all_finite(memory_->view(strategies::kParams)))
    return run_error(core::Errc::diverged,
                     fmt::format("worker {}: diverged: its parameters are not finite since step {} or earlier{}",
                                 setup_.self, host_->steps(), against_divergence())),
           false;
  if (!step.refused) return bad_.good(), true;
  bad_.bad();
  ++bad_gradients_;
  const auto text = experiment::bad_gradient(setup_.self, host_->steps(), bad_);
  if (bad_.too_many()) return run_error(core::Errc::diverged, text + ": diverged" + against_divergence()), false;
  if (bad_.worth_a_warning()) self_->send(actors_.recorder, Note{Note::Level::warning, text});
  return true;
}

}  // namespace troupe::actors
