#include <sys/eventfd.h>
#include <unistd.h>

#include <utility>

#include "apps/top/live_source.hpp"

namespace troupe::apps {

LatestView::LatestView() : waker_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

void LatestView::wake() const {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto ignored = ::write(waker_.get(), &one, sizeof(one));
}

void LatestView::put(LiveView view) {
  {
    const std::scoped_lock lock(mutex_);
    view_ = std::move(view);
  }
  wake();
}

void LatestView::put_problem(const std::string& run, std::string problem) {
  {
    const std::scoped_lock lock(mutex_);
    if (!run.empty()) view_.run = run;
    view_.problem = std::move(problem);
  }
  wake();
}

void LatestView::fail(core::Error error) {
  {
    const std::scoped_lock lock(mutex_);
    failure_ = std::move(error);
  }
  wake();
}

LiveView LatestView::get() const {
  const std::scoped_lock lock(mutex_);
  return view_;
}

std::optional<core::Error> LatestView::failure() const {
  const std::scoped_lock lock(mutex_);
  return failure_;
}

}  // namespace troupe::apps
