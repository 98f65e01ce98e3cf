#include "data/cifar10.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "data/files/found.hpp"

namespace troupe::data {
namespace {

namespace fs = std::filesystem;
using core::Errc;
using core::fail;
using core::Result;

constexpr std::size_t kImageBytes = 3 * 32 * 32;
constexpr std::size_t kRecordBytes = 1 + kImageBytes;
constexpr std::size_t kRecordsAtOnce = kRecordBytes * 1024;

std::vector<std::string> file_names(Split split) {
  if (split == Split::test) return {"test_batch.bin"};
  std::vector<std::string> names;
  for (int batch = 1; batch <= 5; ++batch) names.push_back(fmt::format("data_batch_{}.bin", batch));
  return names;
}

bool is_file(const fs::path& path) {
  std::error_code ignored;
  const auto status = fs::status(path, ignored);
  return fs::exists(status) && !fs::is_directory(status);
}

/// The folder that contains the first of `names`: the directory itself, or the published archive's folder in it.
Result<fs::path> find_folder(const fs::path& directory, const std::vector<std::string>& names) {
  for (const auto& folder : {directory, directory / "cifar-10-batches-bin"})
    if (is_file(folder / names.front())) return folder;
  const fs::path shown = directory.empty() ? "." : directory;
  return tl::unexpected(not_found(shown, fmt::format("data set 'cifar10' is missing: no {} in {}{}: {}", names.front(),
                                                     shown.string(), found_in(shown), how_to_fetch("cifar10", shown))));
}

Result<void> check_records(const std::string& path, std::span<const std::uint8_t> bytes) {
  const std::size_t whole = bytes.size() / kRecordBytes;
  if (bytes.empty())
    return fail(Errc::data, fmt::format("{}: the file is empty: expected records of {} bytes", path, kRecordBytes));
  if (const auto rest = bytes.size() % kRecordBytes; rest != 0)
    return fail(Errc::data, fmt::format("{}: truncated: record {} has {} of {} bytes: fetch the file again", path,
                                        whole, rest, kRecordBytes));
  for (std::size_t record = 0; record < whole; ++record)
    if (const int label = bytes[record * kRecordBytes]; label >= kCifar10Classes)
      return fail(Errc::data,
                  fmt::format("{}: record {}: label {} is not in 0 ... {}", path, record, label, kCifar10Classes - 1));
  return {};
}

/// Appends the whole file.
Result<void> read_record_file(const fs::path& path, std::vector<std::uint8_t>& records) {
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  if (!is_file(path)) return fail(Errc::data, fmt::format("{}: the file is missing", path.string()));
  errno = 0;
  const std::unique_ptr<std::FILE, Close> file(std::fopen(path.c_str(), "rb"));
  if (!file) return tl::unexpected(core::from_errno(errno, "open", path.string()));
  const std::size_t before = records.size();
  for (std::size_t got = kRecordsAtOnce; got == kRecordsAtOnce;) {
    const std::size_t end = records.size();
    records.resize(end + kRecordsAtOnce);
    errno = 0;
    got = std::fread(records.data() + end, 1, kRecordsAtOnce, file.get());
    records.resize(end + got);
    if (std::ferror(file.get()) != 0) return tl::unexpected(core::from_errno(errno, "read", path.string()));
  }
  return check_records(path.string(), std::span(records).subspan(before));
}

}  // namespace

Result<std::shared_ptr<const Cifar10Dataset>> Cifar10Dataset::open(const Cifar10Options& options, Split split) {
  const auto names = file_names(split);
  const auto folder = find_folder(options.directory, names);
  if (!folder) return tl::unexpected(folder.error());
  std::shared_ptr<Cifar10Dataset> data(new Cifar10Dataset);
  for (const auto& name : names)
    if (auto read = read_record_file(*folder / name, data->records_); !read) return tl::unexpected(read.error());
  if (options.limit > 0 && options.limit < data->size())
    data->records_.resize(static_cast<std::size_t>(options.limit) * kRecordBytes);
  data->records_.shrink_to_fit();
  return data;
}

std::vector<std::string> Cifar10Dataset::class_names() const {
  return {"airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"};
}

std::int64_t Cifar10Dataset::size() const noexcept { return static_cast<std::int64_t>(records_.size() / kRecordBytes); }

Result<std::int32_t> Cifar10Dataset::read(std::int64_t index, std::span<std::uint8_t> pixels) const {
  if (index < 0 || index >= size() || pixels.size() != kImageBytes)
    throw std::out_of_range(
        fmt::format("record {} of {} into {} of {} bytes", index, size(), pixels.size(), kImageBytes));
  const std::uint8_t* record = records_.data() + static_cast<std::size_t>(index) * kRecordBytes;
  std::memcpy(pixels.data(), record + 1, kImageBytes);
  return *record;
}

}  // namespace troupe::data
