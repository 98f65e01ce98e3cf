#include "service/runs/background_look.hpp"

#include <algorithm>
#include <exception>
#include <utility>

#include "service/http/worker.hpp"
#include "store/refresh.hpp"
#include "store/schema.hpp"

namespace troupe::service {

BackgroundLook::BackgroundLook(std::unique_ptr<store::Database> database, std::string directory, std::stop_token stop)
    : database_(std::move(database)),
      directory_(std::move(directory)),
      state_{.begun = Clock::now(), .ended = Clock::now()},
      thread_([this](const std::stop_token& own) { work(own); }),
      ends_(std::move(stop), [this] { thread_.request_stop(); }) {}

BackgroundLook::~BackgroundLook() = default;

std::uint64_t BackgroundLook::begin(Clock::time_point when) {
  std::uint64_t look = 0;
  {
    const std::scoped_lock lock(mutex_);
    when_ = wanted_ > begun_ ? std::min(when_, when) : when;
    look = wanted_ = begun_ + 1;
  }
  changed_.notify_all();
  return look;
}

std::uint64_t BackgroundLook::under_way() const {
  const std::scoped_lock lock(mutex_);
  return begun_ > done_ ? begun_ : 0;
}

bool BackgroundLook::is_wanted() const {
  const std::scoped_lock lock(mutex_);
  return wanted_ > done_;
}

bool BackgroundLook::wait(std::uint64_t look, Clock::time_point until) {
  std::unique_lock lock(mutex_);
  return changed_.wait_until(lock, thread_.get_stop_token(), until, [&] { return done_ >= look; });
}

BackgroundLook::State BackgroundLook::state() const {
  const std::scoped_lock lock(mutex_);
  return state_;
}

void BackgroundLook::work(const std::stop_token& stop) {
  work_in_background();
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, stop, [this] { return wanted_ > begun_; });
    while (!stop.stop_requested() && Clock::now() < when_)
      changed_.wait_until(lock, stop, Clock::time_point(when_), [this] { return Clock::now() >= when_; });
    if (stop.stop_requested()) return;
    begun_ = wanted_;
    State state = state_;
    state.begun = Clock::now();
    state.generation = 0;
    lock.unlock();
    look(state, stop);
    state.ended = Clock::now();
    lock.lock();
    state_ = state;
    done_ = begun_;
    changed_.notify_all();
  }
}

void BackgroundLook::look(State& state, const std::stop_token& stop) {
  try {
    const auto refreshed = store::refresh(*database_, directory_, stop);
    database_->clear();
    state.generation = store::generation(*database_);
    database_->clear();
    if (refreshed) state.directories = refreshed->looked_at;
    // Another process works on the store: what was read before is good enough.
    state.usable = refreshed || refreshed.error().code == core::Errc::timeout;
  } catch (const std::exception&) {
    state.usable = false;  // who asks opens the store anew, and gets the error
  }
}

}  // namespace troupe::service
