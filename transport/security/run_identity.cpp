#include "transport/security/run_identity.hpp"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "transport/security/authority.hpp"
#include "transport/security/private_file.hpp"

namespace troupe::security {
namespace {

constexpr std::time_t kClockError = 3600;            // of another host
constexpr std::time_t kLongestRun = 90 * 24 * 3600;  // a late broken connection can still be made again

core::Result<int> memory_file(const std::string& text) {
  const auto failed = [](const char* doing) {
    return tl::unexpected(core::from_errno(errno, doing, "a file in memory for certificates"));
  };
  const int file = ::memfd_create("troupe-identity", MFD_CLOEXEC);
  if (file < 0) return failed("make");
  const bool whole =
      ::fchmod(file, kForOwner) == 0 && ::write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  if (whole) return file;
  auto error = failed("write");
  ::close(file);
  return error;
}

}  // namespace

core::Result<RunIdentity> make_run_identity(const std::vector<std::string>& hosts, std::time_t now) {
  const Validity validity{now - kClockError, now + kLongestRun};
  const auto authority = make_authority(validity);
  if (!authority) return tl::unexpected(authority.error());
  const auto member = make_node(*authority, "rank", hosts, validity);
  if (!member) return tl::unexpected(member.error());
  auto ca = to_pem(*authority);
  if (!ca) return tl::unexpected(ca.error());
  auto own = to_pem(*member);
  if (!own) return tl::unexpected(own.error());
  return RunIdentity{std::move(ca->certificate), std::move(own->certificate), std::move(own->key)};
}

core::Result<MemoryFiles> MemoryFiles::create(const RunIdentity& identity) {
  MemoryFiles made;
  std::size_t next = 0;
  for (const auto& [text, path] :
       {std::tuple(&identity.ca, &made.files_.ca), std::tuple(&identity.certificate, &made.files_.certificate),
        std::tuple(&identity.key, &made.files_.key)}) {
    const auto file = memory_file(*text);
    if (!file) return tl::unexpected(file.error());
    made.descriptors_[next++] = *file;
    *path = fmt::format("/proc/self/fd/{}", *file);
  }
  return made;
}

MemoryFiles::MemoryFiles(MemoryFiles&& other) noexcept
    : descriptors_(std::exchange(other.descriptors_, {-1, -1, -1})), files_(std::move(other.files_)) {}

MemoryFiles::~MemoryFiles() {
  for (const int file : descriptors_)
    if (file >= 0) ::close(file);
}

}  // namespace troupe::security
