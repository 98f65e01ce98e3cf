#include "nn/checkpoint/manifest.hpp"

#include <charconv>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "nn/hash.hpp"

namespace troupe::nn {
namespace {

constexpr std::string_view kNamePrefix = "step-";
constexpr std::string_view kNameSuffix = ".safetensors";
constexpr int kFormat = 1;

}  // namespace

std::string encode_manifest(const Manifest& manifest) {
  const nlohmann::json inner{{"format", kFormat}, {"kept", manifest.kept}, {"removed", manifest.removed}};
  const std::string text = inner.dump();
  return fmt::format("{{\"xxh3\":\"{}\",\"manifest\":{}}}\n", hash128_hex(std::as_bytes(std::span(text))), text);
}

core::Result<Manifest> read_manifest(FileSystem& files, const std::string& path) {
  const auto bytes = files.read(path);
  if (!bytes) return tl::unexpected(bytes.error());
  const std::string text(reinterpret_cast<const char*>(bytes->data()), bytes->size());
  const auto json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  try {
    if (!json.is_discarded()) {
      const auto& inner = json.at("manifest");
      Manifest manifest{inner.at("kept").get<std::vector<std::int64_t>>(),
                        inner.at("removed").get<std::vector<std::int64_t>>()};
      if (text == encode_manifest(manifest)) return manifest;  // compares every byte, so the checksum too
    }
  } catch (const nlohmann::json::exception&) {  // a missing key or wrong type: corrupt, below
  }
  return core::fail(core::Errc::corrupt, fmt::format("{}: it was changed or cut off after it was written", path));
}

std::string checkpoint_name(std::int64_t step) { return fmt::format("{}{:012}{}", kNamePrefix, step, kNameSuffix); }

std::int64_t checkpoint_step(std::string_view name) noexcept {
  if (!name.starts_with(kNamePrefix) || !name.ends_with(kNameSuffix) ||
      name.size() <= kNamePrefix.size() + kNameSuffix.size())
    return -1;
  const std::string_view digits =
      name.substr(kNamePrefix.size(), name.size() - kNamePrefix.size() - kNameSuffix.size());
  std::int64_t step = -1;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), step);
  if (error != std::errc{} || end != digits.data() + digits.size() || step < 0 || digits.size() < 12) return -1;
  return step;
}

}  // namespace troupe::nn
