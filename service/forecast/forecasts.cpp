#include "service/forecast/forecasts.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>

#include <fmt/format.h>

#include "store/run_directory.hpp"

namespace troupe::service {
namespace {

/// Bytes of the run's metrics.jsonl; 0: it has none.
std::uint64_t written_by(const std::string& directory, const std::string& run) {
  const auto opened = store::open_run_directory(directory, run);
  struct stat status {};
  if (!opened || ::fstatat(opened->run.get(), "metrics.jsonl", &status, AT_SYMLINK_NOFOLLOW) != 0) return 0;
  return static_cast<std::uint64_t>(status.st_size);
}

/// What goes wrong with one run must not end the service.
core::Result<nlohmann::ordered_json> computed(const std::string& directory, const ForecastQuestion& question,
                                              const ForecastLimits& limits, const std::stop_token& stop) try {
  return forecast_run(directory, question, limits, stop);
} catch (const std::exception& error) {
  return core::fail(core::Errc::internal, fmt::format("forecast of {}: {}", question.run, error.what()));
}

}  // namespace

Forecasts::Forecasts(std::string directory, const ForecastLimits& limits)
    : directory_(std::move(directory)), limits_(limits) {}

Forecasts::~Forecasts() { stop(); }

void Forecasts::stop() {
  if (thread_.joinable()) {
    thread_.request_stop();
    thread_.join();
  }
}

core::Result<Forecasts::Found> Forecasts::ask(const ForecastQuestion& question) {
  const std::scoped_lock lock(mutex_);
  const auto found = kept_.find(question);
  const bool fresh = found != kept_.end() && found->second.result && Clock::now() - found->second.computed < kFresh;
  const bool waits = found != kept_.end() && found->second.waits;
  if (!fresh && !waits) {
    if (waiting_.size() >= kMostWaiting)
      return core::fail(core::Errc::timeout, fmt::format("{} forecasts wait already: ask again later", kMostWaiting));
    if (found == kept_.end()) forget_oldest();
    kept_[question].waits = true;
    waiting_.push_back(question);
    if (!thread_.joinable()) thread_ = std::jthread([this](const std::stop_token& stop) { compute(stop); });
    work_.notify_one();
  }
  auto& kept = kept_[question];
  kept.asked = Clock::now();
  return Found{kept.result, kept.waits};
}

void Forecasts::forget_oldest() {
  if (kept_.size() < kMostKept) return;
  const auto older = [](const auto& a, const auto& b) {
    return std::pair(a.second.waits, a.second.asked) < std::pair(b.second.waits, b.second.asked);
  };
  kept_.erase(std::ranges::min_element(kept_, older));
}

void Forecasts::compute(const std::stop_token& stop) {
  for (std::unique_lock lock(mutex_); work_.wait(lock, stop, [this] { return !waiting_.empty(); });) {
    const auto question = std::move(waiting_.front());
    waiting_.pop_front();
    const auto found = kept_.find(question);
    if (found == kept_.end()) continue;
    const auto before = found->second.result;
    lock.unlock();
    // A run that has written nothing since is where it was.
    const bool same = before && *before && written_by(directory_, question.run) == (**before)["position"];
    auto result = same ? before
                       : std::make_shared<const core::Result<nlohmann::ordered_json>>(
                             computed(directory_, question, limits_, stop));
    lock.lock();
    if (const auto again = kept_.find(question); again != kept_.end()) {
      again->second.result = std::move(result);
      again->second.computed = Clock::now();
      again->second.waits = false;
    }
  }
}

}  // namespace troupe::service
