// A batch file has all labels before the images: the images go to a file of their own until the labels are known.
#include <cerrno>
#include <fstream>
#include <optional>

#include <fmt/format.h>

#include "data/conversion/writers.hpp"
#include "data/files/whole_file.hpp"
#include "data/sources/batch_files.hpp"

namespace troupe::data {
namespace {

constexpr std::size_t kPiece = std::size_t{1} << 20;  // bytes that are copied at once

class BatchWriter final : public SampleWriter {
 public:
  explicit BatchWriter(WriterOptions options) : options_(std::move(options)) {}

  core::Result<void> add(const WrittenSample& sample) override {
    if (!images_)
      if (auto begun = begin(); !begun) return begun;
    labels_.push_back(sample.label);
    errno = 0;
    out_.write(reinterpret_cast<const char*>(sample.bytes.data()), static_cast<std::streamsize>(sample.bytes.size()));
    if (!out_) return failed(images_->temporary());
    return static_cast<std::int64_t>(labels_.size()) == options_.per_file ? end() : core::Result<void>{};
  }
  core::Result<void> finish() override { return images_ ? end() : core::Result<void>{}; }

 private:
  static core::Result<void> failed(const std::filesystem::path& path) {
    return tl::unexpected(core::from_errno(errno, "write", path.string()));
  }

  core::Result<void> begin() {
    path_ = options_.directory / fmt::format("{}-{:05}.batch", options_.split, files_);
    auto images = WholeFile::begin(path_.string() + ".images");
    if (!images) return tl::unexpected(std::move(images.error()));
    images_.emplace(std::move(*images));
    errno = 0;
    out_.open(images_->temporary(), std::ios::binary | std::ios::trunc);
    return out_ ? core::Result<void>{} : failed(images_->temporary());
  }

  core::Result<void> end() {
    errno = 0;
    out_.close();
    if (!out_) return failed(images_->temporary());
    auto file = WholeFile::begin(path_);
    if (!file) return tl::unexpected(std::move(file.error()));
    const auto header = to_bytes({{options_.shape.channels, options_.shape.height, options_.shape.width},
                                  static_cast<std::int64_t>(labels_.size())});
    std::vector<std::uint8_t> labels;
    for (const auto label : labels_)
      for (int shift = 0; shift < 32; shift += 8)
        labels.push_back(static_cast<std::uint8_t>(static_cast<std::uint32_t>(label) >> shift));
    errno = 0;
    {
      std::ofstream out(file->temporary(), std::ios::binary | std::ios::trunc);
      out.write(reinterpret_cast<const char*>(header.data()), static_cast<std::streamsize>(header.size()));
      out.write(reinterpret_cast<const char*>(labels.data()), static_cast<std::streamsize>(labels.size()));
      // Not `out << images.rdbuf()`: that does not fail when the disk is full in the middle.
      std::ifstream images(images_->temporary(), std::ios::binary);
      std::vector<char> piece(kPiece);
      while (out && images) {
        images.read(piece.data(), static_cast<std::streamsize>(piece.size()));
        out.write(piece.data(), images.gcount());
      }
      out.close();
      if (!out || !images.eof()) return failed(path_);
    }
    images_.reset();
    labels_.clear();
    ++files_;
    return file->commit();
  }

  WriterOptions options_;
  std::filesystem::path path_;
  std::optional<WholeFile> images_;
  std::ofstream out_;
  std::vector<std::int32_t> labels_;
  std::int64_t files_ = 0;
};

}  // namespace

std::unique_ptr<SampleWriter> batch_writer(WriterOptions options) {
  return std::make_unique<BatchWriter>(std::move(options));
}

}  // namespace troupe::data
