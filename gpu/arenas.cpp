#include "gpu/arenas.hpp"

#include "nn/initialise.hpp"

namespace troupe::gpu {

ReplicaArenas::ReplicaArenas(Device& device, Compiled& compiled, Staging& staging, bool is_pinned)
    : device_(device), compiled_(compiled), staging_(staging), is_pinned_(is_pinned) {}

core::Result<void> ReplicaArenas::upload(Stream& stream, core::Span device, core::ConstSpan host) {
  if (host.empty()) return {};
  if (is_pinned_) return stream.copy_to_device(device.data(), host.data(), host.size_bytes());
  return staging_.upload(stream, device.data(), host.data(), host.size_bytes());
}

core::Result<void> ReplicaArenas::download(Stream& stream, core::Span host, core::ConstSpan device) {
  if (host.empty()) return {};
  if (is_pinned_) return stream.copy_to_host(host.data(), device.data(), host.size_bytes());
  return staging_.download(stream, host.data(), device.data(), host.size_bytes());
}

core::Result<void> ReplicaArenas::upload_parameters(Stream& stream) {
  if (!mirrors() || !parameters_are_new_) return {};
  auto copied = upload(stream, compiled_.arenas.parameters.view(), compiled_.mirrors.parameters.view());
  if (copied) parameters_are_new_ = false;
  return copied;
}

core::Result<void> ReplicaArenas::begin(Stream& stream, const nn::Graph& graph) {
  const core::Span statistics = compiled_.arenas.statistics.view();
  if (statistics.empty() || mirrors()) return {};  // mirrors go to the device before every pass
  std::vector<float> initial(statistics.size());
  nn::initialise_statistics(graph, initial);
  return staging_.upload(stream, statistics.data(), initial.data(), statistics.size_bytes());
}

core::Result<void> ReplicaArenas::keep_statistics() {
  const core::Span statistics = compiled_.arenas.statistics.view();
  if (statistics.empty() || mirrors()) return {};
  auto allocated = core::Buffer::allocate(device_.memory(), statistics.size(), "statistics before a step");
  if (!allocated) return tl::unexpected(std::move(allocated.error()));
  statistics_before_ = std::move(*allocated);
  return {};
}

core::Result<void> ReplicaArenas::restore_statistics(Stream& stream) {
  if (statistics_before_.empty()) return {};  // before_pass() brings the mirrors
  return stream.copy(compiled_.arenas.statistics.data(), statistics_before_.data(),
                     statistics_before_.view().size_bytes());
}

core::Result<void> ReplicaArenas::before_pass(Stream& stream) {
  if (!statistics_before_.empty())
    if (auto copied = stream.copy(statistics_before_.data(), compiled_.arenas.statistics.data(),
                                  statistics_before_.view().size_bytes());
        !copied)
      return copied;
  if (!mirrors()) return {};
  if (auto copied = upload_parameters(stream); !copied) return copied;
  return upload(stream, compiled_.arenas.statistics.view(), compiled_.mirrors.statistics.view());
}

core::Result<void> ReplicaArenas::after_step(Stream& stream, bool with_gradients) {
  if (!mirrors()) return {};
  if (with_gradients)
    if (auto copied = download(stream, compiled_.mirrors.gradients.view(), compiled_.arenas.gradients.view()); !copied)
      return copied;
  return download(stream, compiled_.mirrors.statistics.view(), compiled_.arenas.statistics.view());
}

core::Result<void> ReplicaArenas::after_bucket(Stream& stream, const nn::Bucket& bucket) {
  if (!mirrors()) return {};
  return download(stream, compiled_.mirrors.gradients.view().subspan(bucket.offset, bucket.count),
                  compiled_.arenas.gradients.view().subspan(bucket.offset, bucket.count));
}

core::Result<ReplicaArenas::OnDevice> ReplicaArenas::before_update(Stream& stream, core::OptimizerState state) {
  OnDevice on{compiled_.arenas.parameters.view(), compiled_.arenas.gradients.view(), state};
  if (!mirrors()) return on;
  if (auto copied = upload_parameters(stream); !copied) return tl::unexpected(std::move(copied.error()));
  if (auto copied = upload(stream, on.gradients, compiled_.mirrors.gradients.view()); !copied)
    return tl::unexpected(std::move(copied.error()));
  const std::array<std::pair<core::Span, core::Span*>, 2> vectors{
      {{state.first, &on.state.first}, {state.second, &on.state.second}}};
  for (std::size_t i = 0; i < vectors.size(); ++i) {
    const auto& [host, device] = vectors[i];
    if (host.empty()) continue;
    if (states_[i].size() < host.size()) {
      auto allocated = core::Buffer::allocate(device_.memory(), host.size(), "an optimizer's state");
      if (!allocated) return tl::unexpected(std::move(allocated.error()));
      states_[i] = std::move(*allocated);
    }
    *device = states_[i].view();
    // An optimizer's state is the caller's memory: pinned or not.
    if (auto copied = staging_.upload(stream, device->data(), host.data(), host.size_bytes()); !copied)
      return tl::unexpected(std::move(copied.error()));
  }
  return on;
}

core::Result<void> ReplicaArenas::after_update(Stream& stream, core::OptimizerState state) {
  if (!mirrors()) return {};
  if (auto copied = download(stream, compiled_.mirrors.parameters.view(), compiled_.arenas.parameters.view()); !copied)
    return copied;
  for (const auto& [host, i] : {std::pair{state.first, 0U}, {state.second, 1U}})
    if (!host.empty())
      if (auto copied = staging_.download(stream, host.data(), states_[i].data(), host.size_bytes()); !copied)
        return copied;
  return stream.synchronize();
}

}  // namespace troupe::gpu
