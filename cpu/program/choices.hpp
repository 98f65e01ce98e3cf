/// The choices that affect a compiled step's speed and exact numbers, besides the graph: the layout of activations and the
/// implementation of each primitive. Written to nn::Plan; taken from a given plan. Thread rule: one thread.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "core/error.hpp"
#include "nn/backend.hpp"

namespace troupe::cpu {

/// The layout of activations with height and width.
enum class Activations : std::uint8_t {
  channels_last,  ///< [n, h, w, c]: no padding of channels
  blocked,        ///< oneDNN's choice: 16 (8 without AVX-512) channels innermost, padded to a multiple
};

/// The planned implementation of a primitive does not exist here; compile turns this into Errc::config.
struct NoSuchImplementation {
  std::string implementation;
};

class Choices {
 public:
  /// The fixed rule. Blocked layouts cost arithmetic on padding where channels are not multiples of 16: LeNet's 20 → 50 channel
  /// convolution runs at 180/180/140 GFLOP/s (forward, weights, data) channels last and at 91/81/104 blocked. Without padding,
  /// blocked has the faster gradients (64 → 64 3x3 on 56x56: 226/135/198 against 211/201/217) and Winograd's algorithm. GoogLeNet, of
  /// which a few layers have 24 channels, runs 1.1 times as fast blocked.
  [[nodiscard]] static Choices by_rule(const nn::Graph& graph, nn::Precision precision);
  /// Errc::config if it is not a plan of this backend in this precision.
  [[nodiscard]] static core::Result<Choices> from_plan(const nn::Plan& plan, nn::Precision precision);

  [[nodiscard]] Activations activations() const noexcept { return activations_; }

  /// The descriptor of a primitive with the implementation that the plan names for `use` ("conv2.forward"). Without one: the first
  /// that oneDNN offers whose name does not start with `avoid` (the very first if all do). Throws NoSuchImplementation,
  /// dnnl::error. `rest`: attributes, engine and, for backward, the forward hint.
  template <class Primitive, class... Rest>
  [[nodiscard]] typename Primitive::primitive_desc choose(const std::string& use, std::string_view avoid,
                                                          const typename Primitive::desc& desc, const Rest&... rest) {
    // oneDNN's iterator points at desc and at the hint: they must live while it moves.
    typename Primitive::primitive_desc descriptor(desc, rest...);
    const auto planned = implementations_.find(use);
    if (planned != implementations_.end()) {
      while (planned->second != descriptor.impl_info_str())
        if (!descriptor.next_impl()) throw NoSuchImplementation{planned->second};
      return descriptor;
    }
    bool found = true;
    while (found && !avoid.empty() && std::string_view(descriptor.impl_info_str()).starts_with(avoid))
      found = descriptor.next_impl();
    if (!found) descriptor = typename Primitive::primitive_desc(desc, rest...);
    implementations_[use] = descriptor.impl_info_str();
    return descriptor;
  }

  /// The implementation that the plan names for `use`; empty: none yet.
  [[nodiscard]] std::string_view planned(const std::string& use) const;

  /// True if `use` runs Troupe's own kernel `name`: from the plan, otherwise by the rule. Throws NoSuchImplementation if it is
  /// planned and not `available` here.
  [[nodiscard]] bool choose_own(const std::string& use, const std::string& name, bool available, bool by_rule);

  [[nodiscard]] nn::Plan to_plan() const;

 private:
  nn::Precision precision_ = nn::Precision::fp32;
  Activations activations_ = Activations::blocked;
  std::map<std::string, std::string> implementations_;  // use → oneDNN's name of the implementation
};

}  // namespace troupe::cpu
