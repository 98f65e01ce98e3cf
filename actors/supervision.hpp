/// What every actor of a run does about its own failures: say so to the coordinator, then quit.
#pragma once

#include <exception>
#include <string>

#include "actors/handles.hpp"

namespace troupe::actors {

/// An exception in a handler of `self` is a bug: it becomes Trouble naming the actor, and the actor quits with an error.
template <class Self>
void report_exceptions(Self self, const std::string& name, const Company& company) {
  self->set_exception_handler(
      [self, name, coordinator = company.coordinator, site = company.site](std::exception_ptr& thrown) -> caf::error {
        std::string what = "unknown exception";
        try {
          std::rethrow_exception(thrown);
        } catch (const std::exception& e) {
          what = e.what();
        } catch (...) {
        }
        self->send(coordinator, Trouble{core::Errc::internal, name + ": " + what, site});
        return caf::exit_reason::unhandled_exception;
      });
}

}  // namespace troupe::actors
