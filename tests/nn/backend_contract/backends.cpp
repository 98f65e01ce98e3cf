#include "tests/nn/backend_contract/backends.hpp"

#include <map>
#include <ostream>

#include "cpu/backend.hpp"
#include "gpu/backend.hpp"

namespace troupe::nn::testing {

const std::vector<BackendKind>& backends() {
  static const std::vector<BackendKind> all{
      {"cpu", cpu::make_backend},
      {"gpu_on_host", gpu::make_backend_on_host},
      {"gpu_on_host_arenas", gpu::make_backend_on_host_arenas},
  };
  return all;
}

Backend& backend_of(const BackendKind& kind) {
  static std::map<std::string, std::unique_ptr<Backend>> made;
  auto& backend = made[kind.name];
  if (!backend) backend = kind.make();
  return *backend;
}

void PrintTo(const BackendKind& kind, std::ostream* out) { *out << kind.name; }

}  // namespace troupe::nn::testing
