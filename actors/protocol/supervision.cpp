#include "actors/protocol/supervision.hpp"

#include "core/kernels.hpp"

namespace troupe::actors {

core::Error failure_of(const std::string& name, const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const MemoryRanOut& e) {
    return {core::Errc::out_of_memory, name + ": " + e.what()};
  } catch (const std::bad_alloc&) {
    return {core::Errc::out_of_memory, name + ": memory ran out: use a smaller data.batch or fewer workers"};
  } catch (const core::KernelsFailed& e) {
    const auto error = e.error();
    return {error.code, name + ": " + error.message};
  } catch (const std::exception& e) {
    return {core::Errc::internal, name + ": " + e.what()};
  } catch (...) {
    return {core::Errc::internal, name + ": unknown exception"};
  }
}

}  // namespace troupe::actors
