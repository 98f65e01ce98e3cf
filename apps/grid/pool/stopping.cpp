#include "apps/grid/pool/stopping.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <string>
#include <utility>

namespace troupe::grid {

Stopping::Stopping(std::stop_token stop, RunPool& pool, Progress& progress, const core::Clock& clock)
    : stop_(std::move(stop)),
      pool_(pool),
      progress_(progress),
      clock_(clock),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      on_stop_(stop_, [this] {
        constexpr std::uint64_t kOne = 1;
        [[maybe_unused]] const auto ignored = ::write(wake_.get(), &kOne, sizeof kOne);
      }) {}

void Stopping::proceed(std::string_view why) {
  std::uint64_t count = 0;
  [[maybe_unused]] const auto ignored = ::read(wake_.get(), &count, sizeof count);
  if (!told_at_) {
    told_at_ = clock_.now();
    pool_.signal(SIGINT);
    progress_.line(std::string(why));
  } else if (core::seconds(clock_.now() - *told_at_) > kSavingDeadline_s) {
    pool_.signal(SIGKILL);
  }
}

std::vector<RunPool::Ended> Stopping::wait() { return pool_.wait(kTick, wake_.get()); }

void Stopping::rest() const {
  pollfd woken{wake_.get(), POLLIN, 0};
  ::poll(&woken, 1, static_cast<int>(kTick.count()));
}

}  // namespace troupe::grid
