/// Something that this process may not read, as long as the object lives, also if the tests run as root. One thread: as root the whole
/// process is another user meanwhile.
#pragma once

#include <unistd.h>

#include <exception>
#include <filesystem>
#include <stdexcept>
#include <system_error>
#include <utility>

namespace troupe::tests {

class Forbidden {
 public:
  /// `path`: a file or a folder below the folder of temporary files.
  explicit Forbidden(std::filesystem::path path) : path_(std::move(path)) {
    namespace fs = std::filesystem;
    const auto others = fs::perms::owner_all | fs::perms::group_read | fs::perms::group_exec | fs::perms::others_read |
                        fs::perms::others_exec;
    for (auto above = path_.parent_path(); above != fs::temp_directory_path() && above.has_relative_path();
         above = above.parent_path())
      fs::permissions(above, others);  // only `path` is in the way
    fs::permissions(path_, fs::perms::none);
    constexpr uid_t kNobody = 65534;
    if (is_root_ && ::seteuid(kNobody) != 0) throw std::runtime_error("this user cannot become another one");
  }
  ~Forbidden() {
    if (is_root_ && ::seteuid(0) != 0) std::terminate();
    std::error_code ignored;
    std::filesystem::permissions(path_, std::filesystem::perms::owner_all, ignored);
  }
  Forbidden(const Forbidden&) = delete;
  Forbidden& operator=(const Forbidden&) = delete;

 private:
  const bool is_root_ = ::geteuid() == 0;
  std::filesystem::path path_;
};

}  // namespace troupe::tests
