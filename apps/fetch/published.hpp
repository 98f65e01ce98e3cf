/// The data sets that can be fetched: where they are published, and what their files are. Constant data.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "apps/fetch/download.hpp"

namespace troupe::fetch {

struct PublishedDataset {
  std::string name;                    // data.name
  std::vector<std::string> addresses;  // folders of the web, in the order in which they are tried
  std::vector<PublishedFile> files;    // in such a folder
  std::vector<PublishedFile> members =
      {};  // in the one file, an archive, which goes when it is unpacked; none: `files` are the data set
  std::string folder = {};  // of the members, below the data set's
};

[[nodiscard]] std::span<const PublishedDataset> published_datasets();
/// Null: there is none of this name.
[[nodiscard]] const PublishedDataset* find_published(std::string_view name);

}  // namespace troupe::fetch
