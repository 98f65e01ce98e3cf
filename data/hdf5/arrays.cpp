#include "data/hdf5/arrays.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "data/hdf5/handles.hpp"

namespace troupe::data {
namespace {

using core::Errc;
using core::fail;
using core::Result;

constexpr H5Z_filter_t kLzf = 32000;  // h5py's, as registered with the HDF Group

/// How hickle names what it dumps, by its version (hickle.py and the loaders of each, and files of 5.0.2):
///   1.x        the array is the dataset "data"; a dataset "type" says 'ndarray'
///   2.x, 3.x   "data_0", with the attribute "type"; attributes CLASS and VERSION of the root (3.x: PYTHON_VERSION, too)
///   4.x, 5.x   "data", with attributes "type" and "np_dtype"; attributes HICKLE_VERSION and HICKLE_PYTHON_VERSION of the root
/// A dictionary is a group of that name. Its values are KEY/data_0 (2.x), 'KEY'/data_0 (3.x), 'KEY'/data (4.0), "KEY" (later). The last row
/// is not hickle's: arrays side by side, as h5py writes them.
struct Naming {
  std::string_view group;  // empty: the root
  std::string_view quote;  // around a key
  std::string_view array;  // in the key's group; empty: the key is the array
};
constexpr std::array<std::string_view, 2> kPlainArrays{"data", "data_0"};
constexpr std::array kNamings{Naming{"data", "\"", ""}, Naming{"data", "'", "data"}, Naming{"data_0", "'", "data_0"},
                              Naming{"data_0", "", "data_0"}, Naming{"", "", ""}};
constexpr std::array<std::string_view, 3> kImageKeys{"images", "data", "x"};
constexpr std::array<std::string_view, 3> kLabelKeys{"labels", "label", "y"};

using LinkPath = std::vector<std::string>;

LinkPath path_of(const Naming& naming, std::string_view key) {
  LinkPath path;
  if (!naming.group.empty()) path.emplace_back(naming.group);
  path.push_back(fmt::format("{0}{1}{0}", naming.quote, key));
  if (!naming.array.empty()) path.emplace_back(naming.array);
  return path;
}

/// One file, while the library is locked.
class ArrayFile {
 public:
  static Result<ArrayFile> open(const std::string& path) {
    const Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
    H5Pset_file_locking(access.id(), false, true);  // file systems without locks, directories that are read-only
    H5Pset_fclose_degree(access.id(), H5F_CLOSE_STRONG);
    Handle file(H5Fopen(path.c_str(), H5F_ACC_RDONLY, access.id()), H5Fclose);
    if (!file) return fail(Errc::data, fmt::format("{}: not an HDF5 file, or damaged ({})", path, hdf5_reason()));
    const Handle creation(H5Fget_create_plist(file.id()), H5Pclose);
    hsize_t before = 0;
    if (!creation || H5Pget_userblock(creation.id(), &before) < 0 || before != 0)
      return fail(Errc::data, fmt::format("{}: {} bytes of something else stand before the HDF5 file", path, before));
    return ArrayFile(path, std::move(file));
  }

  Result<HickleArrays> find() const {
    for (const auto name : kPlainArrays) {
      const LinkPath path{std::string(name)};
      const auto dataset = at(path);
      if (!dataset) return tl::unexpected(dataset.error());
      if (*dataset) return with_labels(path, **dataset, kNamings.back());
    }
    for (const auto& naming : kNamings)
      for (const auto key : kImageKeys) {
        const auto path = path_of(naming, key);
        const auto dataset = at(path);
        if (!dataset) return tl::unexpected(dataset.error());
        if (*dataset) return with_labels(path, **dataset, naming);
      }
    return bad("it has no array named as hickle names it (data, data_0), and none named images");
  }

