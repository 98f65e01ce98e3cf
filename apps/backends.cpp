#include "apps/backends.hpp"

#include <fmt/format.h>

#include "cpu/backend.hpp"

namespace troupe::apps {

core::Result<std::unique_ptr<nn::Backend>> make_backend(std::string_view device) {
  if (device == "cpu") return cpu::make_backend();
  return core::fail(core::Errc::config,
                    fmt::format("device \"{}\": this build computes on the CPU only: use \"cpu\"", device));
}

}  // namespace troupe::apps
