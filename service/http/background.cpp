#include "service/http/background.hpp"

#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

namespace troupe::service {

void work_in_background() noexcept {
  // Of this thread only, as Linux has it. A lower priority is never refused, and nothing depends on it.
  const sched_param none{};
  if (::sched_getscheduler(0) == SCHED_OTHER) ::sched_setscheduler(0, SCHED_BATCH, &none);
  const auto self = static_cast<id_t>(::gettid());
  if (::getpriority(PRIO_PROCESS, self) < kBackgroundNice) ::setpriority(PRIO_PROCESS, self, kBackgroundNice);
}

}  // namespace troupe::service
