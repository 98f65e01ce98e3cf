#include "tests/service/datasets/archives.hpp"

#include <archive.h>
#include <archive_entry.h>

#include <memory>
#include <optional>
#include <stdexcept>

#include "service/datasets/utf8_names.hpp"
#include "tests/data/idx_files.hpp"
#include "tests/folder.hpp"

namespace troupe::service {

std::string packed(std::string_view form, const std::vector<Packed>& files) {
  const std::unique_ptr<archive, int (*)(archive*)> out(archive_write_new(), archive_write_free);
  const auto must = [&](int status) {
    if (status < ARCHIVE_WARN) throw std::runtime_error(archive_error_string(out.get()));
  };
  std::optional<Utf8Names> utf8;
  if (form == "zip.utf8" || form == "tar.pax") utf8.emplace();
  if (form.starts_with("zip")) {
    must(archive_write_set_format_zip(out.get()));
    if (form == "zip.stored") must(archive_write_zip_set_compression_store(out.get()));
  } else {
    must(form == "tar.pax" ? archive_write_set_format_pax(out.get()) : archive_write_set_format_gnutar(out.get()));
    if (form == "tar.gz") must(archive_write_add_filter_gzip(out.get()));
    if (form == "tar.zst") must(archive_write_add_filter_zstd(out.get()));
  }
  const auto append = [](archive*, void* to, const void* bytes, std::size_t count) {
    static_cast<std::string*>(to)->append(static_cast<const char*>(bytes), count);
    return static_cast<la_ssize_t>(count);
  };
  std::string text;
  must(archive_write_set_bytes_in_last_block(out.get(), 1));
  must(archive_write_open(out.get(), &text, nullptr, append, nullptr));
  for (const auto& file : files) {
    const std::unique_ptr<archive_entry, void (*)(archive_entry*)> entry(archive_entry_new(), archive_entry_free);
    archive_entry_set_pathname(entry.get(), file.name.c_str());
    archive_entry_set_perm(entry.get(), 0644);
    archive_entry_set_size(entry.get(), static_cast<la_int64_t>(file.text.size()));
    archive_entry_set_filetype(entry.get(), AE_IFREG);
    switch (file.kind) {
      case Packed::Kind::file: break;
      case Packed::Kind::folder: archive_entry_set_filetype(entry.get(), AE_IFDIR); break;
      case Packed::Kind::link:
        archive_entry_set_filetype(entry.get(), AE_IFLNK);
        archive_entry_set_symlink(entry.get(), file.target.c_str());
        break;
      case Packed::Kind::hard_link: archive_entry_set_hardlink(entry.get(), file.target.c_str()); break;
      case Packed::Kind::device:
        archive_entry_set_filetype(entry.get(), AE_IFBLK);
        archive_entry_set_rdevmajor(entry.get(), 8);
        break;
      case Packed::Kind::fifo: archive_entry_set_filetype(entry.get(), AE_IFIFO); break;
    }
    must(archive_write_header(out.get(), entry.get()));
    if (!file.text.empty()) must(static_cast<int>(archive_write_data(out.get(), file.text.data(), file.text.size())));
  }
  must(archive_write_close(out.get()));
  return text;
}

std::vector<Packed> idx_set(const std::string& under) {
  const tests::Folder folder;
  data::write_data_set(folder.path());
  std::vector<Packed> files;
  for (const auto* name :
       {"train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"})
    files.push_back({under.empty() ? std::string(name) : under + "/" + name, folder.read(name)});
  return files;
}

}  // namespace troupe::service
