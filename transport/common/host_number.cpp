#include "transport/common/host_number.hpp"

#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>

#include "transport/common/wire_hash.hpp"

namespace troupe::transport {

std::uint64_t host_number() noexcept try {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string host;
  if (!std::getline(file, host) || host.empty()) return 0;
  std::error_code none;
  // Bytes between containers of one host go through its network, which may damage them: such containers count as different hosts.
  const auto network = std::filesystem::read_symlink("/proc/self/ns/net", none);
  return none ? 0 : wire_hash(host + " " + network.string());
} catch (...) {
  return 0;
}

}  // namespace troupe::transport
