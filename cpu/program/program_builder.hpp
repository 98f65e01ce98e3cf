/// Collects the operations of a step on symbolic operands, then plans the workspace and binds everything to memory.
/// Compile time only. Thread rule: one thread.
#pragma once

#include <initializer_list>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include <dnnl.hpp>

#include "core/error.hpp"
#include "cpu/program/program.hpp"
#include "nn/layout.hpp"

namespace troupe::cpu {

enum class Phase : std::uint8_t { refresh, forward, backward };
enum class Place : std::uint8_t { none, input, workspace, parameter, gradient, statistic };

/// A tensor without an address yet: a slot of the workspace, a tensor of an arena, or the batch's images.
struct Operand {
  Place place = Place::none;
  int index = 0;  // slot, parameter or statistic
  dnnl::memory::desc desc;
  [[nodiscard]] explicit operator bool() const noexcept { return place != Place::none; }
  [[nodiscard]] Operand viewed_as(const dnnl::memory::desc& other) const { return {place, index, other}; }
};

/// The memory of parameters, gradients (null if not training) and statistics (null if there are none).
struct Arenas {
  const nn::Layout& layout;
  const nn::Layout& statistics_layout;
  float* parameters = nullptr;
  float* gradients = nullptr;
  float* statistics = nullptr;
};

class ProgramBuilder {
 public:
  using Arguments = std::vector<std::pair<int, Operand>>;  // DNNL_ARG_… → operand

  /// `canonical`: the arenas are plain, whatever the layers ask for (CompileOptions::canonical_arenas).
  ProgramBuilder(const dnnl::engine& engine, std::size_t parameters, bool canonical = false);

  /// A new tensor that lives from its first to its last use in a step.
  [[nodiscard]] Operand make(const dnnl::memory::desc& desc);
  [[nodiscard]] Operand make_floats(std::size_t count);
  /// A new tensor that keeps its contents from step to step.
  [[nodiscard]] Operand keep(const dnnl::memory::desc& desc);

  /// Sets the layout of a parameter and its gradient in the arenas. Exactly once per parameter. With canonical arenas it is the layout of
  /// working copies: of the parameter one that is rebuilt after the arena changed, of the gradient one that finish_node() copies there.
  void set_parameter_layout(int parameter, const dnnl::memory::desc& desc);
  /// Both in that layout.
  [[nodiscard]] Operand parameter(int parameter);
  [[nodiscard]] Operand gradient(int parameter);
  /// The parameter in another layout: itself, or a working copy that is rebuilt after the arena changed. `wanted` may have other
  /// dimensions if the arena's layout is plain.
  [[nodiscard]] Operand parameter_as(int parameter, const dnnl::memory::desc& wanted);
  /// A tensor of the statistics arena.
  [[nodiscard]] Operand statistic(int statistic, std::int64_t channels) const;

  void add(Phase phase, dnnl::primitive primitive, Arguments arguments, const dnnl::memory::desc& scratchpad,
           When when = When::always);
  void add(Phase phase, KernelCall kernel, std::initializer_list<Operand> data);
  /// How backward may compute `output`, which forward wrote, again: the same bits, from operands that cost less memory to keep. Takes
  /// effect where build() is asked to recompute and forward writes `output` once.
  void add_recomputation(const Operand& output, dnnl::primitive primitive, Arguments arguments,
                         const dnnl::memory::desc& scratchpad);
  /// Operations added from now on are of this node of the graph (Operation::node).
  void at_node(int node) noexcept { node_ = node; }
  /// Marks the gradients of `node` as final after the last added backward operation.
  void finish_node(int node);

  /// `operand` with the layout and dimensions of `wanted`: itself, a view of it, or a reordered copy. Dimensions may differ if the
  /// plain order of elements is the same ([n, c, h, w] and [n, c·h·w]).
  [[nodiscard]] Operand convert(Phase phase, const Operand& operand, const dnnl::memory::desc& wanted);
  /// Copies between tensors of the same dimensions, from one layout to the other.
  void copy(Phase phase, const Operand& from, const Operand& to);

  /// Adds a loss between forward and backward, with the tensors that it reads and writes. The last one added is the main one.
  void add_head(const Operand& outputs, const Operand& output_gradients, double weight);
  /// Forward operations added from now on run in these passes: training for nodes that evaluation leaves out.
  void add_forward_for(When when) noexcept { forward_for_ = when; }

  /// The arena layout of all parameters, in canonical order.
  [[nodiscard]] nn::Layout arena_layout(const std::vector<nn::Parameter>& parameters) const;

  /// Plans the workspace and binds all operands. `recompute`: backward uses recomputations, so that their outputs do not live from
  /// forward to backward. Errors: those of the workspace's allocation.
  [[nodiscard]] core::Result<Program> build(const Arenas& arenas, bool recompute) &&;

 private:
  struct Draft {
    dnnl::primitive primitive;
    Arguments arguments;
    KernelCall kernel;
    std::vector<Operand> data;
    When when = When::always;
    int node = 0;
    int finished_node = -1;
  };
  struct Slot {
    std::size_t floats = 0;
    bool kept = false;
  };
  struct Recomputation {
    Draft draft;
    Operand output;
  };
  [[nodiscard]] Operand in_arena(Place place, int parameter) const;
  [[nodiscard]] Draft draft_of(dnnl::primitive primitive, Arguments arguments, const dnnl::memory::desc& scratchpad);
  [[nodiscard]] bool can_recompute(int slot, const std::set<int>& kept) const;
  void recompute_in_backward();
  std::vector<Draft>& drafts(Phase phase) noexcept { return drafts_[static_cast<std::size_t>(phase)]; }
  [[nodiscard]] std::vector<std::size_t> plan_slots(std::size_t& floats) const;

  dnnl::engine engine_;
  std::vector<Slot> slots_;
  std::array<std::vector<Draft>, 3> drafts_;
  bool canonical_;
  std::vector<std::optional<dnnl::memory::desc>> parameter_descs_;  // as set
  std::map<int, Operand> gradients_;  // working copies that no finish_node() has copied to the arena yet
  std::vector<std::pair<int, Operand>> working_copies_;
  std::map<int, Recomputation> recomputations_;  // by the output's slot
  struct HeadDraft {
    Operand outputs;
    Operand gradients;
    double weight = 1;
  };
  std::vector<HeadDraft> heads_;
  When forward_for_ = When::always;
  int node_ = 0;
};

/// Dense row-major memory of these dimensions.
[[nodiscard]] dnnl::memory::desc plain_desc(const dnnl::memory::dims& dims,
                                            dnnl::memory::data_type type = dnnl::memory::data_type::f32);
[[nodiscard]] dnnl::memory::data_type type_of(const dnnl::memory::desc& desc);
/// True if both describe the same bytes of one type in the same order (strides of extents of 1 do not count).
[[nodiscard]] bool same_bytes(const dnnl::memory::desc& a, const dnnl::memory::desc& b);

}  // namespace troupe::cpu
