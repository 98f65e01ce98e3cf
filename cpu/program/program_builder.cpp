#include "cpu/program/program_builder.hpp"

#include <algorithm>
#include <limits>
#include <stdexcept>

#include "nn/program/workspace.hpp"

namespace troupe::cpu {
namespace {

using Desc = dnnl::memory::desc;

std::size_t floats_of(const Desc& desc) { return (desc.get_size() + sizeof(float) - 1) / sizeof(float); }

bool is_blocked_format(const Desc& desc) { return desc.data.format_kind == dnnl_blocked; }

nn::TensorLayout tensor_layout(const nn::Parameter& parameter, const Desc& desc, std::size_t offset) {
  if (!is_blocked_format(desc)) throw std::logic_error("a parameter in an opaque format cannot be exchanged");
  const auto& blocking = desc.data.format_desc.blocking;
  nn::TensorLayout layout;
  layout.name = parameter.name;
  layout.shape = parameter.shape;
  layout.offset = static_cast<std::int64_t>(offset);
  layout.extent = static_cast<std::int64_t>(floats_of(desc));
  layout.strides.assign(blocking.strides, blocking.strides + desc.data.ndims);
  for (int i = 0; i < blocking.inner_nblks; ++i)
    layout.inner.push_back({static_cast<int>(blocking.inner_idxs[i]), blocking.inner_blks[i]});
  return layout;
}

/// oneDNN's name of a kind of primitive.
std::string name_of(dnnl::primitive::kind kind) {
  using Kind = dnnl::primitive::kind;
  switch (kind) {
    case Kind::reorder: return "reorder";
    case Kind::concat: return "concat";
    case Kind::sum: return "sum";
    case Kind::convolution: return "convolution";
    case Kind::eltwise: return "activation";
    case Kind::pooling: return "pooling";
    case Kind::lrn: return "lrn";
    case Kind::batch_normalization: return "batch norm";
    case Kind::inner_product:
    case Kind::matmul: return "product";
    case Kind::binary: return "sum";
    default: return "primitive";
  }
}

std::string implementation_of(const dnnl::primitive& primitive) {
  const char* name = nullptr;
  dnnl_primitive_desc_query(primitive.get_primitive_desc(), dnnl_query_impl_info_str, 0, &name);
  return name == nullptr ? "" : name;
}

}  // namespace

Desc plain_desc(const dnnl::memory::dims& dims, dnnl::memory::data_type type) {
  dnnl::memory::dims strides(dims.size(), 1);
  for (std::size_t d = dims.size(); d-- > 1;) strides[d - 1] = strides[d] * dims[d];
  return {dims, type, strides};
}

dnnl::memory::data_type type_of(const Desc& desc) { return static_cast<dnnl::memory::data_type>(desc.data.data_type); }

bool same_bytes(const Desc& a, const Desc& b) {
  if (a == b) return true;
  if (!is_blocked_format(a) || !is_blocked_format(b) || a.dims() != b.dims() || type_of(a) != type_of(b)) return false;
  const auto& x = a.data.format_desc.blocking;
  const auto& y = b.data.format_desc.blocking;
  if (x.inner_nblks != 0 || y.inner_nblks != 0) return false;
  for (int d = 0; d < a.data.ndims; ++d)
    if (a.data.dims[d] != 1 && x.strides[d] != y.strides[d]) return false;
  return true;
}

ProgramBuilder::ProgramBuilder(const dnnl::engine& engine, std::size_t parameters, bool canonical)
    : engine_(engine), canonical_(canonical), parameter_descs_(parameters) {}

Operand ProgramBuilder::make_floats(std::size_t count) {
  slots_.push_back({count, false});
  return {Place::workspace, static_cast<int>(slots_.size()) - 1, plain_desc({static_cast<std::int64_t>(count)})};
}

Operand ProgramBuilder::make(const Desc& desc) { return make_floats(floats_of(desc)).viewed_as(desc); }

Operand ProgramBuilder::keep(const Desc& desc) {
  const Operand operand = make(desc);
  slots_.back().kept = true;
  return operand;
}

void ProgramBuilder::set_parameter_layout(int parameter, const Desc& desc) {
  parameter_descs_[static_cast<std::size_t>(parameter)] = desc;
}

Operand ProgramBuilder::in_arena(Place place, int parameter) const {
  const Desc& desc = parameter_descs_[static_cast<std::size_t>(parameter)].value();
  return {place, parameter, canonical_ ? plain_desc(desc.dims()) : desc};
}

Operand ProgramBuilder::parameter(int parameter) {
  return parameter_as(parameter, parameter_descs_[static_cast<std::size_t>(parameter)].value());
}

Operand ProgramBuilder::gradient(int parameter) {
  const Operand arena = in_arena(Place::gradient, parameter);
  const Desc& wanted = parameter_descs_[static_cast<std::size_t>(parameter)].value();
  if (same_bytes(arena.desc, wanted)) return arena.viewed_as(wanted);
  const auto known = gradients_.find(parameter);
  return known != gradients_.end() ? known->second : gradients_.emplace(parameter, make(wanted)).first->second;
}

Operand ProgramBuilder::parameter_as(int parameter, const Desc& wanted) {
  Operand master = in_arena(Place::parameter, parameter);
  if (master.desc.dims() != wanted.dims()) master = master.viewed_as(plain_desc(wanted.dims()));
  if (same_bytes(master.desc, wanted)) return master.viewed_as(wanted);
  for (const auto& [of, copy] : working_copies_)
    if (of == parameter && copy.desc == wanted) return copy;
  const Operand working = keep(wanted);
  copy(Phase::refresh, master, working);
  working_copies_.emplace_back(parameter, working);
  return working;
}

Operand ProgramBuilder::statistic(int statistic, std::int64_t channels) const {
  return {Place::statistic, statistic, plain_desc({channels})};
}

ProgramBuilder::Draft ProgramBuilder::draft_of(dnnl::primitive primitive, Arguments arguments, const Desc& scratchpad) {
  if (scratchpad.get_size() > 0) arguments.emplace_back(DNNL_ARG_SCRATCHPAD, make(scratchpad));
  Draft draft;
  draft.primitive = std::move(primitive);
  draft.arguments = std::move(arguments);
  draft.node = node_;
  return draft;
}

void ProgramBuilder::add(Phase phase, dnnl::primitive primitive, Arguments arguments, const Desc& scratchpad,
                         When when) {
  if (phase == Phase::forward && when == When::evaluation && forward_for_ == When::training) return;
  Draft draft = draft_of(std::move(primitive), std::move(arguments), scratchpad);
  draft.when = phase == Phase::forward && when == When::always ? forward_for_ : when;
  drafts(phase).push_back(std::move(draft));
}

void ProgramBuilder::add(Phase phase, KernelCall kernel, std::initializer_list<Operand> data) {
  Draft draft;
  draft.kernel = kernel;
  draft.data = data;
  draft.node = node_;
  if (phase == Phase::forward) draft.when = forward_for_;
  drafts(phase).push_back(std::move(draft));
}

void ProgramBuilder::finish_node(int node) {
  for (const auto& [parameter, working] : gradients_)
    copy(Phase::backward, working, in_arena(Place::gradient, parameter));
  gradients_.clear();
  drafts(Phase::backward).back().finished_node = node;
}

Operand ProgramBuilder::convert(Phase phase, const Operand& operand, const Desc& wanted) {
  if (same_bytes(operand.desc, wanted)) return operand.viewed_as(wanted);
  if (operand.desc.dims() != wanted.dims()) {  // through the plain order, which is the same for both
    const auto type = type_of(operand.desc);
    const Operand plain = convert(phase, operand, plain_desc(operand.desc.dims(), type));
    return convert(phase, plain.viewed_as(plain_desc(wanted.dims(), type)), wanted);
  }
  const Operand converted = make(wanted);
  copy(phase, operand, converted);
  return converted;
}

void ProgramBuilder::copy(Phase phase, const Operand& from, const Operand& to) {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  dnnl::reorder::primitive_desc reorder;
  try {
    reorder = {engine_, from.desc, engine_, to.desc, attributes};
  } catch (const dnnl::error&) {
    // oneDNN packs weights for Winograd's algorithm from the plain order only.
    const Desc plain = plain_desc(from.desc.dims(), type_of(from.desc));
    if (from.desc == plain || to.desc == plain) throw;
    const Operand between = phase == Phase::refresh ? keep(plain) : make(plain);
    copy(phase, from, between);
    return copy(phase, between, to);
  }
  add(phase, dnnl::reorder(reorder), {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}}, reorder.scratchpad_desc());
}

