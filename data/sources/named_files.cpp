#include "data/sources/named_files.hpp"

#include "data/sources/image_folder.hpp"

namespace troupe::data {

core::Result<std::int32_t> NamedFiles::fetch(std::int64_t index, std::vector<std::uint8_t>& bytes) const {
  return read_whole(paths_.at(static_cast<std::size_t>(index)), most_bytes_, bytes).map([] { return kNoLabel; });
}

}  // namespace troupe::data
