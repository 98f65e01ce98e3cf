#include "apps/fetch/unpack.hpp"

#include <archive.h>
#include <archive_entry.h>

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "apps/fetch/part_file.hpp"

namespace troupe::fetch {
namespace {

namespace fs = std::filesystem;
using core::Errc;
using core::fail;
using core::Result;

constexpr std::size_t kBuffer = std::size_t{256} << 10;  // bytes

class Unpacking {
 public:
  Unpacking(const fs::path& path, const fs::path& folder, const OnBytes& on_bytes, const std::stop_token& stop)
      : path_(path),
        folder_(folder),
        on_bytes_(on_bytes),
        stop_(stop),
        reader_(archive_read_new(), archive_read_free) {}

  Result<void> run(std::span<const PublishedFile> members) {
    if (!reader_) return fail(Errc::out_of_memory, "no memory to read an archive");
    archive_read_support_filter_gzip(reader_.get());
    archive_read_support_format_tar(reader_.get());
    if (archive_read_open_filename(reader_.get(), path_.c_str(), kBuffer) != ARCHIVE_OK) return broken();
    std::set<std::string> missing;
    for (const auto& member : members) missing.insert(member.name);
    archive_entry* entry = nullptr;
    while (!missing.empty()) {
      const int status = archive_read_next_header(reader_.get(), &entry);
      if (status == ARCHIVE_EOF)
        return fail(Errc::data, fmt::format("{}: it has no {}", path_.string(), fmt::join(missing, ", ")));
      if (status != ARCHIVE_OK) return broken();
      const auto* name = archive_entry_pathname(entry);
      const auto member =
          std::ranges::find(members, fs::path(name != nullptr ? name : "").filename().string(), &PublishedFile::name);
      if (member == members.end() || !missing.contains(member->name) || archive_entry_filetype(entry) != AE_IFREG)
        continue;
      if (auto taken = take(*member); !taken) return taken;
      missing.erase(member->name);
    }
    return {};
  }

 private:
  Result<void> take(const PublishedFile& member) {
    auto part = PartFile::open(folder_ / member.name);
    if (!part) return tl::unexpected(part.error());
    if (auto cleared = part->clear(); !cleared) return cleared;
    std::vector<char> bytes(kBuffer);
    for (;;) {
      if (stop_.stop_requested()) return fail(Errc::interrupted, "interrupted");
      const auto got = archive_read_data(reader_.get(), bytes.data(), bytes.size());
      if (got < 0) return broken();
      if (got == 0) break;
      const auto count = static_cast<std::size_t>(got);
      if (part->size() + count > member.bytes) return wrong(member, *part);
      if (auto written = part->append({bytes.data(), count}); !written) return written;
      on_bytes_(before_ + part->size());
    }
    before_ += part->size();
    const auto found = sha256_of(part->path(), stop_);
    if (!found) return tl::unexpected(found.error());
    if (*found != member.sha256) return wrong(member, *part);
    return part->commit();
  }

  Result<void> wrong(const PublishedFile& member, PartFile& part) const {
    if (auto cleared = part.clear(); !cleared) return cleared;
    return fail(Errc::data, fmt::format("{}: its {} is not the published file", path_.string(), member.name));
  }
  Result<void> broken() const {
    const auto* why = archive_error_string(reader_.get());
    return fail(Errc::data, fmt::format("{}: the archive is broken: {}: remove it and fetch it again", path_.string(),
                                        why != nullptr ? why : "no reason given"));
  }

  const fs::path& path_;
  const fs::path& folder_;
  const OnBytes& on_bytes_;
  const std::stop_token& stop_;
  std::unique_ptr<archive, int (*)(archive*)> reader_;
  std::uint64_t before_ = 0;  // bytes of the members that are complete
};

}  // namespace

Result<void> unpack(const fs::path& archive, std::span<const PublishedFile> members, const fs::path& folder,
                    const OnBytes& on_bytes, const std::stop_token& stop) {
  return Unpacking(archive, folder, on_bytes, stop).run(members);
}

}  // namespace troupe::fetch
