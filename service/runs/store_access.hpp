/// The run store of the service: opened once, brought up to date when it is asked. Looks at the directories are made in the background. Thread rule: one
/// thread at a time, that of Where::store; expire() and stop() by any.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include "core/error.hpp"
#include "service/runs/background_look.hpp"
#include "store/run_store.hpp"

namespace troupe::service {

class StoreAccess {
 public:
  using Clock = BackgroundLook::Clock;

  /// A look costs a stat() of each run: so there is none while the last one is younger.
  static constexpr std::chrono::milliseconds kMostBehind{500};
  /// A look at so many directories is a long one.
  static constexpr std::size_t kMany = 20'000;
  /// What a question waits for a short look: that takes a few milliseconds, longer on a busy machine or while another process writes.
  static constexpr std::chrono::milliseconds kPatience{500};
  /// A long look begins this much after the question, so that it does not take the processors from the answer.
  static constexpr std::chrono::milliseconds kAnswerFirst{100};
  /// A question after which nobody has asked for so long waits for the whole look: what it would get is too old.
  static constexpr std::chrono::seconds kTooOld{10};
  /// The most that anybody waits for a look; then the store answers as it is.
  static constexpr std::chrono::seconds kLongestLook{60};

  /// On a full disk the store is in memory. It is opened again after this time: the disk may have room by then.
  static constexpr std::chrono::seconds kReopenAfter{60};

  explicit StoreAccess(std::string directory, std::chrono::milliseconds reopen_after = kReopenAfter)
      : directory_(std::move(directory)), reopen_after_(reopen_after) {}

  /// The store at most kMostBehind behind, where looks are short. Where they are long, a look is then begun, and later questions see what it finds: who
  /// asks again gets what is at most about a second old. Current after expire(), and when nobody has asked for kTooOld. Opens the store, and opens it
  /// again when it was damaged. Valid until the next call. Errors: from RunStore::open().
  [[nodiscard]] core::Result<store::RunStore*> fresh();
  /// The store at most kMostBehind behind: waits for the whole of a look that begins now. Errors: as fresh(); Errc::timeout after kLongestLook.
  [[nodiscard]] core::Result<store::RunStore*> current();
  /// Whether a look goes on or is to come: the last answer may have been older than kMostBehind.
  [[nodiscard]] bool is_looking() const { return look_ && look_->is_wanted(); }
  /// The next question waits for a look that begins after this: a directory was changed by the service.
  void expire() noexcept { expired_ = true; }
  /// Ends looks, and all that wait for one. Any thread.
  void stop() noexcept { stop_.request_stop(); }

 private:
  /// `whole`: waits for the look however long it takes.
  core::Result<store::RunStore*> after_look(bool whole);
  core::Result<void> open();
  /// Whether both connections are those of one store, which is not damaged, nor in memory for longer than need be.
  [[nodiscard]] bool is_usable();
  /// False: the look goes on.
  bool look(Clock::time_point now, bool anew, bool whole);
  core::Result<store::RunStore*> look_here();

  std::string directory_;
  std::chrono::milliseconds reopen_after_;
  std::stop_source stop_;
  std::optional<store::RunStore> store_;
  std::unique_ptr<BackgroundLook> look_;  // null: the store is in memory, and is looked at here
  Clock::time_point looked_{};            // here
  Clock::time_point opened_{};
  std::atomic<bool> expired_ = false;
};

}  // namespace troupe::service