  /// The dataset at `path`; none: there is nothing, or a group. Errc::data: a link on the way that is not hard.
  Result<std::optional<Handle>> at(const LinkPath& path) const {
    Handle here(H5Gopen2(file_.id(), "/", H5P_DEFAULT), H5Gclose);
    if (!here) return bad(fmt::format("damaged ({})", hdf5_reason()));
    for (const auto& name : path) {
      if (H5Iget_type(here.id()) != H5I_GROUP) return std::nullopt;
      const auto there = H5Lexists(here.id(), name.c_str(), H5P_DEFAULT);
      if (there < 0) return bad(fmt::format("damaged ({})", hdf5_reason()));
      if (there == 0) return std::nullopt;
      H5L_info_t link{};
      if (H5Lget_info(here.id(), name.c_str(), &link, H5P_DEFAULT) < 0)
        return bad(fmt::format("'{}': damaged ({})", name, hdf5_reason()));
      if (link.type != H5L_TYPE_HARD)
        return bad(fmt::format("'{}' is a link to another place: such links are refused", name));
      Handle next(H5Oopen(here.id(), name.c_str(), H5P_DEFAULT), H5Oclose);
      if (!next) return bad(fmt::format("'{}': damaged ({})", name, hdf5_reason()));
      here = std::move(next);
    }
    if (H5Iget_type(here.id()) != H5I_DATASET) return std::nullopt;
    return here;
  }

  Result<StoredArray> describe(const LinkPath& path, const Handle& dataset) const {
    StoredArray array;
    array.name = fmt::format("{}", fmt::join(path, "/"));
    // First of all, where values are: asking a virtual dataset for its shape opens other files.
    const Handle creation(H5Dget_create_plist(dataset.id()), H5Pclose);
    const auto layout = creation ? H5Pget_layout(creation.id()) : H5D_LAYOUT_ERROR;
    if (layout != H5D_CONTIGUOUS && layout != H5D_CHUNKED)
      return bad_array(array, "is virtual, or stored in another way than hickle does");
    if (H5Pget_external_count(creation.id()) != 0) return bad_array(array, "has its values in other files: refused");
    if (auto typed = type_of(dataset, array); !typed) return tl::unexpected(typed.error());
    if (auto shaped = shape_of(dataset, array); !shaped) return tl::unexpected(shaped.error());
    if (layout == H5D_CHUNKED) {
      if (auto chunked = chunks_of(creation, array); !chunked) return tl::unexpected(chunked.error());
      return array;
    }
    const auto offset = H5Dget_offset(dataset.id());
    if (offset == HADDR_UNDEF) return bad_array(array, "has no values");
    array.offset = offset;
    return array;
  }

  tl::unexpected<core::Error> bad(std::string_view what) const {
    return fail(Errc::data, fmt::format("{}: {}", path_, what));
  }
  tl::unexpected<core::Error> bad_array(const StoredArray& array, std::string_view what) const {
    return fail(Errc::data, fmt::format("{}: '{}' {}", path_, array.name, what));
  }

 private:
  ArrayFile(std::string path, Handle file) : path_(std::move(path)), file_(std::move(file)) {}

  Result<HickleArrays> with_labels(const LinkPath& path, const Handle& dataset, const Naming& naming) const {
    auto images = describe(path, dataset);
    if (!images) return tl::unexpected(images.error());
    if (images->type != ElementType::u8 || images->shape.size() != 4)
      return bad_array(*images, fmt::format("has {} dimensions of {}-byte integers: images have four dimensions, of "
                                            "unsigned bytes (uint8)",
                                            images->shape.size(), bytes_of(images->type)));
    HickleArrays found{*std::move(images), std::nullopt};
    for (const auto key : kLabelKeys) {
      const auto label_path = path_of(naming, key);
      const auto labels = at(label_path);
      if (!labels) return tl::unexpected(labels.error());
      if (!*labels) continue;
      auto described = describe(label_path, **labels);
      if (!described) return tl::unexpected(described.error());
      if (described->shape.size() != 1)
        return bad_array(*described, fmt::format("has {} dimensions: labels have one", described->shape.size()));
      found.labels = *std::move(described);
      break;
    }
    return found;
  }

