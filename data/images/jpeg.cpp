#include "data/images/jpeg.hpp"

#include <jerror.h>
#include <jpeglib.h>

#include <algorithm>
#include <csetjmp>
#include <cstddef>
#include <cstdio>
#include <string>

#include <fmt/format.h>

namespace troupe::data {
namespace {

/// What libjpeg calls on an error. It must not return to the library, and exceptions must not cross it, so it jumps. No object with a
/// destructor lives in the functions that it jumps over.
struct JpegErrors {
  jpeg_error_mgr manager;
  std::jmp_buf jump;
  char text[JMSG_LENGTH_MAX];
};

[[noreturn]] void jump_out(j_common_ptr info) {
  auto* const errors = reinterpret_cast<JpegErrors*>(info->err);
  info->err->format_message(info, errors->text);
  std::longjmp(errors->jump, 1);
}

/// Warnings that say of bytes that no picture is there are errors; the library would go on with grey.
void judge_warning(j_common_ptr info, int level) {
  if (level >= 0) return;
  switch (info->err->msg_code) {
    case JWRN_EXTRANEOUS_DATA:  // bytes between segments, which cameras leave
    case JWRN_JFIF_MAJOR:
    case JWRN_ADOBE_XFORM: return;
    default: jump_out(info);
  }
}

void stay_silent(j_common_ptr) {}

jpeg_error_mgr* prepare(JpegErrors& errors) {
  jpeg_std_error(&errors.manager);
  errors.manager.error_exit = jump_out;
  errors.manager.emit_message = judge_warning;
  errors.manager.output_message = stay_silent;
  return &errors.manager;
}

core::Result<void> damaged(const char* text) {
  return core::fail(core::Errc::data, fmt::format("damaged JPEG: {}", text));
}

/// The picture's end. A thumbnail inside may have one too; then the decoder finds the missing part.
bool has_end(std::span<const std::uint8_t> bytes) noexcept {
  for (std::size_t at = bytes.size(); at >= 2; --at)
    if (bytes[at - 1] == 0xd9 && bytes[at - 2] == 0xff) return true;
  return false;
}

constexpr unsigned kBlock = 8;  // pixels along a side of a DCT block

/// The numerator of numerator/8: 8, 4, 2 or 1, the sizes for which the library has fast transforms.
unsigned reduced(const PixelBox& box, PictureSize least) noexcept {
  unsigned numerator = kBlock;
  while (numerator > 1 && box.width * (numerator / 2) >= least.width * kBlock &&
         box.height * (numerator / 2) >= least.height * kBlock)
    numerator /= 2;
  return numerator;
}

/// CMYK as Adobe's programs write it: inverted. In place, four bytes each.
void cmyk_to_rgb(std::uint8_t* row, std::int64_t width, bool inverted) noexcept {
  constexpr unsigned kFull = 255;
  for (std::int64_t x = 0; x < width; ++x, row += PixelBuffer::kBytes) {
    const unsigned black = inverted ? row[3] : kFull - row[3];
    for (int c = 0; c < 3; ++c) {
      const unsigned ink = inverted ? row[c] : kFull - row[c];
      row[c] = static_cast<std::uint8_t>((ink * black + kFull / 2) / kFull);
    }
  }
}

/// What decode_jpeg() passes over the library's frames.
struct JpegWork {
  const unsigned char* bytes;
  unsigned long size;
  PixelBox box;
  PictureSize least;
  PixelBuffer* out;
};

/// A progressive picture is read scan by scan, usually ten. A small file may have thousands over a large picture, which take minutes.
void judge_scans(j_common_ptr info) {
  constexpr std::int64_t kUsual = 20, kMost = 500, kMostPixels = 2'000'000'000;  // of all scans together
  const auto& decoder = *reinterpret_cast<j_decompress_ptr>(info);
  const auto pixels = std::int64_t{decoder.image_width} * decoder.image_height;
  const auto most = std::clamp(kMostPixels / std::max<std::int64_t>(pixels, 1), kUsual, kMost);
  if (decoder.input_scan_number <= most) return;
  auto* const errors = reinterpret_cast<JpegErrors*>(info->err);
  std::snprintf(errors->text, sizeof(errors->text), "more than %d scans", static_cast<int>(most));
  std::longjmp(errors->jump, 1);
}

void read_header(jpeg_decompress_struct& info, const unsigned char* bytes, unsigned long size) {
  jpeg_create_decompress(&info);
  jpeg_mem_src(&info, bytes, size);
  jpeg_read_header(&info, TRUE);
}

/// The library's cropped columns: wider than asked, at the borders of its blocks. Allocates in `out`: nothing of its own.
void decode_rows(jpeg_decompress_struct& info, const JpegWork& work) {
  const unsigned numerator = reduced(work.box, work.least);
  info.scale_num = numerator;
  info.scale_denom = kBlock;
  const bool cmyk = info.jpeg_color_space == JCS_CMYK || info.jpeg_color_space == JCS_YCCK;
  info.out_color_space = cmyk ? JCS_CMYK : JCS_EXT_RGBX;
  jpeg_start_decompress(&info);

  const double scale = static_cast<double>(numerator) / kBlock;
  const auto first = [&](std::int64_t at) { return static_cast<JDIMENSION>(at * numerator / kBlock); };
  const auto past = [&](std::int64_t at, JDIMENSION most) {
    return std::min(most, static_cast<JDIMENSION>((at * numerator + kBlock - 1) / kBlock));
  };
  const JDIMENSION top = first(work.box.top), bottom = past(work.box.top + work.box.height, info.output_height);
  // Colours at the borders of what is decoded lack a neighbour from which they are interpolated: two columns more.
  constexpr JDIMENSION kMargin = 2;
  JDIMENSION left = first(work.box.left);
  left -= std::min(left, kMargin);
  JDIMENSION width =
      std::min(past(work.box.left + work.box.width, info.output_width) + kMargin, info.output_width) - left;
  if (width < info.output_width) jpeg_crop_scanline(&info, &left, &width);
  work.out->reshape({width, bottom - top});
  work.out->box = {static_cast<double>(work.box.left) * scale - left, static_cast<double>(work.box.top) * scale - top,
                   static_cast<double>(work.box.width) * scale, static_cast<double>(work.box.height) * scale};
  if (top > 0) jpeg_skip_scanlines(&info, top);
  while (info.output_scanline < bottom) {
    constexpr std::int64_t kRows = 8;
    const std::int64_t y = info.output_scanline - top;
    JSAMPROW rows[kRows];
    for (std::int64_t k = 0; k < kRows; ++k) rows[k] = work.out->row(std::min<std::int64_t>(y + k, bottom - top - 1));
    const auto wanted = static_cast<JDIMENSION>(std::min<std::int64_t>(kRows, bottom - top - y));
    const JDIMENSION got = jpeg_read_scanlines(&info, rows, wanted);
    if (cmyk)
      for (JDIMENSION k = 0; k < got; ++k) cmyk_to_rgb(rows[k], width, info.saw_Adobe_marker != FALSE);
  }
}

}  // namespace

bool is_jpeg(std::span<const std::uint8_t> bytes) noexcept {
  return bytes.size() >= 3 && bytes[0] == 0xff && bytes[1] == 0xd8 && bytes[2] == 0xff;
}

core::Result<PictureSize> jpeg_size(std::span<const std::uint8_t> bytes) {
  jpeg_decompress_struct info;
  JpegErrors errors;
  info.err = prepare(errors);
  if (setjmp(errors.jump) != 0) {
    jpeg_destroy_decompress(&info);
    return damaged(errors.text).map([] { return PictureSize{}; });
  }
  read_header(info, bytes.data(), bytes.size());
  const PictureSize size{info.image_width, info.image_height};
  jpeg_destroy_decompress(&info);
  return size;
}

core::Result<void> decode_jpeg(std::span<const std::uint8_t> bytes, const PixelBox& box, PictureSize least,
                               PixelBuffer& out) {
  if (!has_end(bytes)) return damaged("truncated: it has no end marker");
  const JpegWork work{bytes.data(), bytes.size(), box, least, &out};
  jpeg_progress_mgr scans{};
  scans.progress_monitor = judge_scans;
  jpeg_decompress_struct info;
  JpegErrors errors;
  info.err = prepare(errors);
  if (setjmp(errors.jump) != 0) {
    jpeg_destroy_decompress(&info);
    return damaged(errors.text);
  }
  read_header(info, work.bytes, work.size);
  info.progress = &scans;
  decode_rows(info, work);
  // Not jpeg_finish_decompress(): the rows below the box are not needed.
  jpeg_destroy_decompress(&info);
  return {};
}

}  // namespace troupe::data
