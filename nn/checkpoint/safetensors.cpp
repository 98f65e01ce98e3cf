#include "nn/checkpoint/safetensors.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "nn/checkpoint/safetensors_header.hpp"
#include "nn/hash.hpp"

namespace troupe::nn {
namespace {

struct DTypeRow {
  DType dtype;
  std::string_view name;
  std::size_t bytes;
};
constexpr std::array<DTypeRow, 13> kDTypes{{{DType::boolean, "BOOL", 1},
                                            {DType::u8, "U8", 1},
                                            {DType::i8, "I8", 1},
                                            {DType::u16, "U16", 2},
                                            {DType::i16, "I16", 2},
                                            {DType::f16, "F16", 2},
                                            {DType::bf16, "BF16", 2},
                                            {DType::u32, "U32", 4},
                                            {DType::i32, "I32", 4},
                                            {DType::f32, "F32", 4},
                                            {DType::u64, "U64", 8},
                                            {DType::i64, "I64", 8},
                                            {DType::f64, "F64", 8}}};

core::Result<void> check_encodable(std::span<const TensorView> tensors, const Metadata& metadata) {
  const auto refuse = [](std::string why) { return core::fail(core::Errc::internal, std::move(why)); };
  std::vector<std::string_view> names;
  for (const auto& tensor : tensors) {
    if (tensor.name == kMetadataKey) return refuse(in_tensor(tensor.name, "the name is reserved"));
    if (tensor_bytes(tensor.dtype, tensor.shape) != tensor.data.size())
      return refuse(in_tensor(tensor.name, fmt::format("{} bytes are not {} {}", tensor.data.size(),
                                                       to_string(tensor.dtype), tensor.shape)));
    names.push_back(tensor.name);
  }
  std::ranges::sort(names);
  if (const auto twice = std::ranges::adjacent_find(names); twice != names.end())
    return refuse(in_tensor(std::string(*twice), "the name is there twice"));
  for (const auto& [key, value] : metadata)
    if (key == kHeaderChecksumKey || key.starts_with(kTensorChecksumPrefix))
      return refuse(fmt::format("metadata key \"{}\" is reserved", key));
  return {};
}

/// The header's JSON with zeros as its own checksum.
std::string header_json(std::span<const TensorView* const> tensors, const Metadata& metadata) {
  std::string json = fmt::format("{{{}:{{{}:{}", quoted(std::string(kMetadataKey)),
                                 quoted(std::string(kHeaderChecksumKey)), quoted(std::string(kChecksumDigits, '0')));
  for (const auto& [key, value] : metadata) json += fmt::format(",{}:{}", quoted(key), quoted(value));
  for (const auto* tensor : tensors)
    json +=
        fmt::format(",{}:\"{}\"", quoted(std::string(kTensorChecksumPrefix) + tensor->name), hash128_hex(tensor->data));
  json += '}';
  std::size_t offset = 0;
  for (const auto* tensor : tensors) {
    json += fmt::format(",{}:{{\"dtype\":\"{}\",\"shape\":[{}],\"data_offsets\":[{},{}]}}", quoted(tensor->name),
                        to_string(tensor->dtype), fmt::join(tensor->shape, ","), offset, offset + tensor->data.size());
    offset += tensor->data.size();
  }
  json += '}';
  json.resize((json.size() + kLengthBytes - 1) / kLengthBytes * kLengthBytes, ' ');  // the data starts 8-byte aligned
  return json;
}

}  // namespace

std::string_view to_string(DType dtype) noexcept { return std::ranges::find(kDTypes, dtype, &DTypeRow::dtype)->name; }

std::size_t byte_size(DType dtype) noexcept { return std::ranges::find(kDTypes, dtype, &DTypeRow::dtype)->bytes; }

std::optional<DType> parse_dtype(std::string_view name) noexcept {
  const auto row = std::ranges::find(kDTypes, name, &DTypeRow::name);
  if (row == kDTypes.end()) return std::nullopt;
  return row->dtype;
}

const TensorView* SafetensorsFile::find(std::string_view name) const noexcept {
  const auto it = std::ranges::find(tensors_, name, &TensorView::name);
  return it == tensors_.end() ? nullptr : &*it;
}

core::Result<std::string> SafetensorsFile::text(const std::string& key) const {
  const auto it = metadata_.find(key);
  if (it == metadata_.end())
    return core::fail(core::Errc::corrupt, fmt::format("{}: metadata \"{}\" is missing", origin_, key));
  return it->second;
}

core::Result<void> SafetensorsFile::copy_floats(const std::string& name, const std::vector<std::int64_t>& shape,
                                                core::Span out) const {
  const auto refuse = [&](const std::string& why) {
    return core::fail(core::Errc::config, fmt::format("{}: {}: is it of the model that the config describes?", origin_,
                                                      in_tensor(name, why)));
  };
  const TensorView* tensor = find(name);
  if (tensor == nullptr) return refuse("it is missing");
  if (tensor->dtype != DType::f32)
    return refuse(fmt::format("it is {}, the model needs F32", to_string(tensor->dtype)));
  if (tensor->shape != shape || tensor->data.size() != out.size_bytes())
    return refuse(fmt::format("its shape is {}, the model needs {}", tensor->shape, shape));
  if (!out.empty()) std::memcpy(out.data(), tensor->data.data(), out.size_bytes());
  return {};
}

core::Result<SafetensorsFile> parse_safetensors(std::vector<std::byte> bytes, std::string origin, Checksums checksums) {
  return parse_safetensors(std::make_shared<const std::vector<std::byte>>(std::move(bytes)), std::move(origin),
                           checksums);
}

core::Result<SafetensorsFile> parse_safetensors(std::shared_ptr<const std::vector<std::byte>> bytes, std::string origin,
                                                Checksums checksums) {
  const auto corrupt = [&](const std::string& why) {
    return core::fail(core::Errc::corrupt, fmt::format("{}: {}", origin, why));
  };
  const Bytes all(*bytes);
  const auto length = header_length(all.first(std::min(all.size(), kLengthBytes)), all.size());
  if (!length) return corrupt(length.error());

  SafetensorsFile file;
  file.bytes_ = std::move(bytes);
  const std::string_view head(reinterpret_cast<const char*>(all.data()), kLengthBytes + *length);
  auto contents = parse_contents(head, all.size() - head.size(), checksums);
  if (!contents) return corrupt(contents.error());
  auto rest = all.subspan(head.size());
  for (auto& tensor : contents->tensors) {
    const auto size = *tensor_bytes(tensor.dtype, tensor.shape);
    tensor.data = rest.first(size);
    rest = rest.subspan(size);
    if (!contents->has_checksums) continue;
    if (const auto right = take_checksum(contents->metadata, tensor.name, hash128_hex(tensor.data)); !right)
      return corrupt(right.error());
  }
  file.tensors_ = std::move(contents->tensors);
  file.metadata_ = std::move(contents->metadata);
  file.has_checksums_ = contents->has_checksums;
  file.origin_ = std::move(origin);
  return file;
}

core::Result<SafetensorsFile> read_safetensors(FileSystem& files, const std::string& path, Checksums checksums) {
  auto bytes = files.read(path);
  if (!bytes) return tl::unexpected(std::move(bytes.error()));
  return parse_safetensors(std::move(*bytes), path, checksums);
}

std::vector<Bytes> EncodedSafetensors::parts() const {
  std::vector<Bytes> parts{std::as_bytes(std::span(head))};
  parts.insert(parts.end(), data.begin(), data.end());
  return parts;
}

core::Result<EncodedSafetensors> encode_safetensors(std::span<const TensorView> tensors, const Metadata& metadata) {
  if (auto checked = check_encodable(tensors, metadata); !checked) return tl::unexpected(std::move(checked.error()));
  std::vector<const TensorView*> order(tensors.size());
  std::ranges::transform(tensors, order.begin(), [](const TensorView& tensor) { return &tensor; });
  std::ranges::stable_sort(order, std::greater{}, [](const TensorView* tensor) { return byte_size(tensor->dtype); });

  EncodedSafetensors encoded;
  try {
    const std::string json = header_json(order, metadata);
    if (json.size() > kMaxHeaderBytes)
      return core::fail(core::Errc::internal,
                        fmt::format("a header of {} bytes is above the limit of {}: too much metadata", json.size(),
                                    kMaxHeaderBytes));
    const std::uint64_t length = json.size();
    encoded.head.assign(reinterpret_cast<const char*>(&length), kLengthBytes);
    encoded.head += json;
  } catch (const nlohmann::json::exception& e) {  // quoted(): text that is not UTF-8
    return core::fail(core::Errc::internal, fmt::format("safetensors header: {}", e.what()));
  }
  const std::size_t position = header_checksum_position(encoded.head);
  encoded.head.replace(position, kChecksumDigits, header_checksum(encoded.head, position));
  for (const auto* tensor : order) encoded.data.push_back(tensor->data);
  return encoded;
}

}  // namespace troupe::nn
