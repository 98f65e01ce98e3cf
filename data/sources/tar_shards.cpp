#include "data/sources/tar_shards.hpp"

#include <archive.h>
#include <archive_entry.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "data/files/open_file.hpp"

namespace troupe::data {
namespace {

namespace fs = std::filesystem;
using core::Errc;
using core::fail;
using core::Result;

constexpr std::size_t kTarBlock = 512;  // bytes
constexpr std::size_t kTarName = 100;   // bytes of a header's name

/// One shard while its index is made. Entries of a sample stand together; `key` is their common name.
class ShardIndex {
 public:
  ShardIndex(const fs::path& path, const TarShardsOptions& options, std::vector<TarShards::Entry>& entries)
      : path_(path.string()), options_(options), entries_(entries) {}

  Result<void> read() {
    const auto file = OpenFile::open(path_);  // names what is wrong; libarchive reads it
    if (!file) return tl::unexpected(file.error());
    file_bytes_ = file->size();
    const std::unique_ptr<archive, int (*)(archive*)> reader(archive_read_new(), archive_read_free);
    if (!reader) return fail(Errc::out_of_memory, "no memory to read a tar file");
    archive_read_support_format_tar(reader.get());
    constexpr std::size_t kBuffer = 64 << 10;
    if (archive_read_open_filename(reader.get(), path_.c_str(), kBuffer) != ARCHIVE_OK)
      return bad(not_tar(reader.get()));
    archive_entry* entry = nullptr;
    for (;;) {
      const int status = archive_read_next_header(reader.get(), &entry);
      if (status == ARCHIVE_EOF) break;
      // A warning: a name that this locale cannot write, for one. take() judges what it needs.
      if (status != ARCHIVE_OK && status != ARCHIVE_WARN) return bad(not_tar(reader.get()));
      if (auto taken = take(reader.get(), *entry); !taken) return taken;
    }
    if (auto ended = end_sample(); !ended) return ended;
    // A file that ends between two entries: libarchive does not mind.
    if (file_bytes_ < end_ + kTarBlock) return bad("truncated: it has no end mark: fetch or write the file again");
    if (records_ == 0) return bad("it has no sample: expected entries like 000.jpg and 000.cls");
    return {};
  }

 private:
  Result<void> bad(std::string_view what) const { return fail(Errc::data, fmt::format("{}: {}", path_, what)); }
  Result<void> bad_entry(std::string_view name, std::string_view what) const {
    return bad(fmt::format("record {} ({}): {}", records_, name, what));
  }

  std::string not_tar(archive* reader) const {
    const char* const why = archive_error_string(reader);
    return fmt::format("record {}: not a tar file, or damaged ({}); compressed ones are not read: uncompress it first",
                       records_, why ? why : "no reason given");
  }

  Result<void> take(archive* reader, archive_entry& entry) {
    const char* raw_name = archive_entry_pathname(&entry);
    if (!raw_name) raw_name = archive_entry_pathname_utf8(&entry);
    const std::string name = raw_name ? raw_name : "";
    const fs::path path(name);
    if (archive_entry_hardlink(&entry) || archive_entry_symlink(&entry)) return bad_entry(name, "links are refused");
    if (name.empty() || path.is_absolute() || std::ranges::find(path, fs::path("..")) != path.end())
      return bad_entry(name, "the path is absolute or leaves its folder");
    const auto type = archive_entry_filetype(&entry);
    if (type == AE_IFDIR) return {};
    if (type != AE_IFREG) return bad_entry(name, "not a regular file");
    if (archive_entry_sparse_count(&entry) > 0) return bad_entry(name, "a sparse file, whose bytes are not together");

    const std::string file = path.filename().string();
    const auto dot = file.find('.');
    const auto bytes = archive_entry_size(&entry);
    const auto offset = static_cast<std::uint64_t>(archive_filter_bytes(reader, 0));
    if (bytes < 0 || offset + static_cast<std::uint64_t>(bytes) > file_bytes_)
      return bad_entry(name, "truncated: fetch the file again");
    end_ = offset + (static_cast<std::uint64_t>(bytes) + kTarBlock - 1) / kTarBlock * kTarBlock;
    // WebDataset passes them over, too: README, .DS_Store, and what macOS puts beside each file.
    if (dot == 0 || dot == std::string::npos) return {};
    std::string key = (path.parent_path() / file.substr(0, dot)).string();
    if (key != key_) {
      if (auto ended = end_sample(); !ended) return ended;
      key_ = std::move(key);
    }
    std::string ending = file.substr(dot);
    std::ranges::transform(ending, ending.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    if (ending == ".cls") return take_label(reader, name, bytes);
    if (ending == ".jpg" || ending == ".jpeg" || ending == ".png") return take_picture(name, offset, bytes);
    return {};
  }

  Result<void> take_label(archive* reader, const std::string& name, std::int64_t bytes) {
    if (has_label_) return bad_entry(name, "a second label of one sample");
    std::array<char, 32> text{};
    const auto got = archive_read_data(reader, text.data(), text.size());
    std::string_view digits(text.data(), got > 0 ? static_cast<std::size_t>(got) : 0);
    while (!digits.empty() && (digits.back() == '\n' || digits.back() == '\r' || digits.back() == ' '))
      digits.remove_suffix(1);
    std::int32_t label = -1;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), label);
    if (error != std::errc{} || end != digits.data() + digits.size() || bytes > std::ssize(text))
      return bad_entry(name, "the label is not a whole number");
    if (label < 0 || label >= options_.classes)
      return bad_entry(
          name, fmt::format("label {} is not in 0 ... {}: the data set has {} classes (classes.txt, or data.classes)",
                            label, options_.classes - 1, options_.classes));
    has_label_ = true;
    sample_.label = label;
    return {};
  }

