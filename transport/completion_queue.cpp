#include "transport/completion_queue.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <ctime>
#include <iterator>
#include <utility>

namespace troupe::transport {
namespace {

timespec to_timespec(core::Duration d) noexcept {
  const auto whole = std::chrono::duration_cast<std::chrono::seconds>(d);
  return {static_cast<std::time_t>(whole.count()), static_cast<long>((d - whole).count())};
}

}  // namespace

core::Result<std::shared_ptr<CompletionQueue>> CompletionQueue::create(const core::Clock& clock, Wake wake) {
  const int fd = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (fd < 0) return tl::unexpected(core::from_errno(errno, "create", "the event descriptor of a completion queue"));
  return std::shared_ptr<CompletionQueue>(new CompletionQueue(clock, std::move(wake), fd));
}

CompletionQueue::CompletionQueue(const core::Clock& clock, Wake wake, int fd) noexcept
    : clock_(clock), wake_(std::move(wake)), fd_(fd) {}

CompletionQueue::~CompletionQueue() { ::close(fd_); }

void CompletionQueue::push(Completion completion) {
  bool first = false;
  {
    const std::lock_guard lock(mutex_);
    first = waiting_.empty();
    waiting_.push_back(std::move(completion));
    if (first) ::eventfd_write(fd_, 1);  // from 0 to 1: cannot fail
  }
  if (first && wake_) wake_();
}

std::size_t CompletionQueue::poll(std::vector<Completion>& out) {
  const std::lock_guard lock(mutex_);
  if (waiting_.empty()) return 0;
  eventfd_t ignored = 0;
  ::eventfd_read(fd_, &ignored);
  const std::size_t count = waiting_.size();
  out.insert(out.end(), std::make_move_iterator(waiting_.begin()), std::make_move_iterator(waiting_.end()));
  waiting_.clear();
  return count;
}

core::Result<void> CompletionQueue::wait(std::vector<Completion>& out, Deadline deadline) {
  for (;;) {
    if (poll(out) > 0) return {};
    const core::Duration now = clock_.now();
    if (now >= deadline.at) return core::fail(core::Errc::timeout, "no transfer completed before the deadline");
    const timespec left = to_timespec(deadline.at - now);
    pollfd watched{fd_, POLLIN, 0};
    if (::ppoll(&watched, 1, &left, nullptr) < 0 && errno != EINTR)
      return tl::unexpected(core::from_errno(errno, "wait on", "the event descriptor of a completion queue"));
  }
}

}  // namespace troupe::transport
