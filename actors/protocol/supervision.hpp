/// How every actor of a run handles its own failure: it reports the failure to the coordinator, then quits.
#pragma once

#include <exception>
#include <functional>
#include <new>
#include <optional>
#include <string>

#include "actors/protocol/handles.hpp"
#include "core/clock.hpp"

namespace troupe::actors {

/// Memory ran out in a handler without a request to answer. Ends the actor and reports what the memory was for.
class MemoryRanOut final : public std::bad_alloc {
 public:
  explicit MemoryRanOut(std::string what) : what_(std::move(what)) {}
  [[nodiscard]] const char* what() const noexcept override { return what_.c_str(); }

 private:
  std::string what_;
};

/// The error of actor `name`: Errc::out_of_memory for a std::bad_alloc, that of a device for core::KernelsFailed, Errc::internal for any
/// other exception, which is a bug.
[[nodiscard]] core::Error failure_of(const std::string& name, const std::exception_ptr& thrown);

/// An exception in a handler of `self` becomes a RunError that names the actor; the actor quits with an error.
template <class Self>
void report_exceptions(Self self, const std::string& name, const ActorDirectory& actors) {
  self->set_exception_handler(
      [self, name, coordinator = actors.coordinator, site = actors.site](std::exception_ptr& thrown) -> caf::error {
        const auto failure = failure_of(name, thrown);
        self->send(coordinator, RunError{failure.code, failure.message, site});
        return caf::exit_reason::unhandled_exception;
      });
}

/// The error of an actor or an answer when a program of the user's has failed: while its state was saved, or after its last batch
/// (nn::OwnProcess::end). `why` names the member.
[[nodiscard]] caf::error program_failure(const std::string& why);
/// The `why` of program_failure(), on one line; nothing: another error.
[[nodiscard]] std::optional<std::string> program_failure_of(const caf::error& reason);

/// Waits until `count` actors that `self` monitors have ended, at most `longest` from one end to the next. False: an actor has not ended.
[[nodiscard]] bool await_ends(caf::scoped_actor& self, std::size_t count, core::Duration longest,
                              const std::function<void(const caf::down_msg&)>& on_end);

}  // namespace troupe::actors
