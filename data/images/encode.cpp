#include "data/images/encode.hpp"

#include <jpeglib.h>
#include <png.h>

#include <csetjmp>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <stdexcept>

#include <fmt/format.h>

namespace troupe::data {
namespace {

constexpr std::int64_t kMostSide = 65'500;  // of JPEG

core::Result<void> check_encodable(ImageShape shape, std::size_t pixels) {
  if (pixels != static_cast<std::size_t>(shape.size())) throw std::invalid_argument("pixels of another shape");
  if (shape.channels != 1 && shape.channels != 3)
    return core::fail(
        core::Errc::config,
        fmt::format("images of {} channels cannot be written as pictures: one or three are needed", shape.channels));
  if (shape.height < 1 || shape.width < 1 || shape.height > kMostSide || shape.width > kMostSide)
    return core::fail(core::Errc::config,
                      fmt::format("images of {} x {} pixels cannot be written as pictures", shape.width, shape.height));
  return {};
}

/// Row `y`, a pixel's channels side by side.
void interleave(ImageShape shape, std::span<const std::uint8_t> pixels, std::int64_t y,
                std::vector<std::uint8_t>& row) {
  const auto plane = static_cast<std::size_t>(shape.height * shape.width);
  const auto width = static_cast<std::size_t>(shape.width), channels = static_cast<std::size_t>(shape.channels);
  row.resize(width * channels);
  for (std::size_t x = 0; x < width; ++x)
    for (std::size_t c = 0; c < channels; ++c)
      row[x * channels + c] = pixels[c * plane + static_cast<std::size_t>(y) * width + x];
}

/// libjpeg jumps on an error: no object with a destructor lives in the function that it jumps over.
struct JpegEncoding {
  jpeg_error_mgr manager;
  std::jmp_buf jump;
  char text[JMSG_LENGTH_MAX];
  unsigned char* memory = nullptr;
  unsigned long length = 0;
  ImageShape shape;
  std::span<const std::uint8_t> pixels;
  std::vector<std::uint8_t>* row = nullptr;
};

[[noreturn]] void jpeg_encoding_failed(j_common_ptr info) {
  auto* const work = reinterpret_cast<JpegEncoding*>(info->err);
  info->err->format_message(info, work->text);
  std::longjmp(work->jump, 1);
}

bool write_jpeg(JpegEncoding& work, int quality) {
  jpeg_compress_struct info{};
  info.err = jpeg_std_error(&work.manager);
  work.manager.error_exit = jpeg_encoding_failed;
  if (setjmp(work.jump) != 0) {
    jpeg_destroy_compress(&info);
    return false;
  }
  jpeg_create_compress(&info);
  jpeg_mem_dest(&info, &work.memory, &work.length);
  info.image_width = static_cast<JDIMENSION>(work.shape.width);
  info.image_height = static_cast<JDIMENSION>(work.shape.height);
  info.input_components = static_cast<int>(work.shape.channels);
  info.in_color_space = work.shape.channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
  jpeg_set_defaults(&info);
  jpeg_set_quality(&info, quality, TRUE);
  info.comp_info[0].h_samp_factor = info.comp_info[0].v_samp_factor = 1;
  jpeg_start_compress(&info, TRUE);
  for (std::int64_t y = 0; y < work.shape.height; ++y) {
    interleave(work.shape, work.pixels, y, *work.row);
    JSAMPROW rows[]{work.row->data()};
    jpeg_write_scanlines(&info, rows, 1);
  }
  jpeg_finish_compress(&info);
  jpeg_destroy_compress(&info);
  return true;
}

struct PngOut {
  std::vector<std::uint8_t>* bytes = nullptr;
  char text[160] = {};
};

[[noreturn]] void png_encoding_failed(png_structp png, png_const_charp text) {
  std::strncpy(static_cast<PngOut*>(png_get_error_ptr(png))->text, text, sizeof(PngOut::text) - 1);
  png_longjmp(png, 1);
}

void append_png(png_structp png, png_bytep data, std::size_t count) {
  auto& bytes = *static_cast<PngOut*>(png_get_io_ptr(png))->bytes;
  bytes.insert(bytes.end(), data, data + count);
}

bool write_png(png_structp png, png_infop info, PngOut& out, ImageShape shape, std::span<const std::uint8_t> pixels,
               std::vector<std::uint8_t>& row) {
  if (setjmp(png_jmpbuf(png)) != 0) return false;
  png_set_write_fn(png, &out, append_png, [](png_structp) {});
  png_set_IHDR(png, info, static_cast<png_uint_32>(shape.width), static_cast<png_uint_32>(shape.height), 8,
               shape.channels == 1 ? PNG_COLOR_TYPE_GRAY : PNG_COLOR_TYPE_RGB, PNG_INTERLACE_NONE,
               PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  png_write_info(png, info);
  for (std::int64_t y = 0; y < shape.height; ++y) {
    interleave(shape, pixels, y, row);
    png_write_row(png, row.data());
  }
  png_write_end(png, info);
  return true;
}

}  // namespace

core::Result<std::vector<std::uint8_t>> encode_jpeg(ImageShape shape, std::span<const std::uint8_t> pixels,
                                                    int quality) {
  if (auto checked = check_encodable(shape, pixels.size()); !checked) return tl::unexpected(std::move(checked.error()));
  std::vector<std::uint8_t> row;
  JpegEncoding work{.manager = {}, .jump = {}, .text = {}, .shape = shape, .pixels = pixels, .row = &row};
  const bool written = write_jpeg(work, quality);
  const std::unique_ptr<unsigned char, decltype(&std::free)> memory(work.memory, &std::free);
  if (!written) return core::fail(core::Errc::internal, fmt::format("JPEG: {}", work.text));
  return std::vector<std::uint8_t>(memory.get(), memory.get() + work.length);
}

core::Result<std::vector<std::uint8_t>> encode_png(ImageShape shape, std::span<const std::uint8_t> pixels) {
  if (auto checked = check_encodable(shape, pixels.size()); !checked) return tl::unexpected(std::move(checked.error()));
  std::vector<std::uint8_t> bytes, row;
  PngOut out{&bytes};
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, &out, png_encoding_failed, [](auto, auto) {});
  png_infop info = png ? png_create_info_struct(png) : nullptr;
  const bool written = info != nullptr && write_png(png, info, out, shape, pixels, row);
  png_destroy_write_struct(&png, &info);
  if (!written) return core::fail(core::Errc::internal, fmt::format("PNG: {}", out.text));
  return bytes;
}

}  // namespace troupe::data
