/// Archives for tests of uploads, also ones that no one should take. One thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace troupe::service {

struct Packed {
  std::string name;
  std::string text;
  enum class Kind { file, folder, link, hard_link, device, fifo } kind = Kind::file;
  std::string target{};  // of a link
};

/// Bytes of an archive. `form`: "tar", "tar.gz", "tar.zst", "zip", "zip.stored": the names are written as they
/// are; or "zip.utf8", "tar.pax": the archive says that its names are UTF-8, as those of today's programs do.
[[nodiscard]] std::string packed(std::string_view form, const std::vector<Packed>& files);

/// A small data set of the kind `idx` with 5 and 3 samples, as tests/data has it. `under`: a folder that has all; empty: none.
[[nodiscard]] std::vector<Packed> idx_set(const std::string& under = {});

}  // namespace troupe::service
