#include "service/runs/store_access.hpp"

#include "store/refresh.hpp"

namespace troupe::service {

core::Result<store::RunStore*> StoreAccess::fresh() {
  using Clock = std::chrono::steady_clock;
  if (store_ && looked_ != Clock::time_point{} && Clock::now() - looked_ < kMostBehind) return &*store_;
  if (store_) {
    store_->database().clear();
    const auto refreshed = store::refresh(store_->database(), directory_);
    // Another process works on the store: what was read before is good enough.
    const bool usable = refreshed || refreshed.error().code == core::Errc::timeout;
    store_->database().clear();
    if (!usable) store_.reset();
  }
  if (!store_) {
    auto opened = store::RunStore::open(directory_);
    if (!opened) return tl::unexpected(opened.error());
    store_.emplace(std::move(*opened));
  }
  looked_ = Clock::now();
  return &*store_;
}

}  // namespace troupe::service
