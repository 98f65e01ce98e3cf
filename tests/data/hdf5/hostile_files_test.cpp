// HDF5 files that are damaged or made to mislead: each is refused with its name, nothing is printed, and no handle stays open.
#include <sys/stat.h>

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/sources/hickle_files.hpp"
#include "tests/data/hdf5/made_hdf5.hpp"
#include "tests/data/idx_files.hpp"

namespace troupe::data {
namespace {

using testing::HasSubstr;

constexpr ImageSides kHostileSides{3, 5, 4};
constexpr std::int64_t kHostileCount = 6;
const std::vector<hsize_t> kHostileShape{3, 5, 4, 6};

class HostileHdf5Test : public testing::Test {
 protected:
  void SetUp() override { testing::internal::CaptureStderr(); }
  void TearDown() override {
    EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
    EXPECT_EQ(H5Fget_obj_count(static_cast<hid_t>(H5F_OBJ_ALL), H5F_OBJ_ALL), 0);
  }

  [[nodiscard]] std::filesystem::path path() const { return folder_.path() / "0.hkl"; }
  [[nodiscard]] static Bytes images() { return made_images(AxisOrder::c01b, 0, kHostileCount, kHostileSides); }
  [[nodiscard]] core::Result<std::shared_ptr<const HickleFiles>> opened() const {
    HickleFilesOptions options;
    options.files = {path()};
    options.classes = 100;
    return HickleFiles::open(options);
  }
  /// Why the file is refused.
  [[nodiscard]] std::string refusal() const {
    const auto source = opened();
    if (source) return "no error";
    EXPECT_EQ(source.error().code, core::Errc::data) << source.error().message;
    EXPECT_THAT(source.error().message, HasSubstr(path().string() + ": "));
    return source.error().message;
  }
  /// The array "data" as `write` makes it, beside good labels.
  template <class Write>
  std::string refusal_of(const Write& write) const {
    {
      const MadeHdf5 file(path());
      file.labels("labels", {0, 1, 2, 3, 4, 5});
      write(file);
    }
    return refusal();
  }
  /// Why image `index` of the array that `write` makes cannot be read.
  template <class Write>
  std::string unreadable(std::int64_t index, const Write& write) const {
    {
      const MadeHdf5 file(path());
      file.labels("labels", {0, 1, 2, 3, 4, 5});
      write(file);
    }
    const auto source = opened();
    if (!source) return source.error().message;
    return why_not(**source, index);
  }
  [[nodiscard]] std::string why_not(const HickleFiles& source, std::int64_t index) const {
    Bytes bytes;
    const auto fetched = source.fetch(index, bytes);
    if (fetched) return "no error";
    EXPECT_EQ(fetched.error().code, core::Errc::data);
    EXPECT_THAT(fetched.error().message, testing::StartsWith(path().string() + ": "));
    EXPECT_THAT(fetched.error().message, testing::EndsWith("(record " + std::to_string(index) + ")"));
    return fetched.error().message;
  }

 private:
  TemporaryDirectory folder_;
};

TEST_F(HostileHdf5Test, FilesOfOtherKindsAreRefused) {
  EXPECT_THAT(refusal(), HasSubstr("cannot open"));
  std::filesystem::create_directory(path());
  EXPECT_THAT(refusal(), HasSubstr("not a regular file"));
  std::filesystem::remove(path());
  ASSERT_EQ(::mkfifo(path().c_str(), 0600), 0);
  EXPECT_THAT(refusal(), HasSubstr("not a regular file"));
  std::filesystem::remove(path());
  write_file(path(), {});
  EXPECT_THAT(refusal(), HasSubstr("not an HDF5 file, or damaged ("));
  write_file(path(), Bytes(5000, 'x'));
  EXPECT_THAT(refusal(), HasSubstr("not an HDF5 file, or damaged ("));
  {
    const MadeHdf5 file(path(), 512);
    file.bytes("data", kHostileShape, images());
  }
  EXPECT_THAT(refusal(), HasSubstr("512 bytes of something else stand before the HDF5 file"));
}

TEST_F(HostileHdf5Test, TruncatedFilesAreRefused) {
  EXPECT_EQ(refusal_of([](const MadeHdf5& file) { file.bytes("data", kHostileShape, images()); }), "no error");
  const auto whole = read_file(path());
  for (const std::size_t length : {100UL, 600UL, whole.size() / 2, whole.size() - 1}) {
    write_file(path(), Bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length)));
    EXPECT_THAT(refusal(), HasSubstr("not an HDF5 file, or damaged (")) << length;
  }
}

