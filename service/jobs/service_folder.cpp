#include "service/jobs/service_folder.hpp"

#include <sys/stat.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

namespace troupe::service {

core::Result<std::string> service_folder(const std::string& run_directory) {
  std::error_code error;
  std::filesystem::create_directories(run_directory, error);
  if (error) return tl::unexpected(core::from_errno(error.value(), "make", run_directory));
  auto folder = run_directory + "/.service";
  if (::mkdir(folder.c_str(), 0700) == 0) return folder;
  if (errno != EEXIST) return tl::unexpected(core::from_errno(errno, "make", folder));
  std::filesystem::permissions(folder, std::filesystem::perms::owner_all,
                               error);  // of another user's it stays as it is
  return folder;
}

}  // namespace troupe::service
