#include <algorithm>
#include <chrono>
#include <utility>

#include <fmt/format.h>

#include "apps/client/reconnecting.hpp"
#include "apps/top/live_source.hpp"
#include "apps/top/values.hpp"

namespace troupe::apps {
namespace {

using Time = std::chrono::steady_clock;
using std::chrono::milliseconds;

core::Result<std::string> newest_running(ServiceClient& client, const ServiceAddress& address) {
  const auto rows = client.get("/api/v1/runs?filter=status%3Drunning&sort=started&limit=1");
  if (!rows) return tl::unexpected(rows.error());
  const auto& runs = list_at(*rows, "runs");
  auto run = runs.empty() ? std::string() : text_at(runs[0], "run");
  if (run.empty())
    return core::fail(core::Errc::config,
                      fmt::format("no run is running on {}: name one behind the address", fetch::to_text(address.url)));
  return run;
}

std::string about_of_row(const StateJson& row) {
  const auto strategy = text_at(row, "strategy");
  return strategy.empty() ? std::string()
                          : fmt::format("{}, {} on {}", strategy, text_at(row, "model"), text_at(row, "dataset"));
}

class ServiceSource final : public LiveSource {
 public:
  ServiceSource(ServiceAddress address, std::string run) : address_(std::move(address)), run_(std::move(run)) {}

  core::Result<LiveView> once() override {
    ServiceClient client(address_, stop_.get_token());
    return view(client);
  }

  /// One connection says that something has happened, another one asks for the state: the service adds up what is in the lines.
  void follow(LatestView& latest, const std::stop_token& stop) override {
    const std::stop_callback on_stop(stop, [this] { stop_.request_stop(); });
    std::jthread watcher;
    ServiceClient client(address_, stop_.get_token());
    while (!stop.stop_requested()) {
      const auto began = Time::now();
      if (auto now = view(client); now) {
        latest.put(std::move(*now));
        if (!watcher.joinable()) watcher = std::jthread([this, &latest] { watch(latest); });
      } else if (stop.stop_requested()) {
        break;
      } else if (!may_pass(now.error())) {
        return latest.fail(std::move(now.error()));
      } else {
        latest.put_problem(run_, now.error().message + "; trying again");
      }
      wait_for_news(began);
    }
    stop_.request_stop();
  }

 private:
  core::Result<LiveView> view(ServiceClient& client) {
    if (run_.empty()) {
      auto found = newest_running(client, address_);
      if (!found) return tl::unexpected(std::move(found.error()));
      run_ = std::move(*found);
    }
    const auto path = "/api/v1/runs/" + encoded_segment(run_);
    auto state = client.get(path + "/state");
    if (!state) return tl::unexpected(std::move(state.error()));
    if (about_.empty())
      if (const auto rows = client.get("/api/v1/runs?limit=1&filter=" + encoded_segment("run=\"" + run_ + "\"")))
        if (const auto& runs = list_at(*rows, "runs"); !runs.empty()) about_ = about_of_row(runs[0]);
    return LiveView{.run = run_, .about = about_, .problem = {}, .state = std::move(*state)};
  }

  void watch(LatestView& latest) {
    ServiceClient client(address_, stop_.get_token());
    std::string last_id;
    const auto tell = [this] {
      {
        const std::scoped_lock lock(mutex_);
        news_ = true;
      }
      changed_.notify_one();
    };
    const FollowOptions options{
        .on_event = [&](const ServerEvent&) { tell(); },
        .on_lost = [&](const core::Error& error, milliseconds) { latest.put_problem(run_, error.message); }};
    static_cast<void>(follow_events(client, "/api/v1/runs/" + encoded_segment(run_) + "/events", last_id, options,
                                    stop_.get_token()));
  }

  /// An answer may be large: asking takes a tenth of the time at most, but one that did not come is not waited for ten times as long.
  void wait_for_news(Time::time_point began) {
    constexpr milliseconds kLeast{400}, kMost{2'000}, kLongest{10'000};
    constexpr int kShare = 10;
    const auto took = Time::now() - began;
    pause_for(std::clamp(std::chrono::duration_cast<milliseconds>(kShare * took), kLeast, kLongest), stop_.get_token());
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, stop_.get_token(), kMost, [this] { return news_; });
    news_ = false;
  }

  ServiceAddress address_;
  std::string run_, about_;
  std::stop_source stop_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  bool news_ = false;  // since the last look
};

}  // namespace

std::unique_ptr<LiveSource> service_source(ServiceAddress address, const std::string& run) {
  return std::make_unique<ServiceSource>(std::move(address), run);
}

}  // namespace troupe::apps