void ProgramBuilder::add_head(const Operand& outputs, const Operand& output_gradients, double weight) {
  heads_.push_back({outputs, output_gradients, weight});
}

nn::Layout ProgramBuilder::arena_layout(const std::vector<nn::Parameter>& parameters) const {
  std::vector<nn::TensorLayout> tensors;
  std::size_t offset = 0;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    tensors.push_back(tensor_layout(parameters[i], parameter_descs_[i].value(), offset));
    offset += core::align_floats(static_cast<std::size_t>(tensors.back().extent));
  }
  return {std::move(tensors), offset};
}

std::vector<std::size_t> ProgramBuilder::plan_slots(std::size_t& floats) const {
  const int loss_time = static_cast<int>(drafts_[1].size());
  const int end = loss_time + 1 + static_cast<int>(drafts_[2].size());
  std::vector<nn::Lifetime> lifetimes;
  for (const Slot& slot : slots_)
    lifetimes.push_back({slot.floats, slot.kept ? 0 : std::numeric_limits<int>::max(), slot.kept ? end : -1});

  const auto use = [&](const Operand& operand, int time) {
    if (operand.place != Place::workspace) return;
    auto& life = lifetimes[static_cast<std::size_t>(operand.index)];
    life.first = std::min(life.first, time);
    life.last = std::max(life.last, time);
  };
  const auto walk = [&](const std::vector<Draft>& list, int time, int advance) {
    for (const Draft& draft : list) {
      for (const auto& [argument, operand] : draft.arguments) use(operand, time);
      for (const Operand& operand : draft.data) use(operand, time);
      time += advance;
    }
  };
  walk(drafts_[0], 0, 0);  // refresh ends before the first operation of a step
  walk(drafts_[1], 0, 1);
  for (const HeadDraft& head : heads_) {
    use(head.outputs, loss_time);
    use(head.gradients, loss_time);
  }
  use(heads_.back().outputs, end);  // Replica::outputs() reads them after the step
  walk(drafts_[2], loss_time + 1, 1);

  for (nn::Lifetime& life : lifetimes)
    if (life.last < life.first) life = {0, 0, 0};  // made but never used
  nn::Placement placement = nn::place(lifetimes);
  floats = placement.floats;
  return std::move(placement.offsets);
}

