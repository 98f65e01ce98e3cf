#include "bench/exchanger.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <utility>

namespace troupe::bench {

Exchanger::Exchanger(Rank& rank)
    : rank_(rank), wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)), thread_([this] { run(); }) {}

Exchanger::~Exchanger() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  (void)::eventfd_write(wake_, 1);
  thread_.join();
  ::close(wake_);
}

void Exchanger::begin(core::Slice part) {
  {
    const std::lock_guard lock(mutex_);
    begun_.push_back(part);
    ++open_;
  }
  (void)::eventfd_write(wake_, 1);
}

core::Result<void> Exchanger::finish() {
  std::unique_lock lock(mutex_);
  all_ended_.wait(lock, [this] { return open_ == 0 || !result_; });  // the thread stops at an error
  return result_;
}

void Exchanger::run() {
  if (auto driven = rank_.drive([this] { return look(); }, wake_); !driven) ended(std::move(driven));
}

bool Exchanger::look() {
  eventfd_t count = 0;
  (void)::eventfd_read(wake_, &count);
  std::vector<core::Slice> parts;
  {
    const std::lock_guard lock(mutex_);
    if (stopping_ || !result_) return true;
    parts.swap(begun_);
    if (open_ == parts.size()) collectives_.clear();  // all earlier ones have ended; not inside their callbacks
  }
  for (const auto part : parts) {
    collectives_.push_back(
        rank_.make_mean(part, next_++, 0, [this](core::Result<void> result) { ended(std::move(result)); }));
    collectives_.back()->start();
  }
  return false;
}

void Exchanger::ended(core::Result<void> result) {
  const std::lock_guard lock(mutex_);
  --open_;
  if (!result && result_) result_ = std::move(result);
  if (open_ == 0 || !result_) all_ended_.notify_all();
}

}  // namespace troupe::bench
