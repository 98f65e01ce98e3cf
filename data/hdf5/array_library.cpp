#include "data/hdf5/array_library.hpp"

#include "core/loading/module.hpp"

namespace troupe::data {
namespace {

core::Result<std::shared_ptr<const ArrayLibrary>> load_array_library() {
  constexpr const char* kKind = "hdf5";
  if (!core::find_module(kKind))
    return core::fail(core::Errc::config,
                      "this build has no HDF5 (package libhdf5-dev): run scripts/setup and scripts/build");
  const auto module = core::open_module(kKind);
  if (!module) return tl::unexpected(module.error());
  auto* version = core::function_of<ArrayLibraryVersion>(*module, "troupe_array_library_version");
  auto* make = core::function_of<MakeArrayLibrary>(*module, "troupe_make_array_library");
  if (!version || !make || version() != kArrayLibraryVersion) return tl::unexpected(core::of_another_build(kKind));
  std::shared_ptr<const ArrayLibrary> made;
  make(made);
  return made;
}

}  // namespace

core::Result<std::shared_ptr<const ArrayLibrary>> array_library() {
  static const auto library = load_array_library();
  return library;
}

}  // namespace troupe::data
