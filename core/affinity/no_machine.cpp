// this_machine() in builds without hwloc.
#include "core/affinity/machine.hpp"

namespace troupe::core {

const Result<Machine>& this_machine() {
  static const Result<Machine> none = fail(Errc::config, "this build has no hwloc (package libhwloc-dev)");
  return none;
}

}  // namespace troupe::core
