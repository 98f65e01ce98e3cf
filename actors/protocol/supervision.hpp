/// What every actor of a run does about its own failures: say so to the coordinator, then quit.
#pragma once

#include <exception>
#include <new>
#include <string>

#include "actors/protocol/handles.hpp"

namespace troupe::actors {

/// Memory ran out in a handler that has nobody to answer: ends its actor, and says what the memory was for.
class MemoryRanOut final : public std::bad_alloc {
 public:
  explicit MemoryRanOut(std::string what) : what_(std::move(what)) {}
  [[nodiscard]] const char* what() const noexcept override { return what_.c_str(); }

 private:
  std::string what_;
};

/// What `thrown` says of the actor `name`: Errc::out_of_memory for a std::bad_alloc, Errc::internal for anything else, which is a bug.
[[nodiscard]] core::Error failure_of(const std::string& name, const std::exception_ptr& thrown);

/// An exception in a handler of `self` becomes Trouble naming the actor, and the actor quits with an error.
template <class Self>
void report_exceptions(Self self, const std::string& name, const Company& company) {
  self->set_exception_handler(
      [self, name, coordinator = company.coordinator, site = company.site](std::exception_ptr& thrown) -> caf::error {
        const auto failure = failure_of(name, thrown);
        self->send(coordinator, Trouble{failure.code, failure.message, site});
        return caf::exit_reason::unhandled_exception;
      });
}

}  // namespace troupe::actors
