#include "service/runs/zip.hpp"

#include <archive.h>
#include <archive_entry.h>
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <vector>

#include <fmt/format.h>

#include "service/datasets/utf8_names.hpp"

namespace troupe::service {
namespace {

using Archive = std::unique_ptr<archive, int (*)(archive*)>;
using Entry = std::unique_ptr<archive_entry, void (*)(archive_entry*)>;

core::Result<core::FileDescriptor> nameless_file() {
  std::error_code ignored;
  auto folder = std::filesystem::temp_directory_path(ignored);
  if (folder.empty()) folder = "/tmp";
  core::FileDescriptor file(::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (file) return file;
  auto path = (folder / "troupe-export-XXXXXX").string();  // file systems without O_TMPFILE
  file.reset(::mkostemp(path.data(), O_CLOEXEC));
  if (!file) return tl::unexpected(core::from_errno(errno, "make a file in", folder.string()));
  ::unlink(path.c_str());
  return file;
}

class Zip {
 public:
  Zip(int output, const ZipChoice& choice, const std::stop_token& stop)
      : archive_(archive_write_new(), archive_write_free), choice_(choice), stop_(stop) {
    good_ = archive_ && archive_write_set_format_zip(archive_.get()) == ARCHIVE_OK &&
            archive_write_set_options(archive_.get(), "hdrcharset=UTF-8") >= ARCHIVE_WARN &&
            archive_write_open_fd(archive_.get(), output) == ARCHIVE_OK;
  }

  core::Result<void> add_folder(int directory, const std::string& name, int depth = 0) {
    if (!good_) return failed();
    const int copy = ::openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const std::unique_ptr<DIR, int (*)(DIR*)> open(copy < 0 ? nullptr : ::fdopendir(copy), &::closedir);
    if (!open) return tl::unexpected(core::from_errno(errno, "list", name));
    std::vector<std::string> names;
    while (const auto* one = ::readdir(open.get())) names.emplace_back(one->d_name);
    std::ranges::sort(names);
    for (const auto& inner : names) {
      const bool is_checkpoint = depth == 0 && (inner == "checkpoints" || inner == "best.safetensors");
      if (inner.starts_with(".") || inner.ends_with(".tmp") || (is_checkpoint && !choice_.checkpoints)) continue;
      if (auto added = add(directory, inner, name + "/" + inner, depth); !added) return added;
    }
    return {};
  }

  core::Result<void> close() {
    if (!good_ || archive_write_close(archive_.get()) != ARCHIVE_OK) return failed();
    return {};
  }

 private:
  core::Result<void> add(int directory, const std::string& inner, const std::string& path, int depth) {
    constexpr int kDeepest = 3;
    struct stat status {};
    core::FileDescriptor file(::openat(directory, inner.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    if (!file || ::fstat(file.get(), &status) != 0) return {};  // a link, or gone meanwhile
    if (S_ISDIR(status.st_mode) && depth < kDeepest) return add_folder(file.get(), path, depth + 1);
    if (!S_ISREG(status.st_mode)) return {};
    const Entry entry(archive_entry_new(), archive_entry_free);
    archive_entry_set_pathname(entry.get(), path.c_str());
    archive_entry_set_size(entry.get(), status.st_size);
    archive_entry_set_filetype(entry.get(), AE_IFREG);
    archive_entry_set_perm(entry.get(), 0644);
    archive_entry_set_mtime(entry.get(), status.st_mtim.tv_sec, 0);
    // Weights and journals do not get smaller, and are most of the bytes.
    const bool is_dense = inner.ends_with(".safetensors") || inner.ends_with(".bin");
    if (is_dense)
      archive_write_zip_set_compression_store(archive_.get());
    else
      archive_write_zip_set_compression_deflate(archive_.get());
    if (archive_write_header(archive_.get(), entry.get()) < ARCHIVE_WARN) return failed();
    return copy(file.get(), status.st_size);
  }

  core::Result<void> copy(int file, off_t bytes) {
    std::array<char, 1 << 16> piece{};
    for (off_t done = 0; done < bytes;) {
      if (stop_.stop_requested()) return core::fail(core::Errc::interrupted, "the service ends");
      const auto wanted = static_cast<std::size_t>(std::min<off_t>(static_cast<off_t>(piece.size()), bytes - done));
      const auto count = ::pread(file, piece.data(), wanted, done);
      if (count <= 0) return {};  // it has become shorter: libarchive fills it up
      if (archive_write_data(archive_.get(), piece.data(), static_cast<std::size_t>(count)) < 0) return failed();
      done += count;
    }
    return {};
  }

  core::Result<void> failed() {
    good_ = false;
    const int number = archive_ ? archive_errno(archive_.get()) : ENOMEM;
    return tl::unexpected(core::from_errno(number > 0 ? number : EIO, "write", "the archive"));
  }

  Archive archive_;
  ZipChoice choice_;
  const std::stop_token& stop_;
  bool good_ = false;
};

}  // namespace

core::Result<core::FileDescriptor> zip_of_directory(int directory, const std::string& name, const ZipChoice& choice,
                                                    const std::stop_token& stop) {
  auto file = nameless_file();
  if (!file) return file;
  const Utf8Names utf8;
  Zip zip(file->get(), choice, stop);
  if (auto added = zip.add_folder(directory, name); !added) return tl::unexpected(added.error());
  if (auto closed = zip.close(); !closed) return tl::unexpected(closed.error());
  return file;
}

}  // namespace troupe::service
