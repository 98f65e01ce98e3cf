#include <algorithm>
#include <atomic>
#include <cstdio>
#include <mutex>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "apps/client/json_values.hpp"
#include "apps/client/reconnecting.hpp"
#include "apps/watch/output_lines.hpp"
#include "apps/watch/run_lines.hpp"
#include "apps/watch/watch.hpp"

namespace troupe::apps {
namespace {

class RunWatch {
 public:
  RunWatch(const WatchOptions& options, std::string run, const std::stop_token& stop)
      : options_(options),
        run_(std::move(run)),
        path_("/api/v1/runs/" + encoded_segment(run_)),
        output_(stop_),
        lines_(stdout, clock_),
        on_stop_(stop, [this] { stop_.request_stop(); }) {}

  core::Result<void> run(const std::stop_token& asked) {
    ServiceClient client(options_.address, stop_.get_token());
    asking_.emplace(options_.address, stop_.get_token());
    std::string position;
    const FollowOptions follow{.on_event = [this](const ServerEvent& event) { take(event); },
                               .on_lost =
                                   [this](const core::Error& error, auto) {
                                     if (options_.tell)
                                       options_.tell(fmt::format("troupe: {}; trying again\n", error.message));
                                   },
                               .patience = options_.patience};
    const auto path = path_ + "/events" + (options_.only_new ? "" : "?from=0");
    const std::jthread lookout([this](const std::stop_token& over) { look_out(over); });
    const auto followed = follow_events(client, path, position, follow, stop_.get_token());
    stop_.request_stop();
    if (const auto failed = output_.failure()) return tl::unexpected(*failed);
    if (!followed) return followed;
    const std::scoped_lock lock(mutex_);
    if (outcome_) return *outcome_;
    return core::fail(core::Errc::interrupted,
                      asked.stop_requested() ? "stopped watching; the run goes on" : "stopped watching");
  }

 private:
  using Time = std::chrono::steady_clock;

  void take(const ServerEvent& event) {
    heard_ = Time::now().time_since_epoch().count();
    auto line = StateJson::parse(event.data, nullptr, false);
    if (!line.is_object()) return;
    if (options_.json) output_.print(event.data);
    const bool ended = text_at(line, "kind") == "ended";
    if (!ended) {
      if (!options_.json) lines_.read(line);
    } else {
      end(line, event.id);
    }
    if (std::ferror(stdout) != 0) output_.print("");  // what the console could not write
  }

  /// What the service answers. A busy or lost one is asked again, later and later, for as long as `patience` (0: for ever).
  core::Result<StateJson> ask(const std::string& what, std::chrono::milliseconds patience) {
    constexpr std::chrono::milliseconds kFirstPause{200}, kLongestPause{10'000};
    const auto began = Time::now();
    for (auto pause = kFirstPause;; pause = std::min(2 * pause, kLongestPause)) {
      auto answer = asking_->get(path_ + what);
      const bool over = patience.count() > 0 && Time::now() - began > patience;
      if (answer || !may_pass(answer.error()) || over || stop_.stop_requested()) return answer;
      pause_for(pause, stop_.get_token());
    }
  }

  /// Whether the line that ends at `position` is the run's end. One that was resumed has ends in the middle of its file, too. A process
  /// goes on for a moment after its last line. An Error: the service does not say, for as long as the patience.
  core::Result<bool> is_last(const std::string& position) {
    constexpr std::chrono::milliseconds kBetween{200};
    constexpr int kLooks = 150;
    for (int look = 0; look < kLooks && !stop_.stop_requested(); ++look) {
      const auto state = ask("/state", options_.patience);
      if (stop_.stop_requested()) return false;
      if (!state && may_pass(state.error())) return tl::unexpected(state.error());
      if (!state) return true;  // there is no such run any more, or it is not shown any more
      if (fmt::format("{}", count_at(*state, "position")) != position) return false;
      if (text_at(*state, "status") != "running") return true;
      pause_for(kBetween, stop_.get_token());
    }
    return !stop_.stop_requested();
  }

  void end(const StateJson& line, const std::string& position) {
    constexpr std::chrono::seconds kSummaryPatience{10};  // the lines have said most of it
    deciding_ = true;
    const auto last = is_last(position);
    const auto summary = last && *last ? ask("/summary", kSummaryPatience) : core::Result<StateJson>(StateJson());
    if (!options_.json) lines_.read_end(line, summary ? *summary : StateJson());
    if (!last) return finish(tl::unexpected(last.error()));
    deciding_ = *last;
    if (!*last) return;
    auto error = error_of_end(line);
    finish(error ? core::Result<void>(tl::unexpected(std::move(*error))) : core::Result<void>());
  }

  void finish(core::Result<void> outcome) {
    {
      const std::scoped_lock lock(mutex_);
      if (!outcome_) outcome_ = std::move(outcome);
    }
    stop_.request_stop();
  }

  /// A run whose process is gone writes no end, and one that has ended before writes nothing new: after a while of silence its state is
  /// looked at, twice.
  void look_out(const std::stop_token& over) {
    constexpr std::chrono::seconds kSilence{5};
    ServiceClient client(options_.address, stop_.get_token());
    int gone = 0;
    while (!over.stop_requested() && !stop_.stop_requested()) {
      pause_for(kSilence, stop_.get_token());
      const Time::time_point heard{Time::duration(heard_.load())};
      if (stop_.stop_requested() || deciding_ || Time::now() - heard < kSilence) continue;
      const auto state = client.get(path_ + "/state");
      if (!state) continue;
      const auto status = text_at(*state, "status");
      gone = status == "running" ? 0 : gone + 1;
      if (gone < 2) continue;
      if (status == "killed")
        return finish(core::fail(core::Errc::peer_lost,
                                 fmt::format("{}: its process is gone without an end; `troupe train --resume` goes on "
                                             "with it",
                                             run_)));
      if (options_.only_new) return finish({});
    }
  }

  const WatchOptions& options_;
  std::string run_, path_;
  std::stop_source stop_;
  OutputLines output_;
  core::SteadyClock clock_;
  RunLines lines_;
  std::optional<ServiceClient> asking_;
  std::atomic<Time::rep> heard_ = 0;
  std::atomic<bool> deciding_ = false;  // whether an end is the run's last one
  std::mutex mutex_;                    // of outcome_
  std::optional<core::Result<void>> outcome_;
  std::stop_callback<std::function<void()>> on_stop_;
};

}  // namespace

core::Result<void> watch_run(const WatchOptions& options, const std::string& run, const std::stop_token& stop) {
  return RunWatch(options, run, stop).run(stop);
}

}  // namespace troupe::apps
