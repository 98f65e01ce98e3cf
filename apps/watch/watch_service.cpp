#include <atomic>
#include <map>
#include <memory>
#include <set>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "apps/client/json_values.hpp"
#include "apps/client/reconnecting.hpp"
#include "apps/watch/output_lines.hpp"
#include "apps/watch/service_lines.hpp"
#include "apps/watch/watch.hpp"

namespace troupe::apps {
namespace {

/// Runs that are followed line by line at once. Of others only the beginning and the end are seen.
constexpr std::size_t kMostRuns = 16;

StateJson parsed(const std::string& text) {
  auto json = StateJson::parse(text, nullptr, false);
  return json.is_object() ? json : StateJson();
}

class ServiceWatch {
 public:
  ServiceWatch(const WatchOptions& options, const std::stop_token& stop)
      : options_(options), output_(stop_), on_stop_(stop, [this] { stop_.request_stop(); }) {}

  core::Result<void> run() {
    ServiceClient client(options_.address, stop_.get_token());
    ServiceClient asking(options_.address, stop_.get_token());
    std::string none;
    const FollowOptions follow{.on_event = [this](const ServerEvent& event) { take(event.kind, parsed(event.data)); },
                               .on_lost = [this](const core::Error& error, auto) { tell_lost(error); },
                               .before = [&] { return look(asking); },
                               .patience = options_.patience};
    const auto followed = follow_events(client, "/api/v1/events", none, follow, stop_.get_token());
    stop_.request_stop();
    runs_.clear();
    if (const auto failed = output_.failure()) return tl::unexpected(*failed);
    return followed;
  }

 private:
  struct Followed {
    std::stop_source stop;
    std::atomic<bool> ended = false;  // its last line was that of an end
    std::jthread thread;
    ~Followed() { stop.request_stop(); }
  };

  /// The stream says nothing of what has changed without it: so the lists are compared before each connection.
  core::Result<void> look(ServiceClient& client) {
    for (const auto* path : {"/api/v1/jobs", "/api/v1/runs?limit=200", "/api/v1/nodes"}) {
      const auto answer = client.get(path);
      if (!answer && may_pass(answer.error())) return tl::unexpected(answer.error());
      if (!answer && answer.error().message.find("answers 404") == std::string::npos)  // no jobs, no nodes
        return tl::unexpected(answer.error());
      if (!answer) continue;
      const auto& rows = answer->is_array() ? *answer : list_at(*answer, "runs");
      const auto* const kind = answer->is_array() ? (std::string_view(path).ends_with("jobs") ? "job" : "node") : "run";
      for (auto row = rows.rbegin(); row != rows.rend(); ++row) take(kind, *row, first_);  // the oldest first
    }
    first_ = false;
    return {};
  }

  void take(std::string_view kind, const StateJson& row, bool first = false) {
    const auto run = kind == "run" ? text_at(row, "run") : std::string(), status = text_at(row, "status");
    if (!run.empty() && status != "running") unfollow(run, status);
    const auto line = kind == "job"    ? lines_.job(row, first)
                      : kind == "run"  ? lines_.run(row, first)
                      : kind == "node" ? lines_.node(row, first)
                                       : std::nullopt;
    if (line && options_.json)
      output_.print(
          StateJson{{"event", kind}, {"data", row}}.dump(-1, ' ', false, StateJson::error_handler_t::replace));
    else if (line)
      output_.print_now(*line);
    if (run.empty()) return;
    const bool is_new = known_.insert(run).second && !first;
    if (status == "running") follow_run(run, is_new);
  }

  /// `is_new`: it began while this watches, so all of its lines are news.
  void follow_run(const std::string& run, bool is_new) {
    if (runs_.contains(run) || runs_.size() >= kMostRuns) return;
    auto& followed = runs_[run];
    followed = std::make_unique<Followed>();
    followed->thread = std::jthread([this, run, is_new, &now = *followed] { lines_of(run, is_new, now); });
  }

  /// The news that a run has ended may come before its last lines.
  void unfollow(const std::string& run, std::string_view status) {
    constexpr std::chrono::milliseconds kBetween{50};
    constexpr int kLooks = 60;
    const auto found = runs_.find(run);
    if (found == runs_.end()) return;
    const bool has_end = status != "killed";
    for (int look = 0; has_end && look < kLooks && !found->second->ended && !stop_.stop_requested(); ++look)
      pause_for(kBetween, stop_.get_token());
    runs_.erase(found);
  }

  void lines_of(const std::string& run, bool is_new, Followed& followed) {
    std::stop_source both;
    const std::stop_callback one(followed.stop.get_token(), [&] { both.request_stop(); });
    const std::stop_callback all(stop_.get_token(), [&] { both.request_stop(); });
    ServiceClient client(options_.address, both.get_token());
    std::string position;
    const FollowOptions follow{.on_event = [&](const ServerEvent& event) {
      take_line(run, event);
      followed.ended = event.kind == "ended";
    }};
    const auto path = "/api/v1/runs/" + encoded_segment(run) + "/events" + (is_new ? "?from=0" : "");
    static_cast<void>(follow_events(client, path, position, follow, both.get_token()));
  }

  void take_line(const std::string& run, const ServerEvent& event) {
    if (event.kind == "worker") return;
    const auto line = parsed(event.data);
    const auto text = ServiceLines::of_run(run, line);
    if (text && options_.json)
      output_.print(StateJson{{"event", event.kind}, {"run", run}, {"data", line}}.dump(
          -1, ' ', false, StateJson::error_handler_t::replace));
    else if (text)
      output_.print_now(*text);
  }

  void tell_lost(const core::Error& error) const {
    if (options_.tell) options_.tell(fmt::format("troupe: {}; trying again\n", error.message));
  }

  const WatchOptions& options_;
  std::stop_source stop_;
  OutputLines output_;
  ServiceLines lines_;
  bool first_ = true;
  std::set<std::string> known_;  // runs
  std::map<std::string, std::unique_ptr<Followed>> runs_;
  std::stop_callback<std::function<void()>> on_stop_;
};

}  // namespace

core::Result<void> watch_service(const WatchOptions& options, const std::stop_token& stop) {
  return ServiceWatch(options, stop).run();
}

}  // namespace troupe::apps
