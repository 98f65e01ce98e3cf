#include "transport/mpi/job.hpp"

#include "transport/common/module.hpp"
#include "transport/fabric/fabric_module.hpp"

namespace troupe::transport {

core::Result<std::unique_ptr<Job>> join_job() {
  const auto module = load_fabric("mpi", Symbols::global);
  if (!module) return tl::unexpected(module.error());
  auto* join = function_of<JoinJob>(module->handle, "troupe_join_job");
  if (!join) return core::fail(core::Errc::internal, "troupe_mpi.so knows of no jobs");
  core::Result<std::unique_ptr<Job>> joined = core::fail(core::Errc::internal, "the module joined nothing");
  join(joined);
  return joined;
}

}  // namespace troupe::transport
