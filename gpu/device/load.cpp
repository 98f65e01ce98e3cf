#include "gpu/device/load.hpp"

#include "core/loading/module.hpp"

namespace troupe::gpu {
namespace {

struct LoadedModule {
  MakeDevice* make = nullptr;
  SurveyDevices* survey = nullptr;
};

core::Result<LoadedModule> load_module() {
  const auto opened = core::open_module("gpu");
  if (!opened) return tl::unexpected(opened.error());
  auto* version = core::function_of<DeviceVersion>(*opened, "troupe_gpu_version");
  const LoadedModule module{core::function_of<MakeDevice>(*opened, "troupe_gpu_make"),
                            core::function_of<SurveyDevices>(*opened, "troupe_gpu_survey")};
  if (!version || !module.make || !module.survey || version() != kDeviceVersion)
    return tl::unexpected(core::of_another_build("gpu"));
  return module;
}

}  // namespace

core::Result<std::shared_ptr<Device>> load_device(int ordinal) {
  const auto module = load_module();
  if (!module) return tl::unexpected(module.error());
  core::Result<std::shared_ptr<Device>> made = core::fail(core::Errc::internal, "the module made nothing");
  module->make(ordinal, made);
  return made;
}

bool has_module() { return load_module().has_value(); }

DeviceSurvey devices() {
  DeviceSurvey survey;
  const auto module = load_module();
  if (!module) {
    survey.no_module = module.error().message;
    return survey;
  }
  survey.built = true;
  module->survey(survey);
  return survey;
}

}  // namespace troupe::gpu