TEST_F(HostileHdf5Test, FilesWithoutImagesAreRefused) {
  EXPECT_THAT(refusal_of([](const MadeHdf5&) {}), HasSubstr("it has no array named as hickle names it"));
  EXPECT_THAT(refusal_of([](const MadeHdf5& file) { file.group("data"); }), HasSubstr("it has no array"));
  EXPECT_THAT(refusal_of([](const MadeHdf5& file) { file.array("data", H5T_NATIVE_UINT8, kHostileShape, nullptr); }),
              HasSubstr("'data' has no values"));
}

TEST_F(HostileHdf5Test, OtherElementTypesAreRefused) {
  const std::vector<double> values(3 * 5 * 4 * 6);
  for (const hid_t type : {H5T_NATIVE_FLOAT, H5T_NATIVE_INT8, H5T_NATIVE_UINT16, H5T_STD_I32BE})
    EXPECT_THAT(refusal_of([&](const MadeHdf5& file) { file.array("data", type, kHostileShape, values.data()); }),
                HasSubstr("'data' has another element type than uint8 (images)"));
  EXPECT_THAT(
      refusal_of([&](const MadeHdf5& file) { file.array("data", H5T_NATIVE_INT64, kHostileShape, values.data()); }),
      HasSubstr("'data' has 4 dimensions of 8-byte integers: images have four dimensions, of unsigned bytes"));
}

TEST_F(HostileHdf5Test, OtherDimensionsAreRefused) {
  EXPECT_THAT(refusal_of([](const MadeHdf5& file) {
                file.bytes("data", {15, 4, 6}, images());
              }),
              HasSubstr("'data' has 3 dimensions of 1-byte integers: images have four"));
  EXPECT_THAT(refusal_of([](const MadeHdf5& file) {
                file.bytes("data", {3, 5, 4, 6, 1}, images());
              }),
              HasSubstr("'data' has 5 dimensions"));
  EXPECT_THAT(refusal_of([](const MadeHdf5& file) {
                file.bytes("data", {3, 5, 4, 0}, images());
              }),
              HasSubstr("'data' has the impossible shape 3 x 5 x 4 x 0"));
  const auto absurd = [&](const std::vector<hsize_t>& shape, const std::vector<hsize_t>& chunk) {
    return refusal_of(
        [&](const MadeHdf5& file) { file.array("data", H5T_NATIVE_UINT8, shape, nullptr, {.chunk = chunk}); });
  };
  constexpr hsize_t kHuge = 1ULL << 40;
  EXPECT_THAT(absurd({3, kHuge, kHuge, 6}, {1, 5, 4, 6}), HasSubstr("has the impossible shape 3 x 1099511627776 x"));
  EXPECT_THAT(absurd({3, 40'000, 40'000, 6}, {3, 4000, 4000, 1}), HasSubstr("is 3 x 40000 x 40000 x 6: too large"));
  EXPECT_THAT(absurd({3, 2000, 2000, 6}, {1, 1, 1, 1}), HasSubstr("has more than 1048576 chunks"));
  EXPECT_THAT(absurd({3, 5000, 5000, 6}, {3, 5000, 5000, 6}), HasSubstr("has chunks that are too large"));
}

