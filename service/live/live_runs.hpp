/// Follows the metrics.jsonl of runs that someone looks at: one reader per run, however many look. Thread rule: one thread at a time, that of
/// Where::live; the queues that it gives out are thread-safe.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "service/http/event_queue.hpp"
#include "service/http/message.hpp"
#include "service/live/followed_file.hpp"
#include "service/live/run_state.hpp"

namespace troupe::service {

class LiveRuns {
 public:
  /// Workers report as often.
  static constexpr std::chrono::milliseconds kPoll{100};
  /// A run that nobody looks at any more is forgotten.
  static constexpr std::chrono::seconds kKept{30};
  static constexpr std::size_t kMostRuns = 64;

  explicit LiveRuns(std::string directory) : directory_(std::move(directory)) {}

  /// The live state of a run (docs/formats/service.md). `run`: the path of its directory in the store's. Reads its file as far as it goes.
  /// Errc::config: there is no such run; io.
  [[nodiscard]] core::Result<Json> state(const std::string& run);

  /// The same as text. Of many that ask while the file stays as it is, one pays for it; the text may be kStateKept old then.
  [[nodiscard]] core::Result<std::shared_ptr<const std::string>> state_text(const std::string& run);
  static constexpr std::chrono::milliseconds kStateKept{200};

  /// The lines of a run's file as events: those behind byte `from`, then new ones; without it only new ones. A position within a line is
  /// moved behind it. Errors as state().
  [[nodiscard]] core::Result<std::shared_ptr<EventQueue>> subscribe(const std::string& run,
                                                                    std::optional<std::uint64_t> from);

  /// Reads what the files have got. Returns when it wants to be called again; nothing: no run is looked at.
  [[nodiscard]] std::optional<std::chrono::milliseconds> poll();

 private:
  using Clock = std::chrono::steady_clock;

  /// A client that reads its own part of the file until it has caught up with the others.
  struct Client {
    std::shared_ptr<EventQueue> queue;
    std::optional<FollowedFile> behind;
  };
  struct Followed {
    explicit Followed(FollowedFile opened) : file(std::move(opened)) {}
    FollowedFile file;
    RunState state;
    std::vector<Client> clients;
    Clock::time_point looked_at{};
    std::shared_ptr<const std::string> text;  // of the state, when the file ended at text_position
    std::uint64_t text_position = 0;
    Clock::time_point text_made{};
  };

  [[nodiscard]] core::Result<Followed*> follow(const std::string& run);
  [[nodiscard]] core::Result<core::FileDescriptor> open_metrics(const std::string& run) const;
  static core::Result<void> read_all(Followed& followed);
  static void catch_up(Followed& followed, Client& client);
  [[nodiscard]] Json state_of(const std::string& run, const Followed& followed) const;
  [[nodiscard]] std::string status_of(const std::string& run, const Followed& followed) const;
  /// Ends the streams of a run whose metrics.jsonl is another file by now, or is gone: their clients come again, and the new file is followed,
  /// or they are told that there is no such run.
  void forget_former(const std::string& run);
  void forget_idle();

  std::string directory_;
  std::map<std::string, std::unique_ptr<Followed>> runs_;
};

}  // namespace troupe::service