core::Result<Program> ProgramBuilder::build(const Arenas& arenas, bool recompute) && {
  if (recompute) recompute_in_backward();
  std::size_t floats = 0;
  const std::vector<std::size_t> offsets = plan_slots(floats);
  static core::HostAllocator allocator;
  auto workspace = core::Buffer::allocate(allocator, floats, "activations of a step");
  if (!workspace) return tl::unexpected(std::move(workspace.error()));

  Program program;
  program.workspace = std::move(*workspace);
  const auto address = [&](const Operand& operand) -> float* {
    const auto index = static_cast<std::size_t>(operand.index);
    switch (operand.place) {
      case Place::workspace: return program.workspace.data() + offsets[index];
      case Place::parameter: return arenas.parameters + arenas.layout.tensors()[index].offset;
      case Place::gradient: return arenas.gradients + arenas.layout.tensors()[index].offset;
      case Place::statistic: return arenas.statistics + arenas.statistics_layout.tensors()[index].offset;
      case Place::input:
      case Place::none: break;
    }
    return nullptr;
  };
  const auto bind = [&](std::vector<Draft>& list) {
    std::vector<Operation> operations;
    for (Draft& draft : list) {
      Operation operation;
      operation.kernel = draft.kernel;
      operation.when = draft.when;
      operation.node = draft.node;
      operation.finished_node = draft.finished_node;
      const bool own = draft.kernel.run != nullptr;
      operation.what = own ? draft.kernel.name : name_of(draft.primitive.get_kind());
      if (!own) operation.implementation = implementation_of(draft.primitive);
      for (const auto& [argument, operand] : draft.arguments)
        if (argument != DNNL_ARG_SCRATCHPAD) operation.bytes += static_cast<double>(operand.desc.get_size());
      for (const Operand& operand : draft.data)
        if (operand) operation.bytes += static_cast<double>(operand.desc.get_size());
      operation.primitive = std::move(draft.primitive);
      for (const auto& [argument, operand] : draft.arguments) {
        dnnl::memory memory(operand.desc, engine_, address(operand));
        operation.arguments.push_back({argument, memory.get()});
        if (operand.place == Place::input) program.inputs.push_back(memory);
        program.memories.push_back(std::move(memory));
      }
      for (std::size_t i = 0; i < draft.data.size(); ++i) operation.kernel.data[i] = address(draft.data[i]);
      operations.push_back(std::move(operation));
    }
    return operations;
  };
  program.refresh = bind(drafts_[0]);
  program.forward = bind(drafts_[1]);
  program.backward = bind(drafts_[2]);
  for (const HeadDraft& head : heads_)
    program.heads.push_back({address(head.outputs), address(head.gradients), head.weight});
  return program;
}

}  // namespace troupe::cpu
