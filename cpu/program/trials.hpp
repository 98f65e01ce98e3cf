/// Times primitives and kernels on scratch memory, so that a choice between two can be made by measurement. Compile time only. Thread rule: one thread.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <dnnl.hpp>

#include "core/buffer.hpp"
#include "cpu/kernels/kernel_call.hpp"

namespace troupe::cpu {

/// A primitive or a kernel with the descriptions of its arguments, and the reorders that it needs on the way in and out.
struct Candidate {
  dnnl::primitive primitive;                                  // empty: `kernel` runs
  std::vector<std::pair<int, dnnl::memory::desc>> arguments;  // DNNL_ARG_… → description, with the scratchpad
  std::vector<dnnl::reorder::primitive_desc> reorders{};
  KernelCall kernel{};  // its data are the arguments in order; one without memory is null
};

class Trials {
 public:
  explicit Trials(const dnnl::engine& engine) : engine_(engine), stream_(engine) {}

  /// Whether `other` is clearly faster than `usual`: by a twentieth, so that noise does not decide between equals. Measures once for each
  /// `key`, which names everything that the time depends on. False if memory does not suffice for a measurement.
  [[nodiscard]] bool pays(const std::string& key, const Candidate& usual, const Candidate& other);

 private:
  /// None without memory.
  [[nodiscard]] std::optional<double> seconds(const Candidate& candidate);
  /// False if there is no memory for it.
  [[nodiscard]] bool reserve(std::size_t floats);

  dnnl::engine engine_;
  dnnl::stream stream_;
  core::HostAllocator allocator_;
  core::Buffer memory_;  // of all arguments of one candidate
  std::map<std::string, bool> answers_;
};

}  // namespace troupe::cpu
