#include "experiment/state/checkpoint.hpp"

#include <algorithm>
#include <charconv>
#include <iterator>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "nn/checkpoint/tensors.hpp"
#include "nn/layout.hpp"

namespace troupe::experiment {

std::string optimizer_prefix(int worker, int k) {
  std::string prefix = worker < 0 ? "" : nn::worker_prefix(worker);
  return prefix.append(k == 0 ? nn::kVelocityPrefix : nn::kSquarePrefix);
}

std::string own_state_name(std::uint32_t worker) { return fmt::format("worker.{}.optimizer", worker); }

std::string server_state_prefix(int k) { return "server.state." + std::to_string(k) + "."; }

std::string worker_slot_prefix(std::uint32_t worker, strategies::Slot slot) {
  return fmt::format("worker.{}.slot.{}.{}.", worker, static_cast<int>(slot.kind), slot.index);
}

std::string peer_message_prefix(std::uint32_t worker, std::uint32_t from) {
  return fmt::format("worker.{}.letter.{}.", worker, from);
}

namespace {

struct Parts {
  std::vector<nn::TensorView> tensors;
  nn::Metadata metadata;
};

Parts parts_of(const Checkpoint& checkpoint) {
  Parts parts;
  std::string prefixes;
  for (const auto& [prefix, vector] : checkpoint.vectors) {
    for (auto& tensor : nn::canonical_tensors(*checkpoint.graph, *vector, prefix))
      parts.tensors.push_back(std::move(tensor));
    if (!prefix.empty()) prefixes += (prefixes.empty() ? "" : " ") + prefix;
  }
  for (auto& tensor : nn::statistics_tensors(*checkpoint.graph, checkpoint.statistics))
    parts.tensors.push_back(std::move(tensor));
  std::string own_states;
  for (const auto& [worker, state] : checkpoint.own_states) {
    const auto name = own_state_name(worker);
    parts.tensors.push_back({name, nn::DType::u8, {static_cast<std::int64_t>(state->size())}, *state});
    own_states += (own_states.empty() ? "" : " ") + name;
  }
  parts.metadata = {{"model", checkpoint.graph->name()},   {"strategy", checkpoint.strategy},
                    {"optimizer", checkpoint.optimizer},   {"server_optimizer", checkpoint.server_optimizer},
                    {"leases", checkpoint.leases},         {"state", prefixes},
                    {"totals", to_text(checkpoint.totals)}};
  if (!own_states.empty()) parts.metadata[std::string(nn::kOwnStatesKey)] = own_states;
  if (!checkpoint.data.empty()) parts.metadata["data"] = checkpoint.data;
  if (!checkpoint.validation.empty()) parts.metadata["validation"] = checkpoint.validation;
  if (!checkpoint.config.empty()) parts.metadata["config"] = checkpoint.config;
  if (!checkpoint.optimizer_steps.empty())
    parts.metadata["optimizer_steps"] = nlohmann::json(checkpoint.optimizer_steps).dump();
  if (!checkpoint.members.empty()) parts.metadata["members"] = nlohmann::json(checkpoint.members).dump();
  return parts;
}

}  // namespace

core::Result<std::string> save(nn::CheckpointStore& store, const Checkpoint& checkpoint) {
  const auto parts = parts_of(checkpoint);
  return store.save(static_cast<std::int64_t>(checkpoint.step), parts.tensors, parts.metadata);
}

namespace {

std::vector<std::byte> bytes_of(const nn::EncodedSafetensors& file) {
  std::vector<std::byte> bytes;
  std::size_t size = 0;
  for (const auto& part : file.parts()) size += part.size();
  bytes.reserve(size);
  for (const auto& part : file.parts()) bytes.insert(bytes.end(), part.begin(), part.end());
  return bytes;
}

}  // namespace

core::Result<std::vector<std::byte>> encode(const Checkpoint& checkpoint) {
  const auto parts = parts_of(checkpoint);
  return nn::encode_checkpoint(static_cast<std::int64_t>(checkpoint.step), parts.tensors, parts.metadata).map(bytes_of);
}

core::Result<std::vector<std::byte>> encode_for_newcomer(const std::string& path) {
  // No other tensor of a checkpoint is of bytes: a program's parameters and statistics are float32.
  const auto file = nn::read_selected(path, [](const nn::TensorView& tensor) { return tensor.dtype != nn::DType::u8; });
  if (!file) return tl::unexpected(file.error());
  const auto left_out = nn::own_state_names(*file);
  std::vector<nn::TensorView> tensors;
  std::ranges::copy_if(file->tensors(), std::back_inserter(tensors),
                       [&](const auto& tensor) { return std::ranges::find(left_out, tensor.name) == left_out.end(); });
  auto metadata = file->metadata();
  metadata.erase(std::string(nn::kOwnStatesKey));
  return nn::encode_safetensors(tensors, metadata).map(bytes_of);
}

core::Result<void> save_start(const std::string& path, const Checkpoint& checkpoint, nn::FileSystem& files) {
  const auto parts = parts_of(checkpoint);
  const auto slash = path.rfind('/');
  return nn::write_checkpoint(files, path.substr(0, slash), path.substr(slash + 1),
                              static_cast<std::int64_t>(checkpoint.step), parts.tensors, parts.metadata);
}

namespace {

/// Reads a field that may be missing.
template <class Value>
core::Result<void> read_map(const nn::SafetensorsFile& file, const char* key, std::map<std::string, Value>& into) {
  const auto text = file.text(key);
  if (!text) return {};
  try {
    nlohmann::json::parse(*text).get_to(into);
    return {};
  } catch (const nlohmann::json::exception&) {
    return core::fail(core::Errc::corrupt,
                      fmt::format("{}: the field \"{}\" is not what a run writes", file.origin(), key));
  }
}

/// The states that the metadata name.
core::Result<void> read_own_states(const nn::SafetensorsFile& file, std::map<std::uint32_t, OwnState>& into) {
  for (const auto& name : nn::own_state_names(file)) {
    std::uint32_t worker = 0;
    const auto digits = std::string_view(name).substr(std::min(name.find('.') + 1, name.size()));
    (void)std::from_chars(digits.data(), digits.data() + digits.size(), worker);
    const auto* const tensor = file.find(name);
    if (own_state_name(worker) != name || tensor == nullptr || tensor->dtype != nn::DType::u8 ||
        tensor->shape.size() != 1)
      return core::fail(
          core::Errc::corrupt,
          fmt::format("{}: the state of an optimizer, \"{}\", is not what a run writes", file.origin(), name));
    into[worker] = std::make_shared<const std::vector<std::byte>>(tensor->data.begin(), tensor->data.end());
  }
  return {};
}

}  // namespace

core::Result<Checkpoint> load(const nn::SafetensorsFile& file, std::shared_ptr<const nn::Graph> graph) {
  Checkpoint checkpoint;
  checkpoint.graph = graph;
  std::string prefixes;
  std::string totals;
  for (const auto& [key, field] : {std::pair{"strategy", &checkpoint.strategy},
                                   {"optimizer", &checkpoint.optimizer},
                                   {"server_optimizer", &checkpoint.server_optimizer},
                                   {"leases", &checkpoint.leases},
                                   {"state", &prefixes},
                                   {"totals", &totals}}) {
    auto text = file.text(key);
    if (!text) return tl::unexpected(text.error());
    *field = std::move(*text);
  }
  if (const auto data = file.text("data")) checkpoint.data = *data;
  if (const auto validation = file.text("validation")) checkpoint.validation = *validation;
  auto parsed = parse_totals(totals);
  if (!parsed) return core::fail(parsed.error().code, fmt::format("{}: {}", file.origin(), parsed.error().message));
  checkpoint.totals = std::move(*parsed);
  if (file.metadata().contains("config")) checkpoint.config = file.metadata().at("config");
  if (auto read = read_map(file, "members", checkpoint.members); !read) return tl::unexpected(read.error());
  if (auto read = read_map(file, "optimizer_steps", checkpoint.optimizer_steps); !read)
    return tl::unexpected(read.error());
  if (auto read = read_own_states(file, checkpoint.own_states); !read) return tl::unexpected(read.error());
  checkpoint.step = checkpoint.totals.steps;
  std::vector<std::string> all{""};
  for (std::size_t begin = 0; begin < prefixes.size();) {
    const auto end = std::min(prefixes.find(' ', begin), prefixes.size());
    all.push_back(prefixes.substr(begin, end - begin));
    begin = end + 1;
  }
  for (const auto& prefix : all) {
    auto vector = std::make_shared<std::vector<float>>(static_cast<std::size_t>(graph->parameter_count()));
    if (auto read = nn::canonical_from(file, *graph, *vector, prefix); !read) return tl::unexpected(read.error());
    checkpoint.vectors.emplace(prefix, std::move(vector));
  }
  checkpoint.statistics.resize(nn::statistics_layout(*graph).canonical_floats());
  if (auto read = nn::statistics_from(file, *graph, checkpoint.statistics); !read) return tl::unexpected(read.error());
  return checkpoint;
}

}  // namespace troupe::experiment