  Result<void> type_of(const Handle& dataset, StoredArray& array) const {
    const Handle type(H5Dget_type(dataset.id()), H5Tclose);
    const std::array<std::pair<hid_t, ElementType>, 4> kinds{{{H5T_STD_U8LE, ElementType::u8},
                                                              {H5T_STD_U8BE, ElementType::u8},
                                                              {H5T_STD_I32LE, ElementType::i32},
                                                              {H5T_STD_I64LE, ElementType::i64}}};
    for (const auto& [known, element] : kinds)
      if (type && H5Tequal(type.id(), known) > 0) {
        array.type = element;
        return {};
      }
    return bad_array(array, "has another element type than uint8 (images), or int32, int64 or uint8 (labels)");
  }

  Result<void> shape_of(const Handle& dataset, StoredArray& array) const {
    const Handle space(H5Dget_space(dataset.id()), H5Sclose);
    const int rank =
        space && H5Sget_simple_extent_type(space.id()) == H5S_SIMPLE ? H5Sget_simple_extent_ndims(space.id()) : -1;
    if (rank < 1 || rank > static_cast<int>(kMostDimensions))
      return bad_array(array, fmt::format("has {} dimensions: images have four, and labels one", std::max(rank, 0)));
    std::array<hsize_t, kMostDimensions> sides{};
    H5Sget_simple_extent_dims(space.id(), sides.data(), nullptr);
    std::uint64_t left = kMostElements;  // by division: a product of absurd numbers could wrap around
    for (int d = 0; d < rank; ++d) {
      const auto side = sides[static_cast<std::size_t>(d)];
      if (side == 0 || side > left)
        return bad_array(
            array, fmt::format("has the impossible shape {}", fmt::join(sides.begin(), sides.begin() + rank, " x ")));
      left /= side;
      array.shape.push_back(static_cast<std::int64_t>(side));
    }
    return {};
  }

  Result<void> chunks_of(const Handle& creation, StoredArray& array) const {
    std::array<hsize_t, kMostDimensions> sides{};
    if (H5Pget_chunk(creation.id(), static_cast<int>(kMostDimensions), sides.data()) !=
        static_cast<int>(array.shape.size()))
      return bad_array(array, "has chunks of other dimensions than its own");
    std::uint64_t bytes_left = kMostChunkBytes / static_cast<std::uint64_t>(bytes_of(array.type));
    std::int64_t chunks = 1;
    for (std::size_t d = 0; d < array.shape.size(); ++d) {
      if (sides[d] == 0 || sides[d] > bytes_left) return bad_array(array, "has chunks that are too large");
      bytes_left /= sides[d];
      array.chunk.push_back(static_cast<std::int64_t>(sides[d]));
      const std::int64_t along = (array.shape[d] - 1) / array.chunk[d] + 1;
      if (along > kMostChunks / chunks) return bad_array(array, fmt::format("has more than {} chunks", kMostChunks));
      chunks *= along;
    }
    return filters_of(creation, array);
  }

  Result<void> filters_of(const Handle& creation, StoredArray& array) const {
    const int count = H5Pget_nfilters(creation.id());
    bool compressed = false;
    for (int i = 0; i < count; ++i) {
      unsigned flags = 0;
      std::array<unsigned, 8> values{};
      std::size_t given = values.size();
      const auto filter =
          H5Pget_filter2(creation.id(), static_cast<unsigned>(i), &flags, &given, values.data(), 0, nullptr, nullptr);
      const bool compresses = filter == H5Z_FILTER_DEFLATE || filter == kLzf;
      const bool known = compresses ? !compressed : filter == H5Z_FILTER_SHUFFLE && given >= 1 && values[0] == 1;
      if (!known)
        return bad_array(array, fmt::format("went through filter {}: write it without compression, or with gzip or lzf",
                                            static_cast<int>(filter)));
      compressed = compressed || compresses;
      array.filters.push_back(filter == kLzf ? ChunkFilter::lzf
                              : compresses   ? ChunkFilter::gzip
                                             : ChunkFilter::shuffle);
    }
    return {};
  }

