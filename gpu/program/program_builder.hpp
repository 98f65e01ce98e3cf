/// Collects the operations of a step on symbolic operands, then plans the workspace and binds everything to memory. Compile time only.
/// Thread rule: one thread.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "gpu/program/operand.hpp"
#include "gpu/program/program.hpp"
#include "nn/layout.hpp"

namespace troupe::gpu {

enum class Phase : std::uint8_t { refresh, forward, backward };

/// The device memory of parameters, gradients (null if not training) and statistics (null if there are none).
struct Arenas {
  const nn::Layout& layout;
  const nn::Layout& statistics_layout;
  float* parameters = nullptr;
  float* gradients = nullptr;
  float* statistics = nullptr;
};

/// Which part of a step a slot of the workspace lives in.
enum class Life : std::uint8_t {
  from_first_to_last_use,
  from_start,  ///< written before the step: to its last use
  to_end,      ///< read after the step: from its first use
  kept,        ///< keeps its contents from step to step
};

/// An operation on operands. `make` gives the work, once addresses are known. `reads` and `writes` decide how long operands live and what can
/// be computed again: a missing one is a bug.
struct Draft {
  std::string what;
  std::vector<Operand> reads;
  std::vector<Operand> writes;
  std::function<Work(const Addresses&)> make;
  When when = When::always;
  int node = 0;
  int finished_node = -1;
  std::map<int, int> renamed{};  // slots that `make` names → slots where they are computed again
};

class ProgramBuilder {
 public:
  /// `working`: the type of working copies of parameters.
  ProgramBuilder(std::size_t parameters, Type working) : working_(working), parameter_layouts_(parameters) {}

  [[nodiscard]] Operand make(const TensorShape& shape, Type type, Life life = Life::from_first_to_last_use);
  [[nodiscard]] Operand make_bytes(std::size_t bytes, Life life = Life::from_first_to_last_use);
  [[nodiscard]] Operand make_floats(std::int64_t count);

  /// The operand is read after the step.
  void keep_to_end(const Operand& operand);

  /// Sets strides and extent of a parameter and its gradient in the arenas. Exactly once per parameter.
  void set_parameter_layout(int parameter, std::vector<std::int64_t> strides, std::int64_t extent);
  [[nodiscard]] Operand parameter(int parameter) const { return {.storage = Storage::parameter, .index = parameter}; }
  [[nodiscard]] Operand working(int parameter) const { return {.storage = Storage::working, .index = parameter}; }
  [[nodiscard]] Operand gradient(int parameter) const { return {.storage = Storage::gradient, .index = parameter}; }
  [[nodiscard]] Operand statistic(int statistic) const { return {.storage = Storage::statistic, .index = statistic}; }

  void add(Phase phase, Draft draft);
  /// The same with a function that makes a kernel from the addresses: [=](const Addresses& at) { return Cast{at(x), at(y)}; }. Operands that
  /// it names may be exchanged for others when they are computed again, so it asks `at` for them each time.
  template <class Make>
  void add_kernel(Phase phase, std::string what, std::vector<Operand> reads, std::vector<Operand> writes, Make make,
                  When when = When::always) {
    add(phase, kernel_draft(std::move(what), std::move(reads), std::move(writes), std::move(make), when));
  }
  template <class Make>
  [[nodiscard]] static Draft kernel_draft(std::string what, std::vector<Operand> reads, std::vector<Operand> writes,
                                          Make make, When when = When::always) {
    return {std::move(what), std::move(reads), std::move(writes),
            [make = std::move(make)](const Addresses& at) -> Work { return Kernel(make(at)); }, when};
  }
  /// to ← from, the same bytes.
  void copy(Phase phase, const Operand& from, const Operand& to, When when = When::always);

  /// How backward may compute `output`, which forward wrote, again: the same bits, from operands that cost less memory to keep. One call for
  /// each operation of a training step that writes a part of it. Takes effect where plan() is asked to recompute and nothing else writes
  /// `output` in forward.
  void add_recomputation(const Operand& output, Draft draft);
  /// Operations added from now on are of this node of the graph (Operation::node).
  void at_node(int node, std::string name);
  /// Marks the gradients of `node` as final after the last added backward operation.
  void finish_node(int node) { drafts(Phase::backward).back().finished_node = node; }
  /// Forward operations added from now on run in these passes: training for nodes that evaluation leaves out.
  void add_forward_for(When when) noexcept { forward_for_ = when; }

  /// The arena layout of all parameters, in canonical order.
  [[nodiscard]] nn::Layout arena_layout(const std::vector<nn::Parameter>& parameters) const;

  /// Places everything that lives between operations; returns the bytes of device memory that build() will allocate. `recompute`: backward
  /// uses recomputations, so that their outputs do not live from forward to backward. Nothing may be added afterwards.
  std::size_t plan(const nn::Layout& layout, bool recompute);
  /// Binds all operands to memory. REQUIRES plan(). Errors: those of the allocation.
  [[nodiscard]] core::Result<Program> build(const Arenas& arenas, core::Allocator& memory);
  /// The address of an operand of the workspace in a program that this built.
  [[nodiscard]] Pointer address_of(Program& program, const Operand& operand) const;

 private:
  struct Slot {
    std::size_t bytes = 0;
    Life life = Life::from_first_to_last_use;
  };
  struct ParameterLayout {
    std::vector<std::int64_t> strides;
    std::int64_t extent = 0;
  };
  [[nodiscard]] std::vector<Draft>& drafts(Phase phase) noexcept { return drafts_[static_cast<std::size_t>(phase)]; }
  [[nodiscard]] const std::vector<Draft>& drafts(Phase phase) const noexcept {
    return drafts_[static_cast<std::size_t>(phase)];
  }
  [[nodiscard]] bool can_recompute(int slot, const std::set<int>& kept) const;
  void recompute_in_backward();
  void place_slots();

  Type working_;
  std::vector<Slot> slots_;
  std::array<std::vector<Draft>, 3> drafts_;
  std::vector<std::optional<ParameterLayout>> parameter_layouts_;
  std::optional<Operand> working_copy_;               // of the whole arena; none in float32
  std::map<int, std::vector<Draft>> recomputations_;  // by the output's slot
  std::vector<std::size_t> offsets_;                  // bytes, of each slot
  std::size_t bytes_ = 0;
  When forward_for_ = When::always;
  int node_ = 0;
  std::string node_name_;
};

}  // namespace troupe::gpu
