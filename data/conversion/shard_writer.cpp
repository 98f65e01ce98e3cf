#include <archive.h>
#include <archive_entry.h>

#include <cerrno>
#include <optional>

#include <fmt/format.h>

#include "data/conversion/writers.hpp"
#include "data/files/whole_file.hpp"

namespace troupe::data {
namespace {

class ShardWriter final : public SampleWriter {
 public:
  explicit ShardWriter(WriterOptions options) : options_(std::move(options)) {}

  core::Result<void> add(const WrittenSample& sample) override {
    if (!tar_)
      if (auto begun = begin(); !begun) return begun;
    const auto key = fmt::format("{:08}", samples_);
    const auto label = std::to_string(sample.label);
    if (auto put = entry(fmt::format("{}.{}", key, sample.ending), sample.bytes); !put) return put;
    if (auto put = entry(key + ".cls", {reinterpret_cast<const std::uint8_t*>(label.data()), label.size()}); !put)
      return put;
    if (++samples_ % options_.per_file == 0) return end();
    return {};
  }
  core::Result<void> finish() override { return tar_ ? end() : core::Result<void>{}; }

 private:
  core::Result<void> begin() {
    auto file = WholeFile::begin(options_.directory / fmt::format("{}-{:05}.tar", options_.split, shards_));
    if (!file) return tl::unexpected(std::move(file.error()));
    file_.emplace(std::move(*file));
    tar_.reset(archive_write_new());
    if (!tar_) return core::fail(core::Errc::out_of_memory, "no memory to write a tar file");
    archive_write_set_format_ustar(tar_.get());
    if (archive_write_open_filename(tar_.get(), file_->temporary().c_str()) != ARCHIVE_OK) return failed();
    return {};
  }

  core::Result<void> entry(const std::string& name, std::span<const std::uint8_t> bytes) {
    const std::unique_ptr<archive_entry, decltype(&archive_entry_free)> entry(archive_entry_new(), archive_entry_free);
    if (!entry) return core::fail(core::Errc::out_of_memory, "no memory to write a tar file");
    archive_entry_set_pathname(entry.get(), name.c_str());
    archive_entry_set_size(entry.get(), static_cast<la_int64_t>(bytes.size()));
    archive_entry_set_filetype(entry.get(), AE_IFREG);
    constexpr int kReadable = 0644;
    archive_entry_set_perm(entry.get(), kReadable);
    if (archive_write_header(tar_.get(), entry.get()) != ARCHIVE_OK) return failed();
    if (archive_write_data(tar_.get(), bytes.data(), bytes.size()) != static_cast<la_ssize_t>(bytes.size()))
      return failed();
    return {};
  }

  core::Result<void> end() {
    if (archive_write_close(tar_.get()) != ARCHIVE_OK) return failed();
    tar_.reset();
    ++shards_;
    auto done = file_->commit();
    file_.reset();
    return done;
  }

  core::Result<void> failed() const {
    return tl::unexpected(core::from_errno(archive_errno(tar_.get()), "write", file_->temporary().string()));
  }

  WriterOptions options_;
  std::optional<WholeFile> file_;
  std::unique_ptr<archive, decltype(&archive_write_free)> tar_{nullptr, &archive_write_free};  // before file_ goes
  std::int64_t samples_ = 0;
  std::int64_t shards_ = 0;
};

}  // namespace

std::unique_ptr<SampleWriter> shard_writer(WriterOptions options) {
  return std::make_unique<ShardWriter>(std::move(options));
}

}  // namespace troupe::data
