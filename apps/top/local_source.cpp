#include <fcntl.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include <fmt/format.h>

#include "apps/top/live_source.hpp"
#include "apps/top/values.hpp"
#include "core/file_descriptor.hpp"
#include "core/text/plural.hpp"
#include "service/live/followed_file.hpp"
#include "service/live/live_runs.hpp"
#include "service/live/metrics_line.hpp"
#include "store/run_directory.hpp"

namespace troupe::apps {
namespace {

/// "easgd, lenet on mnist, 4 workers, 2 servers", from the run's first line.
std::string about_of(const StateJson& started) {
  const auto strategy = text_at(started, "strategy"), model = text_at(started, "model"),
             dataset = text_at(started, "dataset");
  if (strategy.empty()) return {};
  auto text = fmt::format("{}, {} on {}", strategy, model, dataset);
  if (const auto servers = number_at(started, "servers"); servers && *servers > 0)
    text += ", " + core::counted(static_cast<std::uint64_t>(std::min(*servers, 1e9)), "server");
  return text;
}

class LocalSource final : public LiveSource {
 public:
  LocalSource(std::string directory, std::string run)
      : directory_(std::move(directory)), run_(std::move(run)), runs_(directory_) {}

  core::Result<LiveView> once() override {
    auto state = runs_.state(run_);
    if (!state) return tl::unexpected(std::move(state.error()));
    if (about_.empty()) about_ = about_of(first_line());
    return LiveView{.run = run_, .about = about_, .problem = {}, .state = std::move(*state)};
  }

  void follow(LatestView& latest, const std::stop_token& stop) override {
    constexpr std::chrono::milliseconds kPause{250};
    // Reading takes at most a tenth of the time; but only the first time all of a long file is read.
    constexpr int kShare = 10;
    constexpr std::chrono::milliseconds kLongest{5'000};
    std::mutex mutex;
    std::condition_variable_any pause;
    for (std::unique_lock lock(mutex); !stop.stop_requested();) {
      const auto began = std::chrono::steady_clock::now();
      if (auto view = once(); view)
        latest.put(std::move(*view));
      else
        latest.put_problem(run_, view.error().message);
      const auto took = std::chrono::ceil<std::chrono::milliseconds>(std::chrono::steady_clock::now() - began);
      pause.wait_for(lock, stop, std::clamp(kShare * took, kPause, kLongest), [] { return false; });
    }
  }

 private:
  [[nodiscard]] StateJson first_line() const {
    const auto directory = store::open_run_directory(directory_, run_);
    if (!directory) return nullptr;
    core::FileDescriptor file(
        ::openat(directory->run.get(), "metrics.jsonl", O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    if (!file) return nullptr;
    StateJson first;
    service::FollowedFile lines(std::move(file));
    static_cast<void>(lines.read([&](std::string_view line, std::uint64_t) {
      if (first.is_null()) first = service::metrics_line(line);
    }));
    return first;
  }

  std::string directory_, run_, about_;
  service::LiveRuns runs_;
};

}  // namespace

std::unique_ptr<LiveSource> local_source(const std::string& directory, const std::string& run) {
  return std::make_unique<LocalSource>(directory, run);
}

}  // namespace troupe::apps