  std::string path_;
  Handle file_;
};

LinkPath split_links(const std::string& name) {
  LinkPath path;
  std::size_t from = 0;
  for (auto slash = name.find('/'); slash != std::string::npos; from = slash + 1, slash = name.find('/', from))
    path.push_back(name.substr(from, slash - from));
  path.push_back(name.substr(from));
  return path;
}

/// gzip and lzf write what they cannot shorten nearly as it is.
hsize_t most_stored_bytes(const StoredArray& array) {
  std::int64_t bytes = bytes_of(array.type);
  for (const auto side : array.chunk) bytes *= side;
  constexpr std::int64_t kHeaders = 4096;
  return static_cast<hsize_t>(array.filters.empty() ? bytes : bytes + bytes / 8 + kHeaders);
}

/// How many bytes H5Dread_chunk() will write; 0: there is no such chunk, or it cannot be told. Of an array without filters
/// H5Dget_chunk_storage_size() says what a chunk should have, and H5Dread_chunk() believes the file's index, which may say more.
hsize_t stored_bytes(const Handle& dataset, const StoredArray& array, const hsize_t* at) {
  hsize_t bytes = 0;
  if (H5Dget_chunk_storage_size(dataset.id(), at, &bytes) < 0 || bytes == 0 || !array.filters.empty()) return bytes;
  haddr_t address = HADDR_UNDEF;
  unsigned skipped = 0;
  return H5Dget_chunk_info_by_coord(dataset.id(), at, &skipped, &address, &bytes) < 0 ? 0 : bytes;
}

}  // namespace

std::string Hdf5Arrays::version() const {
  const Hdf5Lock lock;
  unsigned major = 0, minor = 0, release = 0;
  H5get_libversion(&major, &minor, &release);
  return fmt::format("{}.{}.{}", major, minor, release);
}

Result<HickleArrays> Hdf5Arrays::find(const std::string& path) const {
  const Hdf5Lock lock;
  const auto file = ArrayFile::open(path);
  if (!file) return tl::unexpected(file.error());
  return file->find();
}

Result<void> Hdf5Arrays::chunks(const std::string& path, const StoredArray& array, std::span<const ChunkOrigin> origins,
                                const std::function<Result<void>(const StoredChunk&)>& take) const {
  const Hdf5Lock lock;
  const auto file = ArrayFile::open(path);
  if (!file) return tl::unexpected(file.error());
  const auto links = split_links(array.name);
  const auto dataset = file->at(links);
  if (!dataset) return tl::unexpected(dataset.error());
  if (!*dataset) return file->bad_array(array, "is no longer there");
  const auto now = file->describe(links, **dataset);
  if (!now) return tl::unexpected(now.error());
  if (*now != array) return file->bad_array(array, "has changed since the file was opened first");
  std::vector<std::uint8_t> bytes;
  for (const auto& origin : origins) {
    std::array<hsize_t, kMostDimensions> at{};
    std::ranges::copy(origin, at.begin());
    const auto where = [&] { return fmt::format("'{}', chunk at {}", array.name, fmt::join(origin, ", ")); };
    const auto stored = stored_bytes(**dataset, array, at.data());
    if (stored == 0) return file->bad(fmt::format("{}: it is missing", where()));
    if (stored > most_stored_bytes(array))
      return file->bad(fmt::format("{}: {} bytes are more than it can have", where(), stored));
    bytes.resize(stored);
    StoredChunk chunk{origin, 0, bytes};
    if (H5Dread_chunk((*dataset)->id(), H5P_DEFAULT, at.data(), &chunk.skipped, bytes.data()) < 0)
      return file->bad(fmt::format("{}: damaged or truncated ({})", where(), hdf5_reason()));
    if (auto taken = take(chunk); !taken) return file->bad(fmt::format("{}: {}", where(), taken.error().message));
  }
  return {};
}

}  // namespace troupe::data
