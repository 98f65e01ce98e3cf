#include "actors/protocol/supervision.hpp"

#include "actors/protocol/refusal.hpp"
#include "core/kernels.hpp"

namespace troupe::actors {

namespace {

const auto kProgram = caf::atom("program");  // the category of program_failure()

}  // namespace

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

caf::error program_failure(const std::string& why) { return {1, kProgram, caf::make_message(why)}; }

std::optional<std::string> program_failure_of(const caf::error& reason) {
  if (!reason || reason.category() != kProgram || !reason.context().match_elements<std::string>()) return std::nullopt;
  return one_line(reason.context().get_as<std::string>(0));  // perhaps of another process
}

bool await_ends(caf::scoped_actor& self, std::size_t count, core::Duration longest,
                const std::function<void(const caf::down_msg&)>& on_end) {
  bool late = false;
  const auto down = [&](const caf::down_msg& message) {
    --count;
    on_end(message);
  };
  while (count > 0 && !late)
    self->receive(
        down, caf::after(longest) >> [&] { late = true; });
  return !late;
}

}  // namespace troupe::actors
