#include "cpu/program/trials.hpp"

#include <algorithm>
#include <chrono>
#include <unordered_map>

namespace troupe::cpu {
namespace {

constexpr double kClearly = 0.95;
constexpr float kValue = 0.01F;
/// Executions of short primitives, of which the fastest counts: until this time is spent, the first (cold) one apart.
constexpr double kEnough_s = 0.01;
constexpr int kMostExecutions = 5;

std::size_t floats_for(const dnnl::memory::desc& desc) {
  return core::align_floats((desc.get_size() + sizeof(float) - 1) / sizeof(float));
}

}  // namespace

bool Trials::pays(const std::string& key, const Candidate& usual, const Candidate& other) {
  const auto known = answers_.find(key);
  if (known != answers_.end()) return known->second;
  const auto usual_s = seconds(usual);
  const auto other_s = seconds(other);
  return answers_[key] = usual_s && other_s && *other_s < kClearly * *usual_s;
}

bool Trials::reserve(std::size_t floats) {
  if (memory_.size() >= floats) return true;
  auto allocated = core::Buffer::allocate(allocator_, floats, "scratch memory of trials");
  if (!allocated) return false;
  memory_ = std::move(*allocated);
  // Memory that was never written is one page of zeros, which is faster to read than any data.
  std::ranges::fill(memory_.view(), kValue);
  return true;
}

std::optional<double> Trials::seconds(const Candidate& candidate) {
  std::size_t floats = 0;
  for (const auto& [argument, desc] : candidate.arguments) floats += floats_for(desc);
  for (const auto& reorder : candidate.reorders)
    floats = std::max(floats, floats_for(reorder.src_desc()) + floats_for(reorder.dst_desc()));
  if (!reserve(floats)) return std::nullopt;

  std::size_t used = 0;
  const auto next = [&](const dnnl::memory::desc& desc) {
    float* at = memory_.data() + used;
    used += floats_for(desc);
    return dnnl::memory(desc, engine_, at);
  };
  std::unordered_map<int, dnnl::memory> arguments;
  KernelCall kernel = candidate.kernel;
  for (std::size_t i = 0; i < candidate.arguments.size(); ++i) {
    const auto& [argument, desc] = candidate.arguments[i];
    const auto& memory = arguments.emplace(argument, next(desc)).first->second;
    if (kernel.run != nullptr && desc.get_size() > 0) kernel.data.at(i) = static_cast<float*>(memory.get_data_handle());
  }
  std::vector<std::pair<dnnl::reorder, std::unordered_map<int, dnnl::memory>>> reorders;
  for (const auto& reorder : candidate.reorders) {
    used = 0;
    const auto from = next(reorder.src_desc());
    reorders.emplace_back(dnnl::reorder(reorder), std::unordered_map<int, dnnl::memory>{
                                                      {DNNL_ARG_FROM, from}, {DNNL_ARG_TO, next(reorder.dst_desc())}});
  }
  const auto once = [&] {
    const auto began = std::chrono::steady_clock::now();
    if (kernel.run != nullptr)
      kernel.run(kernel, {});
    else
      candidate.primitive.execute(stream_, arguments);
    for (const auto& [reorder, operands] : reorders) reorder.execute(stream_, operands);
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  };
  double best = once();
  double spent = 0;
  for (int i = 1; i < kMostExecutions && (i == 1 || spent < kEnough_s); ++i) {
    const double now = once();
    best = i == 1 ? now : std::min(best, now);
    spent += now;
  }
  return best;
}

}  // namespace troupe::cpu
