// A worker's deadlines for other members, and the errors when they pass.
#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "actors/worker/worker_body.hpp"
#include "core/text/plural.hpp"

namespace troupe::actors {

namespace {

/// A worker that waits for others reports at a tick when its last report is this old. So none is later than this and a tick, 1.5 s: after
/// SilenceWatch::kLeast_s the coordinator takes a worker for one that is stopped or cut off (experiment/accounts/silence_watch.hpp).
constexpr core::Duration kReportInWaits = std::chrono::milliseconds(500);

}  // namespace

SilenceDeadlines::Wait WorkerBody::await(std::vector<std::uint32_t> sites,
                                         std::optional<strategies::ExchangeId> exchange) {
  return silences_.begin(std::move(sites), setup_.exchange_deadline, [this, exchange] {
    if (failed_) return;
    const auto what = exchange ? fmt::format("a server has not answered exchange {}", *exchange)
                               : std::string("a reduction with other sites has not ended");
    run_error(core::Errc::timeout,
              fmt::format("worker {}: {}, and nothing has moved there for exchange.deadline_s = {:g}", setup_.self,
                          what, core::seconds(setup_.exchange_deadline)));
  });
}

void WorkerBody::transfer_seen(const TransferNews& news) {
  silences_.moved(news.sites);
  moved_at_ = now();
}

void WorkerBody::tick() {
  if (failed_) return;
  timer_.send(std::chrono::seconds(1), Tick{});
  answer_peer_messages(true);
  silences_.check(now());
  leave_crowded_cpus();
  const bool waits = host_ && !host_->computing() && !host_->stopped();
  if (waits && now() - reported_at_ >= kReportInWaits) report();
  const auto late = now() - setup_.exchange_deadline;
  // A missing member may be busy with an exchange over sites, as the leader of its group.
  const auto oldest = rendezvous_.oldest();
  if (oldest && std::max(*oldest, moved_at_) < late && !failed_) {
    run_error(
        core::Errc::timeout,
        fmt::format("worker {}: worker {} has not joined a reduction within exchange.deadline_s = {:g}", setup_.self,
                    fmt::join(rendezvous_.missing(), ", "), core::seconds(setup_.exchange_deadline)));
  }
}

/// Pinning must not make a run slower: where other programs use the same cpus, the kernel finds better ones.
void WorkerBody::leave_crowded_cpus() {
  if (!binding_ || !binding_->release_if_crowded(now())) return;
  self_->send(actors_.recorder,
              Note{Note::Level::info,
                   fmt::format("worker {} is no longer pinned: other threads compete for {} {}", setup_.self,
                               core::noun(binding_->cpus().size(), "cpu"), core::to_text(binding_->cpus()))});
  binding_.reset();
}

/// A device that fails costs a run over several sites its worker, as a process that ends does; at site 0 it ends the run.
void WorkerBody::step_failed(const core::Error& error) {
  if (error.code != core::Errc::io || actors_.site == 0) return run_error(code_of_end(error.code), error.message);
  failed_ = true;
  report();
  tell_failure(error.message);
  self_->quit(caf::make_error(caf::sec::runtime_error, error.message));
}

bool WorkerBody::has_program() const { return memory_ && memory_->replica().graph().is_program(); }

std::string WorkerBody::against_divergence() const {
  return experiment::against_divergence(setup_.train.lr, has_program());
}

core::Errc WorkerBody::code_of_end(core::Errc code) const {
  return has_program() && code == core::Errc::io ? core::Errc::peer_lost : code;
}

/// A peer may notice first that its endpoint is closed, which does not say why.
void WorkerBody::tell_failure(const std::string& why) {
  if (has_program() && actors_.recorder) self_->send(actors_.recorder, Note{Note::Level::warning, why});
}

void WorkerBody::run_error(core::Errc code, const std::string& text) {
  failed_ = true;
  if (host_) report();  // without a host the worker never began
  self_->send(actors_.coordinator, RunError{code, text, actors_.site});
}

}  // namespace troupe::actors
