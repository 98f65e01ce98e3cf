#include "service/runs/store_access.hpp"

#include <algorithm>
#include <utility>

#include "store/refresh.hpp"
#include "store/schema.hpp"

namespace troupe::service {

core::Result<store::RunStore*> StoreAccess::fresh() { return after_look(false); }

core::Result<store::RunStore*> StoreAccess::current() { return after_look(true); }

core::Result<store::RunStore*> StoreAccess::after_look(bool whole) {
  if (store_ && !is_usable()) {
    look_.reset();
    store_.reset();
  }
  const bool expired = expired_.exchange(false);
  if (!store_) {
    if (auto opened = open(); !opened) return tl::unexpected(opened.error());
    return &*store_;  // it has looked
  }
  const auto now = Clock::now();
  const auto state = look_ ? look_->state() : BackgroundLook::State{.begun = looked_, .ended = looked_};
  // What came after a look had begun may be missing in it.
  const auto behind = now - (whole ? state.begun : state.ended);
  if (!expired && behind < kMostBehind) return &*store_;
  if (!look_) return look_here();
  const bool seen = look(now, whole || expired, whole || expired || behind >= kTooOld);
  if (whole && !seen)
    return core::fail(core::Errc::timeout, directory_ + ": looking at the runs takes longer than a minute: try again");
  if (is_usable()) return &*store_;
  look_.reset();
  store_.reset();
  if (auto opened = open(); !opened) return tl::unexpected(opened.error());
  return &*store_;
}

bool StoreAccess::look(Clock::time_point now, bool anew, bool whole) {
  const bool is_short = look_->state().directories < kMany;
  const auto when = whole || is_short ? now : now + kAnswerFirst;
  // One that goes on is as good, unless something has changed since it began.
  const auto going_on = anew ? 0 : look_->under_way();
  const auto number = going_on != 0 ? going_on : look_->begin(when);
  if (whole) return look_->wait(number, now + kLongestLook);
  return is_short && look_->wait(number, now + kPatience);
}

core::Result<void> StoreAccess::open() {
  auto opened = store::RunStore::open(directory_);
  if (!opened) return tl::unexpected(opened.error());
  store_.emplace(std::move(*opened));
  looked_ = opened_ = Clock::now();
  auto other = store_->connect();
  if (!other) {
    store_.reset();
    return tl::unexpected(other.error());
  }
  if (*other) look_ = std::make_unique<BackgroundLook>(std::move(*other), directory_, stop_.get_token());
  return {};
}

bool StoreAccess::is_usable() {
  auto& database = store_->database();
  const auto checked = database.check();
  database.clear();
  if (!checked && checked.error().code == core::Errc::corrupt) return false;
  if (!look_) return !store_->is_temporarily_in_memory() || Clock::now() < opened_ + reopen_after_;
  const auto state = look_->state();
  if (!state.usable) return false;
  // Another process may have put a new file in the store's place between the opening of the two connections.
  const auto own = store::generation(database);
  database.clear();
  return state.generation == 0 || own == 0 || state.generation == own;
}

core::Result<store::RunStore*> StoreAccess::look_here() {
  store_->database().clear();
  const auto refreshed = store::refresh(store_->database(), directory_, stop_.get_token());
  store_->database().clear();
  const bool usable = refreshed || refreshed.error().code == core::Errc::timeout;
  looked_ = Clock::now();
  if (usable) return &*store_;
  store_.reset();
  if (auto opened = open(); !opened) return tl::unexpected(opened.error());
  return &*store_;
}

}  // namespace troupe::service
