#include "transport/device/device_sums.hpp"

#include <utility>

namespace troupe::transport {
namespace {

core::Error closed() { return {core::Errc::usage, "sums on devices have ended"}; }

}  // namespace

DeviceSums::DeviceSums(std::shared_ptr<core::DeviceReduction> reduction, std::shared_ptr<CompletionQueue> completions)
    : completions_(std::move(completions)), reduction_(std::move(reduction)) {}

std::shared_ptr<core::DeviceReduction> DeviceSums::reduction() const {
  const std::lock_guard lock(mutex_);
  return reduction_;
}

core::DeviceReduction::Done DeviceSums::completes(OperationId operation) const {
  return [completions = completions_, operation](const core::Result<void>& result) {
    Completion completion{.operation = operation, .outcome = result ? Outcome::done : Outcome::failed};
    if (!result) completion.error = result.error();
    completions->push(std::move(completion));
  };
}

std::size_t DeviceSums::members() const noexcept {
  const auto sums = reduction();
  return sums ? sums->members() : 0;
}

core::Result<OperationId> DeviceSums::sum(core::Span vector) {
  const auto sums = reduction();
  if (!sums) return tl::unexpected(closed());
  const auto operation = completions_->next_operation();
  sums->sum(vector, completes(operation));
  return operation;
}

OperationId DeviceSums::join(const std::string& group, std::size_t rank, std::size_t members) {
  const auto operation = completions_->next_operation();
  const auto sums = reduction();
  if (sums)
    sums->join(group, rank, members, completes(operation));
  else
    completes(operation)(tl::unexpected(closed()));
  return operation;
}

core::Result<std::string> DeviceSums::make_group() {
  const auto sums = reduction();
  return sums ? sums->make_group() : tl::unexpected(closed());
}

void DeviceSums::abort(const core::Error& why) {
  if (const auto sums = reduction()) sums->abort(why);
}

core::Result<void> DeviceSums::check() {
  const auto sums = reduction();
  return sums ? sums->check() : core::Result<void>();
}

void DeviceSums::close() {
  std::shared_ptr<core::DeviceReduction> last;  // its destructor ends what is under way
  const std::lock_guard lock(mutex_);
  last.swap(reduction_);
}

}  // namespace troupe::transport