  Result<void> take_picture(const std::string& name, std::uint64_t offset, std::int64_t bytes) {
    if (has_picture_) return bad_entry(name, "a second picture of one sample");
    if (bytes > options_.most_bytes)
      return bad_entry(name, fmt::format("{} bytes are no picture (at most {})", bytes, options_.most_bytes));
    has_picture_ = true;
    sample_.offset = offset;
    sample_.bytes = static_cast<std::uint32_t>(bytes);
    return {};
  }

  Result<void> end_sample() {
    if (key_.empty()) return {};
    if (!has_picture_) return bad_entry(key_, "a sample without a picture (.jpg, .jpeg or .png)");
    if (!has_label_) return bad_entry(key_, "a sample without a label (.cls)");
    entries_.push_back(sample_);
    ++records_;
    has_picture_ = has_label_ = false;
    key_.clear();
    return {};
  }

  std::string path_;
  const TarShardsOptions& options_;
  std::vector<TarShards::Entry>& entries_;
  std::uint64_t file_bytes_ = 0;
  std::uint64_t end_ = 0;  // of the latest entry, in the file
  std::int64_t records_ = 0;
  std::string key_;  // of the sample that is being read; empty: none
  TarShards::Entry sample_;
  bool has_picture_ = false;
  bool has_label_ = false;
};

}  // namespace

Result<std::shared_ptr<const TarShards>> TarShards::open(const TarShardsOptions& options) {
  std::shared_ptr<TarShards> source(new TarShards);
  source->options_ = options;
  for (const auto& file : options.files) {
    source->begins_.push_back(source->size());
    if (auto read = ShardIndex(file, options, source->entries_).read(); !read) return tl::unexpected(read.error());
  }
  source->entries_.shrink_to_fit();
  return source;
}

std::size_t TarShards::shard_of(std::int64_t index) const {
  return static_cast<std::size_t>(std::ranges::upper_bound(begins_, index) - begins_.begin()) - 1;
}

std::string TarShards::where(std::int64_t index) const {
  const std::size_t shard = shard_of(index);
  std::array<std::uint8_t, kTarName + 1> name{};
  const auto file = OpenFile::open(options_.files[shard]);
  if (file) {
    // Best effort: the entry's name from its header, for the message only.
    const auto offset = entries_.at(static_cast<std::size_t>(index)).offset;
    if (!file->read(offset - kTarBlock, std::span(name).first(kTarName))) name.fill(0);
  }
  return fmt::format("{}: record {} ({})", options_.files[shard].string(), index - begins_[shard],
                     reinterpret_cast<const char*>(name.data()));
}

Result<std::int32_t> TarShards::label(std::int64_t index) const {
  return entries_.at(static_cast<std::size_t>(index)).label;
}

Result<std::int32_t> TarShards::fetch(std::int64_t index, std::vector<std::uint8_t>& bytes) const {
  const Entry& entry = entries_.at(static_cast<std::size_t>(index));
  if (entry.bytes == 0) return fail(Errc::data, where(index) + ": the picture is empty");
  bytes.resize(entry.bytes);
  const auto file = OpenFile::open(options_.files[shard_of(index)]);
  if (!file) return tl::unexpected(file.error());
  if (const auto read = file->read(entry.offset, bytes); !read)
    return tl::unexpected(of_record(read.error(), where(index)));
  return entry.label;
}

}  // namespace troupe::data
