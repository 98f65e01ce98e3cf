#include "data/images/png.hpp"

#include <png.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <vector>

#include <fmt/format.h>

namespace troupe::data {
namespace {

constexpr std::size_t kSignature = 8;    // bytes
constexpr std::size_t kChunkFrame = 12;  // bytes of a chunk around its data: length, name, checksum

/// What the library's callbacks reach. libpng jumps on an error: no object with a destructor lives in the functions it jumps over.
struct PngWork {
  std::span<const std::uint8_t> bytes;
  std::size_t at = 0;
  char text[160] = {};
  PixelBox box;
  PixelBuffer* out = nullptr;
  std::vector<std::uint8_t>* row = nullptr;      // of the whole picture's width
  std::vector<png_bytep>* row_starts = nullptr;  // interlaced: of the whole picture
};

[[noreturn]] void png_failed(png_structp png, png_const_charp text) {
  auto* const work = static_cast<PngWork*>(png_get_error_ptr(png));
  std::strncpy(work->text, text, sizeof(work->text) - 1);
  png_longjmp(png, 1);
}

void png_warned(png_structp, png_const_charp) {}  // of text and colour profiles; the pixels have checksums

void png_more(png_structp png, png_bytep to, std::size_t count) {
  auto* const work = static_cast<PngWork*>(png_get_io_ptr(png));
  if (count > work->bytes.size() - work->at) png_error(png, "truncated");
  std::memcpy(to, work->bytes.data() + work->at, count);
  work->at += count;
}

std::uint32_t big_endian_at(const std::uint8_t* p) noexcept {
  return std::uint32_t{p[0]} << 24 | std::uint32_t{p[1]} << 16 | std::uint32_t{p[2]} << 8 | p[3];
}

/// Whether the chunks reach the end chunk: of what follows the pixels libpng would not notice that it is missing.
bool is_whole(std::span<const std::uint8_t> bytes) noexcept {
  for (std::size_t at = kSignature; at + kChunkFrame <= bytes.size();) {
    const std::uint8_t* const chunk = bytes.data() + at;
    if (std::memcmp(chunk + 4, "IEND", 4) == 0) return true;
    const std::size_t length = big_endian_at(chunk);
    if (length > bytes.size() - at) return false;
    at += length + kChunkFrame;
  }
  return false;
}

/// Whether a chunk acTL stands before the pixels.
bool is_animated(std::span<const std::uint8_t> bytes) noexcept {
  for (std::size_t at = kSignature; at + kChunkFrame <= bytes.size();) {
    const std::uint8_t* const chunk = bytes.data() + at;
    if (std::memcmp(chunk + 4, "acTL", 4) == 0) return true;
    if (std::memcmp(chunk + 4, "IDAT", 4) == 0) return false;
    const std::size_t length = big_endian_at(chunk);
    if (length > bytes.size() - at) return false;
    at += length + kChunkFrame;
  }
  return false;
}

void to_four_bytes_of_rgb(png_structp png, png_infop info) {
  png_set_scale_16(png);
  png_set_expand(png);
  png_set_gray_to_rgb(png);
  png_set_strip_alpha(png);
  png_set_filler(png, 255, PNG_FILLER_AFTER);
  (void)info;
}

/// REQUIRES a jump that png_failed() may take.
void decode_rows_of(png_structp png, png_infop info, PngWork& work) {
  png_set_read_fn(png, &work, png_more);
  png_set_user_limits(png, PNG_UINT_31_MAX, PNG_UINT_31_MAX);  // the caller has judged the size
  // Only chunks with pixels: compressed texts and profiles in a small file can take gigabytes.
  png_set_keep_unknown_chunks(png, PNG_HANDLE_CHUNK_NEVER, nullptr, -1);
  png_read_info(png, info);
  to_four_bytes_of_rgb(png, info);
  const bool interlaced = png_set_interlace_handling(png) > 1;
  png_read_update_info(png, info);
  const std::size_t row_bytes = png_get_rowbytes(png, info), rows = png_get_image_height(png, info);
  work.row->resize(row_bytes * (interlaced ? rows : 1));
  const auto left = static_cast<std::size_t>(work.box.left * PixelBuffer::kBytes);
  const auto width = static_cast<std::size_t>(work.box.width * PixelBuffer::kBytes);
  if (interlaced) {
    work.row_starts->resize(rows);
    for (std::size_t y = 0; y < rows; ++y) (*work.row_starts)[y] = work.row->data() + y * row_bytes;
    png_read_image(png, work.row_starts->data());
    for (std::int64_t y = 0; y < work.box.height; ++y)
      std::memcpy(work.out->row(y), (*work.row_starts)[static_cast<std::size_t>(work.box.top + y)] + left, width);
    return;
  }
  for (std::int64_t y = 0; y < work.box.top + work.box.height; ++y) {
    png_read_row(png, work.row->data(), nullptr);
    if (y >= work.box.top) std::memcpy(work.out->row(y - work.box.top), work.row->data() + left, width);
  }
}

}  // namespace

bool is_png(std::span<const std::uint8_t> bytes) noexcept {
  constexpr std::array<std::uint8_t, kSignature> kPng{0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
  return bytes.size() >= kSignature && std::equal(kPng.begin(), kPng.end(), bytes.begin());
}

core::Result<PictureSize> png_size(std::span<const std::uint8_t> bytes) {
  constexpr std::size_t kHeader = kSignature + kChunkFrame + 13;
  if (bytes.size() < kHeader || std::memcmp(bytes.data() + kSignature + 4, "IHDR", 4) != 0)
    return core::fail(core::Errc::data, "damaged PNG: it has no header");
  if (is_animated(bytes)) return core::fail(core::Errc::data, "an animated PNG: only still pictures are read");
  if (!is_whole(bytes)) return core::fail(core::Errc::data, "damaged PNG: truncated");
  const PictureSize size{big_endian_at(bytes.data() + kSignature + 8), big_endian_at(bytes.data() + kSignature + 12)};
  if (size.width < 1 || size.height < 1 || size.width > PNG_UINT_31_MAX || size.height > PNG_UINT_31_MAX)
    return core::fail(core::Errc::data, fmt::format("damaged PNG: {} x {} pixels", size.width, size.height));
  return size;
}

core::Result<void> decode_png(std::span<const std::uint8_t> bytes, const PixelBox& box, PixelBuffer& out) {
  thread_local std::vector<std::uint8_t> row;
  thread_local std::vector<png_bytep> row_starts;
  out.reshape({box.width, box.height});
  out.box = {0, 0, static_cast<double>(box.width), static_cast<double>(box.height)};
  PngWork work{.bytes = bytes, .at = 0, .text = {}, .box = box, .out = &out, .row = &row, .row_starts = &row_starts};
  png_structp png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &work, png_failed, png_warned);
  png_infop info = png ? png_create_info_struct(png) : nullptr;
  if (!info) {
    png_destroy_read_struct(&png, nullptr, nullptr);
    return core::fail(core::Errc::out_of_memory, "no memory to decode a PNG");
  }
  if (setjmp(png_jmpbuf(png)) != 0) {
    png_destroy_read_struct(&png, &info, nullptr);
    trim(row);
    return core::fail(core::Errc::data, fmt::format("damaged PNG: {}", static_cast<const char*>(work.text)));
  }
  decode_rows_of(png, info, work);
  png_destroy_read_struct(&png, &info, nullptr);
  trim(row);
  return {};
}

}  // namespace troupe::data
