/// Reads and writes safetensors files (github.com/huggingface/safetensors, "Format"): 8 bytes little-endian header length, JSON
/// header, tensor bytes without holes. Troupe's files carry checksums in the header's __metadata__, which detect any changed bit;
/// other readers see ordinary strings. The scheme is in docs/formats/checkpoint.md. Thread rule: plain values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.hpp"
#include "core/kernels.hpp"
#include "nn/checkpoint/file_system.hpp"

namespace troupe::nn {

enum class DType : std::uint8_t { boolean, u8, i8, u16, i16, f16, bf16, u32, i32, f32, u64, i64, f64 };
[[nodiscard]] std::string_view to_string(DType dtype) noexcept;  // "F32"
[[nodiscard]] std::optional<DType> parse_dtype(std::string_view name) noexcept;
[[nodiscard]] std::size_t byte_size(DType dtype) noexcept;  // of one element

/// One tensor: a borrowed view of little-endian, row-major bytes.
struct TensorView {
  std::string name;
  DType dtype = DType::f32;
  std::vector<std::int64_t> shape;  // {}: a scalar
  Bytes data;                       // empty where read_selected() left it out
};

/// Which tensors of a file are read.
using TensorSelection = std::function<bool(const TensorView&)>;

using Metadata = std::map<std::string, std::string>;  // UTF-8

/// A longer header is refused unread: this limits the cost of parsing a damaged file.
inline constexpr std::size_t kMaxHeaderBytes = std::size_t{16} << 20;

enum class Checksums : std::uint8_t {
  required,    ///< Troupe's own files: one without checksums is damaged
  if_present,  ///< files of other programs
};

/// A file in memory and its contents. Move-only: the views point into it.
class SafetensorsFile {
 public:
  SafetensorsFile(SafetensorsFile&&) noexcept = default;
  SafetensorsFile& operator=(SafetensorsFile&&) noexcept = default;

  [[nodiscard]] const std::string& origin() const noexcept { return origin_; }  ///< the path, for messages
  /// In the order of their data.
  [[nodiscard]] const std::vector<TensorView>& tensors() const noexcept { return tensors_; }
  [[nodiscard]] const TensorView* find(std::string_view name) const noexcept;
  [[nodiscard]] const Metadata& metadata() const noexcept { return metadata_; }  ///< without the checksums
  [[nodiscard]] bool has_checksums() const noexcept { return has_checksums_; }   ///< then they were compared
  /// metadata()[key]; Errc::corrupt if the file has no such key.
  [[nodiscard]] core::Result<std::string> text(const std::string& key) const;
  /// Copies the F32 tensor `name` of exactly this shape. Errc::config names file, tensor and difference: missing, dtype, shape.
  [[nodiscard]] core::Result<void> copy_floats(const std::string& name, const std::vector<std::int64_t>& shape,
                                               core::Span out) const;

 private:
  friend core::Result<SafetensorsFile> parse_safetensors(std::shared_ptr<const std::vector<std::byte>>, std::string,
                                                         Checksums);
  friend core::Result<SafetensorsFile> read_selected(const std::string&, const TensorSelection&);
  SafetensorsFile() = default;
  std::string origin_;
  std::shared_ptr<const std::vector<std::byte>> bytes_;
  std::vector<TensorView> tensors_;
  Metadata metadata_;
  bool has_checksums_ = false;
};

/// Checks bounds, shapes, holes, duplicates and checksums before it returns. Memory: the file's size and a few times the header's; of
/// shared bytes, which the file keeps, no copy. Errc::corrupt names file, tensor and error; Errc::io a failed read.
[[nodiscard]] core::Result<SafetensorsFile> parse_safetensors(std::vector<std::byte> bytes, std::string origin,
                                                              Checksums checksums);
[[nodiscard]] core::Result<SafetensorsFile> parse_safetensors(std::shared_ptr<const std::vector<std::byte>> bytes,
                                                              std::string origin, Checksums checksums);
[[nodiscard]] core::Result<SafetensorsFile> read_safetensors(FileSystem& files, const std::string& path,
                                                             Checksums checksums);

/// Reads the header, then the data of the tensors that `selected` takes. All checks are those of parse_safetensors() with
/// Checksums::if_present; what is not selected is read piece by piece where it has a checksum, else not at all. Memory: the selected
/// tensors and a few times the header's size, however large the file. Errors as read_safetensors().
[[nodiscard]] core::Result<SafetensorsFile> read_selected(const std::string& path, const TensorSelection& selected);

/// A file to be written: `head` (length and header), then `data`, which must stay alive until then.
struct EncodedSafetensors {
  std::string head;
  std::vector<Bytes> data;
  [[nodiscard]] std::vector<Bytes> parts() const;
};

/// Orders tensors by falling element size, so that all are aligned, and adds checksums. Errc::internal: a name that is duplicate or
/// reserved ("__metadata__", metadata keys "xxh3" and "xxh3:…"), data that does not match the shape, text that is not UTF-8, a
/// header above kMaxHeaderBytes.
[[nodiscard]] core::Result<EncodedSafetensors> encode_safetensors(std::span<const TensorView> tensors,
                                                                  const Metadata& metadata);

}  // namespace troupe::nn
