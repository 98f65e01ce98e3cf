#include "experiment/accounts/distance.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace troupe::experiment {

using strategies::KernelName;
using strategies::SlotKind;
using strategies::Transfer;

double squared_distance(const core::Kernels& kernels, core::ConstSpan a, core::ConstSpan b) {
  constexpr std::size_t kChunk = 4096;  // stays in the first cache
  alignas(core::kAlignment) std::array<float, kChunk> change;
  double sum = 0;
  for (std::size_t at = 0; at < a.size(); at += kChunk) {
    const auto floats = std::min(kChunk, a.size() - at);
    const auto part = core::Span(change).first(floats);
    kernels.difference(part, a.subspan(at, floats), b.subspan(at, floats));
    sum += kernels.squared_norm(part);
  }
  return sum;
}

template <class Subtract>
std::optional<double> DistanceMeter::on_device(std::size_t floats, Subtract subtract) {
  if (const auto needed = std::min(floats, kScratch); scratch_.size() < needed) {
    if (memory_ == nullptr) return {};
    auto scratch = core::Buffer::allocate(*memory_, needed);
    if (!scratch) return {};
    scratch_ = std::move(*scratch);
  }
  double sum = 0;
  for (std::size_t at = 0; at < floats; at += kScratch) {
    const auto part = scratch_.view().first(std::min(kScratch, floats - at));
    subtract(part, at);
    sum += kernels_->squared_norm(part);
  }
  return sum;
}

std::optional<double> DistanceMeter::squared(core::ConstSpan a, core::ConstSpan b) {
  if (kernels_->space() != core::MemorySpace::device) return squared_distance(*kernels_, a, b);
  return on_device(a.size(), [&](core::Span part, std::size_t at) {
    kernels_->difference(part, a.subspan(at, part.size()), b.subspan(at, part.size()));
  });
}

std::optional<double> DistanceMeter::squared_from_host(core::ConstSpan a, core::ConstSpan b) {
  if (kernels_->space() != core::MemorySpace::device) return squared_distance(*kernels_, a, b);
  return on_device(a.size(), [&](core::Span part, std::size_t at) {
    kernels_->upload(part, b.subspan(at, part.size()));
    kernels_->difference(part, a.subspan(at, part.size()), part);
  });
}

std::optional<Ends> ends_at_server(const strategies::KernelCall& call, Transfer kind) {
  using strategies::kCenter, strategies::kPayload;
  if (call.y != kPayload || call.x != kCenter) return {};
  const bool elastic = call.kernel == KernelName::elastic_pair || call.kernel == KernelName::elastic_delta ||
                       call.kernel == KernelName::scale_add;
  const bool answers = call.kernel == KernelName::copy;
  if ((elastic && kind == Transfer::push_pull) || (answers && kind == Transfer::pull)) return Ends{kPayload, kCenter};
  return {};
}

std::optional<Ends> ends_at_worker(const strategies::KernelCall& call) {
  using strategies::kAnchor, strategies::kParams;
  if (call.kernel == KernelName::difference && call.x == kAnchor && call.z == kParams) return Ends{kParams, kAnchor};
  if (call.kernel == KernelName::copy && call.y == kParams && call.x.kind == SlotKind::staged)
    return Ends{kParams, call.x};
  return {};
}

bool DistanceGauge::begin_if_due(core::Duration compute, core::Duration local, std::uint64_t steps, std::size_t floats,
                                 double length) {
  if (begun_at_.count() >= 0) {
    const auto kernels = core::seconds(local) / static_cast<double>(std::max<std::uint64_t>(steps, 1));
    const auto least = kLeastPerFloat_s * static_cast<double>(floats) * length / kLength;
    const auto measuring = std::max(length * kernels, least);
    if (core::seconds(compute - begun_at_) * kMostShare < measuring) return false;
  }
  begun_at_ = compute;
  parts_.clear();
  missing_ = floats;
  return true;
}

bool DistanceGauge::lacks(std::size_t offset) const { return missing_ > 0 && !parts_.contains(offset); }

std::optional<double> DistanceGauge::add(std::size_t offset, std::size_t count, double squared) {
  if (!lacks(offset) || count > missing_) return {};
  parts_.emplace(offset, squared);
  missing_ -= count;
  if (missing_ > 0) return {};
  double sum = 0;
  for (const auto& [at, part] : parts_) sum += part;
  if (!std::isfinite(sum)) return {};
  return std::sqrt(sum);
}

}  // namespace troupe::experiment
