#include "tests/data/made_pictures.hpp"

#include <jpeglib.h>
#include <png.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <fmt/format.h>
#include <zlib.h>

namespace troupe::data {

std::uint8_t made_value(std::int64_t x, std::int64_t y, int c, int variant) {
  const auto wave = [](std::int64_t i, double length) { return std::sin(static_cast<double>(i) / length); };
  return static_cast<std::uint8_t>(128 + 60 * wave(x + 7 * c + 11 * variant, 9) + 50 * wave(y - 5 * c, 14) +
                                   static_cast<double>((x * 3 + y * 5 + c) % 7));
}

namespace {

/// Every coefficient of every colour bit by bit.
std::vector<jpeg_scan_info> many_scans() {
  constexpr int kBits = 3, kCoefficients = 64;
  std::vector<jpeg_scan_info> scans{{3, {0, 1, 2}, 0, 0, 0, 0}};
  for (int c = 0; c < 3; ++c)
    for (int k = 1; k < kCoefficients; ++k)
      for (int bit = kBits; bit >= 0; --bit) scans.push_back({1, {c}, k, k, bit == kBits ? 0 : bit + 1, bit});
  return scans;
}

}  // namespace

Bytes made_jpeg(PictureSize size, JpegKind kind, int variant) {
  jpeg_compress_struct info;
  jpeg_error_mgr errors;
  info.err = jpeg_std_error(&errors);
  jpeg_create_compress(&info);
  unsigned char* memory = nullptr;
  unsigned long length = 0;
  jpeg_mem_dest(&info, &memory, &length);
  info.image_width = static_cast<JDIMENSION>(size.width);
  info.image_height = static_cast<JDIMENSION>(size.height);
  info.input_components = kind == JpegKind::grey ? 1 : kind == JpegKind::cmyk ? 4 : 3;
  info.in_color_space = kind == JpegKind::grey ? JCS_GRAYSCALE : kind == JpegKind::cmyk ? JCS_CMYK : JCS_RGB;
  jpeg_set_defaults(&info);
  jpeg_set_quality(&info, 90, TRUE);
  if (kind == JpegKind::full_chroma) info.comp_info[0].h_samp_factor = info.comp_info[0].v_samp_factor = 1;
  if (kind == JpegKind::progressive) jpeg_simple_progression(&info);
  const auto scans = many_scans();
  if (kind == JpegKind::many_scans) {
    info.scan_info = scans.data();
    info.num_scans = static_cast<int>(scans.size());
  }
  jpeg_start_compress(&info, TRUE);
  Bytes row(static_cast<std::size_t>(size.width * info.input_components));
  for (std::int64_t y = 0; y < size.height; ++y) {
    for (std::int64_t x = 0; x < size.width; ++x)
      for (int c = 0; c < info.input_components; ++c)
        row[static_cast<std::size_t>(x * info.input_components + c)] = c == 3 ? 255 : made_value(x, y, c, variant);
    JSAMPROW rows[]{row.data()};
    jpeg_write_scanlines(&info, rows, 1);
  }
  jpeg_finish_compress(&info);
  jpeg_destroy_compress(&info);
  Bytes bytes(memory, memory + length);
  std::free(memory);
  return bytes;
}

Bytes made_png(PictureSize size, PngKind kind, int variant) {
  const int channels = kind == PngKind::grey || kind == PngKind::grey16 ? 1 : kind == PngKind::rgba ? 4 : 3;
  const int depth = kind == PngKind::grey16 || kind == PngKind::rgb16 ? 16 : 8;
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  png_infop info = png_create_info_struct(png);
  Bytes bytes;
  png_set_write_fn(
      png, &bytes,
      [](png_structp p, png_bytep data, std::size_t count) {
        auto& out = *static_cast<Bytes*>(png_get_io_ptr(p));
        out.insert(out.end(), data, data + count);
      },
      [](png_structp) {});
  png_set_IHDR(png, info, static_cast<png_uint_32>(size.width), static_cast<png_uint_32>(size.height), depth,
               channels == 1   ? PNG_COLOR_TYPE_GRAY
               : channels == 4 ? PNG_COLOR_TYPE_RGB_ALPHA
                               : PNG_COLOR_TYPE_RGB,
               kind == PngKind::interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
               PNG_FILTER_TYPE_DEFAULT);
  png_write_info(png, info);
  std::vector<Bytes> rows;
  std::vector<png_bytep> starts;
  for (std::int64_t y = 0; y < size.height; ++y) {
    Bytes& row = rows.emplace_back();
    for (std::int64_t x = 0; x < size.width; ++x)
      for (int c = 0; c < channels; ++c) {
        const std::uint8_t value = c == 3 ? 100 : made_value(x, y, c, variant);
        row.push_back(value);
        if (depth == 16) row.push_back(value);  // value · 257: the same share of white
      }
  }
  for (auto& row : rows) starts.push_back(row.data());
  png_write_image(png, starts.data());
  png_write_end(png, info);
  png_destroy_write_struct(&png, &info);
  return bytes;
}

Bytes with_chunk(Bytes png, const std::string& name, const Bytes& data) {
  Bytes chunk;
  const auto put = [&](std::uint32_t value) {
    for (int shift = 24; shift >= 0; shift -= 8) chunk.push_back(static_cast<std::uint8_t>(value >> shift));
  };
  put(static_cast<std::uint32_t>(data.size()));
  chunk.insert(chunk.end(), name.begin(), name.end());
  chunk.insert(chunk.end(), data.begin(), data.end());
  put(static_cast<std::uint32_t>(crc32(0, chunk.data() + 4, static_cast<uInt>(chunk.size() - 4))));
  constexpr std::ptrdiff_t kHeader = 33;
  png.insert(png.begin() + kHeader, chunk.begin(), chunk.end());
  return png;
}

Bytes made_apng(PictureSize size) { return with_chunk(made_png(size), "acTL", {0, 0, 0, 2, 0, 0, 0, 0}); }

Bytes text_bytes(const std::string& text) { return {text.begin(), text.end()}; }

Bytes made_tar(const std::vector<TarEntry>& entries) {
  constexpr std::size_t kBlock = 512;
  Bytes tar;
  for (const auto& entry : entries) {
    std::string header(kBlock, '\0');
    const auto put = [&](std::size_t at, const std::string& text) { header.replace(at, text.size(), text); };
    put(0, entry.name);
    put(100, "0000644");
    put(108, "0000000");
    put(116, "0000000");
    put(124, fmt::format("{:011o}", entry.bytes.size()));
    put(136, "00000000000");
    put(148, "        ");
    put(156, std::string(1, entry.type));
    if (entry.type == '1' || entry.type == '2') put(157, "elsewhere");
    put(257, std::string("ustar\0", 6) + "00");
    unsigned sum = 0;
    for (const char c : header) sum += static_cast<unsigned char>(c);
    put(148, fmt::format("{:06o}", sum) + std::string("\0 ", 2));
    tar.insert(tar.end(), header.begin(), header.end());
    tar.insert(tar.end(), entry.bytes.begin(), entry.bytes.end());
    tar.resize((tar.size() + kBlock - 1) / kBlock * kBlock);
  }
  tar.resize(tar.size() + 2 * kBlock);
  return tar;
}

}  // namespace troupe::data