TEST_F(HostileHdf5Test, LinksToOtherPlacesAreRefused) {
  const auto linked = [&](const auto& link) { return refusal_of([&](const MadeHdf5& file) { link(file.id()); }); };
  const auto* const what = "'data' is a link to another place: such links are refused";
  EXPECT_THAT(linked([](hid_t file) { H5Lcreate_soft("/data", file, "data", H5P_DEFAULT, H5P_DEFAULT); }),
              HasSubstr(what));  // to itself
  EXPECT_THAT(linked([](hid_t file) { H5Lcreate_soft("/labels", file, "data", H5P_DEFAULT, H5P_DEFAULT); }),
              HasSubstr(what));
  EXPECT_THAT(
      linked([](hid_t file) { H5Lcreate_external("/etc/passwd", "/data", file, "data", H5P_DEFAULT, H5P_DEFAULT); }),
      HasSubstr(what));
  EXPECT_THAT(linked([](hid_t file) {
                H5Gclose(H5Gcreate2(file, "data", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
                H5Lcreate_hard(file, "/", file, "data/'data'", H5P_DEFAULT, H5P_DEFAULT);  // a circle of groups
              }),
              HasSubstr("it has no array"));
}

TEST_F(HostileHdf5Test, ValuesOfOtherFilesAreRefused) {
  const auto created = [&](const auto& set) {
    return refusal_of([&](const MadeHdf5& file) {
      const hid_t space = H5Screate_simple(4, kHostileShape.data(), nullptr);
      const hid_t creation = H5Pcreate(H5P_DATASET_CREATE);
      ASSERT_GE(set(creation, space), 0);
      const hid_t dataset = H5Dcreate2(file.id(), "data", H5T_NATIVE_UINT8, space, H5P_DEFAULT, creation, H5P_DEFAULT);
      EXPECT_GE(dataset, 0);
      H5Dclose(dataset);
      H5Pclose(creation);
      H5Sclose(space);
    });
  };
  EXPECT_THAT(created([](hid_t creation, hid_t) { return H5Pset_external(creation, "/etc/passwd", 0, 3 * 5 * 4 * 6); }),
              HasSubstr("'data' has its values in other files: refused"));
  EXPECT_THAT(created([](hid_t creation, hid_t space) {
                return H5Pset_virtual(creation, space, "/etc/passwd", "data", space);
              }),
              HasSubstr("'data' is virtual, or stored in another way than hickle does"));
  EXPECT_THAT(created([](hid_t creation, hid_t) { return H5Pset_layout(creation, H5D_COMPACT); }),
              HasSubstr("'data' is virtual, or stored in another way than hickle does"));
}

TEST_F(HostileHdf5Test, UnknownFiltersAreRefused) {
  const auto filtered = [&](const Stored& stored) {
    return refusal_of(
        [&](const MadeHdf5& file) { file.array("data", H5T_NATIVE_UINT8, kHostileShape, nullptr, stored); });
  };
  const std::vector<hsize_t> chunk{3, 5, 4, 1};
  EXPECT_THAT(filtered({.chunk = chunk, .filter = 32015}),
              HasSubstr("'data' went through filter 32015: write it without compression, or with gzip or lzf"));
  EXPECT_THAT(filtered({.chunk = chunk, .filter = H5Z_FILTER_FLETCHER32}), HasSubstr("went through filter 3:"));
  EXPECT_THAT(filtered({.chunk = chunk, .gzip = true, .filter = 32000}), HasSubstr("went through filter 32000"));
}

TEST_F(HostileHdf5Test, ChunksThatLieAreRefused) {
  const std::vector<hsize_t> chunk{3, 5, 4, 3};
  constexpr std::size_t kChunkBytes = 3 * 5 * 4 * 3;
  const auto written = [&](const Bytes& packed, std::uint32_t skipped = 0) {
    return unreadable(4, [&](const MadeHdf5& file) {
      file.array("data", H5T_NATIVE_UINT8, kHostileShape, nullptr, {.chunk = chunk, .gzip = true});
      file.write_chunk("data", {0, 0, 0, 0}, Bytes(kChunkBytes), 1);
      if (!packed.empty()) file.write_chunk("data", {0, 0, 0, 3}, packed, skipped);
    });
  };
  EXPECT_THAT(written({}), HasSubstr("'data', chunk at 0, 0, 0, 3: it is missing"));
  EXPECT_THAT(written(Bytes(50, 7)), HasSubstr("'data', chunk at 0, 0, 0, 3: damaged: 50 bytes do not unpack (gzip)"));
  EXPECT_THAT(written(Bytes(kChunkBytes - 1), 1), HasSubstr("damaged: 179 bytes do not unpack (as it is) to the 180"));
  EXPECT_THAT(written(Bytes(kChunkBytes + 1), 1), HasSubstr("damaged: 181 bytes do not unpack (as it is) to the 180"));
  EXPECT_THAT(written(Bytes(60'000)), HasSubstr("chunk at 0, 0, 0, 3: 60000 bytes are more than it can have"));
  EXPECT_EQ(written(Bytes(kChunkBytes), 1), "no error");
}

TEST_F(HostileHdf5Test, AnIndexThatClaimsLongerChunksIsNotBelieved) {
  EXPECT_EQ(unreadable(1,
                       [](const MadeHdf5& file) {
                         file.bytes("data", kHostileShape, images(), {.chunk = {3, 5, 4, 2}});
                       }),
            "no error");
  // The index has for each chunk: its bytes (4; here 120), the mask of its filters (4), its origin (8 for each dimension, and 8 more).
  auto file = read_file(path());
  Bytes first(48, 0);
  first[0] = 120;
  const auto entry = std::ranges::search(file, first).begin();
  ASSERT_NE(entry, file.end());
  *(entry + 2) = 1;
  write_file(path(), file);
  EXPECT_THAT(why_not(*opened().value(), 1), HasSubstr("chunk at 0, 0, 0, 0: 65656 bytes are more than it can have"));
}

TEST_F(HostileHdf5Test, LabelsAreJudgedLikeImages) {
  const auto labelled = [&](const auto& write) {
    {
      const MadeHdf5 file(path());
      file.bytes("data", kHostileShape, images());
      write(file);
    }
    return refusal();
  };
  const std::vector<double> values(6);
  EXPECT_THAT(labelled([&](const MadeHdf5& file) { file.array("labels", H5T_NATIVE_DOUBLE, {6}, values.data()); }),
              HasSubstr("'labels' has another element type than uint8 (images), or int32, int64 or uint8 (labels)"));
  EXPECT_THAT(labelled([&](const MadeHdf5& file) {
                file.array("labels", H5T_NATIVE_INT64, {6, 1}, values.data());
              }),
              HasSubstr("'labels' has 2 dimensions: labels have one"));
  EXPECT_THAT(labelled([&](const MadeHdf5& file) {
                file.labels("labels", {0, 1, 2, 100, 4, 5});
              }),
              HasSubstr("0.hkl: record 3: label 100 is not in 0 ... 99"));
  EXPECT_THAT(
      labelled([](const MadeHdf5& file) { H5Lcreate_soft("/data", file.id(), "labels", H5P_DEFAULT, H5P_DEFAULT); }),
      HasSubstr("'labels' is a link to another place"));
}

TEST_F(HostileHdf5Test, FilesThatChangeMeanwhileAreNoticed) {
  const auto write = [&](hsize_t images, const Stored& stored) {
    const MadeHdf5 file(path());
    file.labels("labels", {0, 1, 2, 3, 4, 5});
    file.array("data", H5T_NATIVE_UINT8, {3, 5, 4, images}, Bytes(3 * 5 * 4 * images).data(), stored);
  };
  write(6, {.chunk = {3, 5, 4, 2}});
  const auto chunked = opened().value();
  write(5, {.chunk = {3, 5, 4, 2}});
  EXPECT_THAT(why_not(*chunked, 2), HasSubstr("'data' has changed since the file was opened first"));
  { const MadeHdf5 empty(path()); }
  EXPECT_THAT(why_not(*chunked, 2), HasSubstr("'data' is no longer there"));
  write(6, {});
  const auto contiguous = opened().value();
  write_file(path(), Bytes(1000));
  EXPECT_THAT(why_not(*contiguous, 2), HasSubstr("truncated"));
}

TEST_F(HostileHdf5Test, NoChangedByteDoesHarm) {
  refusal_of([](const MadeHdf5& file) {
    file.bytes("data", kHostileShape, images(), {.chunk = {3, 5, 4, 2}, .gzip = true});
  });
  const auto good = read_file(path());
  Bytes pixels;
  std::size_t refused = 0;
  for (std::size_t at = 0; at < good.size(); ++at) {
    if (good[at] == 0 && at % 64 != 0) continue;  // most of the file is room that nothing reads
    auto changed = good;
    changed[at] ^= 1U << at % 8;
    write_file(path(), changed);
    const auto source = opened();
    if (!source) {
      ++refused;
      continue;
    }
    for (std::int64_t image = 0; image < std::min<std::int64_t>((*source)->size(), kHostileCount); ++image)
      static_cast<void>((*source)->fetch(image, pixels));
  }
  EXPECT_GT(refused, 50U);
}

}  // namespace
}  // namespace troupe::data
