#include "guest/replica.hpp"

#include <cmath>

#include <fmt/format.h>

#include "core/text/plural.hpp"

namespace troupe::guest {

namespace {

/// Whole tensors, of at least kBucketFloats together: a report costs the guest more than a small exchange gains.
std::vector<nn::Bucket> cut(const nn::Layout& layout) {
  constexpr std::size_t kBucketFloats = std::size_t{1} << 18;
  std::vector<nn::Bucket> buckets;
  std::size_t end = layout.arena_floats();
  for (std::size_t k = layout.tensors().size(); k-- > 0;) {
    const auto begin = static_cast<std::size_t>(layout.tensors()[k].offset);
    if (k > 0 && (end - begin < kBucketFloats || begin < kBucketFloats)) continue;
    buckets.push_back({begin, end - begin});
    end = begin;
  }
  return buckets;
}

}  // namespace

core::Result<GuestMemory> GuestMemory::create(GuestVectors& vectors, const nn::Graph& graph, bool gradients) {
  GuestMemory memory{
      std::make_shared<const nn::Layout>(nn::plain_layout(graph)), nn::statistics_layout(graph), {}, {}, {}, {}};
  memory.buckets = cut(*memory.layout);
  const auto make = [&](core::Buffer& into, std::size_t floats, std::string_view what) -> core::Result<void> {
    if (floats == 0) return {};
    return core::Buffer::allocate(vectors, floats, what).map([&](core::Buffer buffer) { into = std::move(buffer); });
  };
  const auto floats = memory.layout->arena_floats();
  if (auto made = make(memory.parameters, floats, "the parameters of a program"); !made)
    return tl::unexpected(std::move(made.error()));
  if (auto made = make(memory.gradients, gradients ? floats : 0, "the gradients of a program"); !made)
    return tl::unexpected(std::move(made.error()));
  if (auto made = make(memory.statistics, memory.statistics_layout.arena_floats(), "the running values of a program");
      !made)
    return tl::unexpected(std::move(made.error()));
  return memory;
}

SharedVectors GuestMemory::shared(const GuestVectors& vectors, int empty) const {
  const auto file = [&](const core::Buffer& buffer) {
    return buffer.empty() ? empty : vectors.descriptor_of(buffer.data());
  };
  SharedVectors shared{.parameters = file(parameters),
                       .gradients = file(gradients),
                       .statistics = file(statistics),
                       .floats = parameters.size(),
                       .statistics_floats = statistics.size(),
                       .offsets = {},
                       .statistics_offsets = {},
                       .buckets = buckets,
                       .shares_gradients = !gradients.empty()};
  for (const auto& tensor : layout->tensors()) shared.offsets.push_back(tensor.offset);
  for (const auto& tensor : statistics_layout.tensors()) shared.statistics_offsets.push_back(tensor.offset);
  return shared;
}

GuestReplica::GuestReplica(const nn::Graph& graph, std::int64_t batch, bool steps_alone, GuestMemory memory,
                           std::unique_ptr<Guest> guest)
    : graph_(graph), batch_(batch), steps_alone_(steps_alone), memory_(std::move(memory)), guest_(std::move(guest)) {}

void GuestReplica::fetch() noexcept {
  if (!newer_there_ || failed_) return;
  newer_there_ = false;
  if (auto fetched = guest_->sync(); !fetched) failed_ = std::move(fetched.error());
}

core::Span GuestReplica::parameters() noexcept {
  fetch();
  return memory_.parameters.view();
}

core::Span GuestReplica::statistics() noexcept {
  fetch();
  written_ = true;  // perhaps: nothing tells of writes to them
  return memory_.statistics.view();
}

/// The guest is told once, before it computes again: a strategy may write several times between two steps.
void GuestReplica::parameters_written() noexcept {
  ++version_;
  written_ = true;
}

core::Result<nn::StepResult> GuestReplica::step(const nn::Batch& batch,
                                                const std::function<void(int)>& on_bucket_ready) {
  if (failed_) return tl::unexpected(*failed_);
  if (std::exchange(written_, false))
    if (auto told = guest_->changed(); !told) return tl::unexpected(std::move(told.error()));
  auto result = guest_->step(batch, steps_alone_, on_bucket_ready);
  newer_there_ = true;
  for (std::size_t bucket = 0; result && steps_alone_ && on_bucket_ready && bucket < memory_.buckets.size(); ++bucket)
    on_bucket_ready(static_cast<int>(bucket));
  return result;
}

void GuestReplica::apply(const core::OptimizerStep& step, core::OptimizerState) {
  if (steps_alone_) {
    ++version_;
    return;  // within step()
  }
  if (!failed_ && std::exchange(written_, false))
    if (auto told = guest_->changed(); !told) failed_ = std::move(told.error());
  if (!failed_)
    if (auto stepped = guest_->optimize(++optimizer_steps_, step.lr); !stepped) failed_ = std::move(stepped.error());
  if (failed_) throw core::KernelsFailed(*failed_);
  newer_there_ = true;
  ++version_;
}

core::Result<std::vector<std::byte>> GuestReplica::own_state() {
  if (failed_) return tl::unexpected(*failed_);
  return guest_->save(nn::most_own_state(memory_.layout->arena_floats()));
}

core::Result<void> GuestReplica::set_own_state(std::span<const std::byte> state) {
  if (failed_) return tl::unexpected(*failed_);
  // A program that has values elsewhere must not take its own, older ones for newer than those that were written with the state.
  if (std::exchange(written_, false))
    if (auto told = guest_->changed(); !told) return tl::unexpected(std::move(told.error()));
  return guest_->load(state).map_error([&](core::Error error) {
    error.message = fmt::format("the state of its optimizer that was saved, {}, is not taken by the program: {}",
                                core::counted(state.size(), "byte"), error.message);
    return error;
  });
}

core::Result<nn::StepResult> GuestReplica::evaluate(const nn::Batch&) {
  if (failed_) return tl::unexpected(*failed_);
  written_ = false;
  auto found = guest_->evaluate();
  if (!found) return tl::unexpected(std::move(found.error()));
  return found->value_or(nn::StepResult{});
}

}  // namespace troupe::guest
