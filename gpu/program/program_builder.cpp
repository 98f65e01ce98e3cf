#include "gpu/program/program_builder.hpp"

#include <algorithm>
#include <limits>
#include <stdexcept>

#include <fmt/format.h>

#include "nn/program/workspace.hpp"

namespace troupe::gpu {
namespace {

/// Libraries want memory that is aligned to this; it is a multiple of nn::place's own alignment.
constexpr std::size_t kAlignment = 256;
static_assert(kAlignment % core::kAlignment == 0);

std::size_t aligned(std::size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

}  // namespace

Operand ProgramBuilder::make_bytes(std::size_t bytes, Life life) {
  slots_.push_back({bytes, life});
  return {.storage = Storage::workspace, .index = static_cast<int>(slots_.size()) - 1};
}

Operand ProgramBuilder::make(const TensorShape& shape, Type type, Life life) {
  Operand operand = make_bytes(static_cast<std::size_t>(shape.size()) * bytes_of(type), life);
  operand.shape = shape;
  operand.type = type;
  return operand;
}

Operand ProgramBuilder::make_floats(std::int64_t count) { return make({.batch = 1, .channels = count}, Type::fp32); }

void ProgramBuilder::keep_to_end(const Operand& operand) {
  Life& life = slots_[static_cast<std::size_t>(operand.index)].life;
  life = life == Life::from_start || life == Life::kept ? Life::kept : Life::to_end;
}

void ProgramBuilder::set_parameter_layout(int parameter, std::vector<std::int64_t> strides, std::int64_t extent) {
  parameter_layouts_[static_cast<std::size_t>(parameter)] = {std::move(strides), extent};
}

void ProgramBuilder::at_node(int node, std::string name) {
  node_ = node;
  node_name_ = std::move(name);
}

void ProgramBuilder::add(Phase phase, Draft draft) {
  if (phase == Phase::forward && draft.when == When::evaluation && forward_for_ == When::training) return;
  if (phase == Phase::forward && draft.when == When::always) draft.when = forward_for_;
  draft.node = node_;
  draft.what = node_name_ + " " + draft.what;
  drafts(phase).push_back(std::move(draft));
}

void ProgramBuilder::copy(Phase phase, const Operand& from, const Operand& to, When when) {
  add(phase, {"copy",
              {from},
              {to},
              [=](const Addresses& at) -> Work {
                return CopyWork{at(to), at(from), to.bytes()};
              },
              when});
}

void ProgramBuilder::add_recomputation(const Operand& output, Draft draft) {
  draft.node = node_;
  draft.what = node_name_ + " " + draft.what + " again";
  recomputations_[output.index].push_back(std::move(draft));
}

nn::Layout ProgramBuilder::arena_layout(const std::vector<nn::Parameter>& parameters) const {
  std::vector<nn::TensorLayout> tensors;
  std::size_t offset = 0;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const ParameterLayout& layout = parameter_layouts_[i].value();
    tensors.push_back({parameters[i].name,
                       parameters[i].shape,
                       static_cast<std::int64_t>(offset),
                       layout.extent,
                       layout.strides,
                       {}});
    offset += core::align_floats(static_cast<std::size_t>(layout.extent));
  }
  return {std::move(tensors), offset};
}

std::size_t ProgramBuilder::plan(const nn::Layout& layout, bool recompute) {
  if (recompute) recompute_in_backward();
  if (working_ != Type::fp32 && layout.arena_floats() > 0) {
    const auto count = static_cast<std::int64_t>(layout.arena_floats());
    working_copy_ = make({.batch = 1, .channels = count}, working_, Life::kept);
    const Operand copy = *working_copy_;
    Draft draft = kernel_draft("working copies of parameters", {}, {copy}, [=, type = working_](const Addresses& at) {
      return Cast{at(Operand{.storage = Storage::parameter, .index = -1}), at(copy), Type::fp32, type, count};
    });
    drafts(Phase::refresh).push_back(std::move(draft));
  }
  place_slots();
  return bytes_;
}

void ProgramBuilder::place_slots() {
  const auto forward_end = static_cast<int>(drafts(Phase::forward).size());
  const int end = forward_end + static_cast<int>(drafts(Phase::backward).size());
  constexpr int kUnused = std::numeric_limits<int>::max();
  std::vector<nn::Lifetime> lifetimes;
  for (const Slot& slot : slots_) {
    const bool early = slot.life == Life::from_start || slot.life == Life::kept;
    const bool late = slot.life == Life::to_end || slot.life == Life::kept;
    lifetimes.push_back({aligned(slot.bytes) / sizeof(float), early ? 0 : kUnused, late ? end : -1});
  }
  const auto walk = [&](const std::vector<Draft>& list, int time) {
    for (const Draft& draft : list) {
      for (const auto* operands : {&draft.reads, &draft.writes})
        for (const Operand& operand : *operands) {
          if (operand.storage != Storage::workspace) continue;
          auto& life = lifetimes[static_cast<std::size_t>(operand.index)];
          life.first = std::min(life.first, time);
          life.last = std::max(life.last, time);
        }
      ++time;
    }
  };
  walk(drafts(Phase::forward), 0);
  walk(drafts(Phase::backward), forward_end);
  for (nn::Lifetime& life : lifetimes)
    if (life.last < life.first) life = {0, 0, 0};  // made but never used
  const nn::Placement placement = nn::place(lifetimes);
  offsets_.clear();
  for (const std::size_t floats : placement.offsets) offsets_.push_back(floats * sizeof(float));
  bytes_ = placement.floats * sizeof(float);
}

Pointer ProgramBuilder::address_of(Program& program, const Operand& operand) const {
  auto* base = reinterpret_cast<std::byte*>(program.workspace.data());
  return {base + offsets_[static_cast<std::size_t>(operand.index)] + operand.offset};
}

core::Result<Program> ProgramBuilder::build(const Arenas& arenas, core::Allocator& memory) {
  Program program;
  auto workspace = core::Buffer::allocate(memory, bytes_ / sizeof(float), "activations of a step");
  if (!workspace) return tl::unexpected(std::move(workspace.error()));
  program.workspace = std::move(*workspace);

  const auto parameter_offset = [&](int index) {
    return index < 0 ? 0 : arenas.layout.tensors()[static_cast<std::size_t>(index)].offset;  // -1: the whole arena
  };
  const auto address = [&](const Operand& operand) -> Pointer {
    switch (operand.storage) {
      case Storage::workspace: return address_of(program, operand);
      case Storage::working:
        if (working_copy_) {
          auto* base = static_cast<std::byte*>(address_of(program, *working_copy_).address);
          return {base + static_cast<std::size_t>(parameter_offset(operand.index)) * bytes_of(working_)};
        }
        [[fallthrough]];
      case Storage::parameter: return {arenas.parameters + parameter_offset(operand.index)};
      case Storage::gradient: return {arenas.gradients + parameter_offset(operand.index)};
      case Storage::statistic:
        return {arenas.statistics + arenas.statistics_layout.tensors()[static_cast<std::size_t>(operand.index)].offset};
      case Storage::none: break;
    }
    return {};
  };
  const auto bind = [&](const std::vector<Draft>& list) {
    std::vector<Operation> operations;
    for (const Draft& draft : list) {
      const Addresses addresses = [&](const Operand& operand) {
        Operand there = operand;
        if (operand.storage == Storage::workspace)
          if (const auto renamed = draft.renamed.find(operand.index); renamed != draft.renamed.end())
            there.index = renamed->second;
        return address(there);
      };
      operations.push_back({draft.make(addresses), draft.when, draft.node, draft.what, draft.finished_node});
    }
    return operations;
  };
  program.refresh = bind(drafts(Phase::refresh));
  program.forward = bind(drafts(Phase::forward));
  program.backward = bind(drafts(Phase::backward));
  return program;
}

}  // namespace troupe::gpu
