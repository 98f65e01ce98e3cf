#include "transport/device/device_copier.hpp"

#include "transport/common/module.hpp"

namespace troupe::transport {

core::Result<std::shared_ptr<DeviceCopier>> make_device_copier(int device) {
  const auto opened = open_module("cuda");
  if (!opened) return tl::unexpected(opened.error());
  auto* version = function_of<CopierVersion>(*opened, "troupe_copier_version");
  auto* make = function_of<MakeCopier>(*opened, "troupe_make_copier");
  if (!version || !make || version() != kCopierVersion) return tl::unexpected(of_another_build("cuda"));
  core::Result<std::shared_ptr<DeviceCopier>> made = core::fail(core::Errc::internal, "the module made nothing");
  make(device, made);
  return made;
}

}  // namespace troupe::transport
