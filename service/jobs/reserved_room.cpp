#include "service/jobs/reserved_room.hpp"

#include <fcntl.h>
#include <unistd.h>

#include "core/file_descriptor.hpp"

namespace troupe::service {

void ReservedRoom::keep() {
  if (kept_ || path_.empty()) return;
  const core::FileDescriptor file(::open(path_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  kept_ = file && ::posix_fallocate(file.get(), 0, kBytes) == 0;
  if (!kept_) ::unlink(path_.c_str());
}

bool ReservedRoom::give_up() {
  kept_ = false;
  return !path_.empty() && ::unlink(path_.c_str()) == 0;
}

}  // namespace troupe::service
