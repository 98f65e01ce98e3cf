#include "certificates.hpp"

#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <stdexcept>

#include "transport/security/authority.hpp"

namespace troupe::transport::testing {
namespace {

constexpr std::time_t kDay = 24 * 3600;

void must(const core::Result<void>& result) {
  if (!result) throw std::runtime_error(result.error().message);
}

struct Made {
  Made() {
    std::string pattern = (std::filesystem::temp_directory_path() / "troupe-tcp-XXXXXX").string();
    directory = ::mkdtemp(pattern.data());
    const std::time_t now = std::time(nullptr);
    const auto authority = security::make_authority(security::authority_validity(now)).value();
    const auto other = security::make_authority(security::authority_validity(now)).value();
    must(security::write_identity(authority, directory + "/ca.pem", directory + "/ca.key"));
    good = write("good", authority, security::node_validity(now));
    expired = write("expired", authority, {now - 2 * kDay, now - kDay});
    foreign = write("foreign", other, security::node_validity(now));
  }
  ~Made() { std::filesystem::remove_all(directory); }

  security::TlsFiles write(const std::string& name, const security::Identity& authority, security::Validity validity) {
    const auto files = security::files_of(directory, name);
    const auto node = security::make_node(authority, name, {"127.0.0.3", "127.0.0.4"}, validity).value();
    must(security::write_identity(node, files.certificate, files.key));
    return files;
  }

  std::string directory;
  security::TlsFiles good, expired, foreign;
};

const Made& made() {
  static const Made all;
  return all;
}

}  // namespace

const security::TlsFiles& good_certificate() { return made().good; }
const security::TlsFiles& expired_certificate() { return made().expired; }
const security::TlsFiles& foreign_certificate() { return made().foreign; }

}  // namespace troupe::transport::testing
