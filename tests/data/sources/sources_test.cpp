#include <sys/stat.h>

#include <filesystem>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/sources/batch_files.hpp"
#include "data/sources/image_folder.hpp"
#include "data/sources/image_list.hpp"
#include "data/sources/record_files.hpp"
#include "data/sources/synthetic.hpp"
#include "data/sources/tar_shards.hpp"
#include "tests/data/idx_files.hpp"
#include "tests/data/made_pictures.hpp"

namespace troupe::data {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::SizeIs;

constexpr std::int64_t kMostBytes = 1 << 20;

void put(const fs::path& path, const Bytes& bytes) {
  fs::create_directories(path.parent_path());
  write_file(path, bytes);
}

template <class T>
std::string message_of(const core::Result<T>& result, core::Errc code = core::Errc::data) {
  if (result) return "no error";
  EXPECT_EQ(result.error().code, code) << result.error().message;
  return result.error().message;
}

std::pair<std::int32_t, Bytes> sample(const SampleSource& source, std::int64_t index) {
  Bytes bytes;
  const auto label = source.fetch(index, bytes);
  EXPECT_TRUE(label) << (label ? "" : label.error().message);
  EXPECT_EQ(label.value_or(-1), source.label(index).value_or(-2));
  return {label.value_or(-1), bytes};
}

TEST(ImageFolderTest, NumbersClassesAndPicturesByName) {
  const TemporaryDirectory folder;
  put(folder.path() / "dog" / "b.JPG", {1});
  put(folder.path() / "dog" / "a.png", {2});
  put(folder.path() / "cat" / "deeper" / "x.jpeg", {3});
  put(folder.path() / "cat" / "notes.txt", {4});
  put(folder.path() / "cat" / ".hidden.jpg", {5});
  put(folder.path() / ".git" / "x.jpg", {6});
  put(folder.path() / "readme.txt", {7});
  const auto source = ImageFolder::open({folder.path(), {}, kMostBytes}).value();
  EXPECT_THAT(source->class_names(), ElementsAre("cat", "dog"));
  ASSERT_EQ(source->size(), 3);
  EXPECT_EQ(sample(*source, 0), (std::pair(0, Bytes{3})));
  EXPECT_EQ(sample(*source, 1), (std::pair(1, Bytes{2})));
  EXPECT_EQ(sample(*source, 2), (std::pair(1, Bytes{1})));
  EXPECT_THAT(source->where(0), EndsWith("cat/deeper/x.jpeg"));
}

TEST(ImageFolderTest, AnotherSplitHasTheTrainingSplitsNumbers) {
  const TemporaryDirectory folder;
  put(folder.path() / "dog" / "a.png", {2});
  const std::vector<std::string> classes{"ape", "cat", "dog", "emu"};
  const auto source = ImageFolder::open({folder.path(), classes, kMostBytes}).value();
  EXPECT_EQ(source->classes(), 4);
  EXPECT_EQ(source->label(0), 2);
  put(folder.path() / "fox" / "a.png", {2});
  EXPECT_THAT(message_of(ImageFolder::open({folder.path(), classes, kMostBytes})),
              HasSubstr("fox: the training split has no class of this name"));
}

TEST(ImageFolderTest, WhatIsWrongIsNamed) {
  const TemporaryDirectory folder;
  const auto open = [&] { return ImageFolder::open({folder.path(), {}, 3}); };
  EXPECT_THAT(message_of(open()), HasSubstr("no folder of a class is there (it is empty)"));
  fs::create_directory(folder.path() / "cat");
  EXPECT_THAT(message_of(open()), HasSubstr("cat: a class without pictures"));
  put(folder.path() / "cat" / "a.jpg", {});
  put(folder.path() / "cat" / "b.jpg", {1, 2, 3, 4});
  put(folder.path() / "cat" / "c.jpg", {1});
  const auto source = open().value();
  Bytes bytes;
  EXPECT_THAT(message_of(source->fetch(0, bytes)), HasSubstr("a.jpg: the file is empty"));
  EXPECT_THAT(message_of(source->fetch(1, bytes)), HasSubstr("b.jpg: 4 bytes are too many"));
  fs::remove(folder.path() / "cat" / "c.jpg");
  EXPECT_THAT(message_of(source->fetch(2, bytes)), HasSubstr("c.jpg"));
  ASSERT_EQ(::mkfifo((folder.path() / "cat" / "c.jpg").c_str(), 0600), 0);  // reading it would wait for a writer
  EXPECT_THAT(message_of(source->fetch(2, bytes)), HasSubstr("c.jpg: not a regular file"));
}

core::Result<std::shared_ptr<const TarShards>> opened_tar(const TemporaryDirectory& folder, const Bytes& bytes) {
  write_file(folder.path() / "one.tar", bytes);
  return TarShards::open({{folder.path() / "one.tar"}, 10, kMostBytes});
}

TEST(TarShardsTest, SamplesAreFoundInTheirFiles) {
  const TemporaryDirectory folder;
  const Bytes long_picture(1300, 7);
  write_file(folder.path() / "a.tar", made_tar({{"x/", {}, '5'},
                                                {"x/0.cls", text_bytes("3")},
                                                {"x/0.jpg", {1, 2}},
                                                {"x/0.json", text_bytes("{}")},
                                                {"x/1.PNG", long_picture},
                                                {"x/1.cls", text_bytes("9\n")}}));
  write_file(folder.path() / "b.tar", made_tar({{"0.jpeg", {5}}, {"0.cls", text_bytes("0")}}));
  const auto source = TarShards::open({{folder.path() / "a.tar", folder.path() / "b.tar"}, 10, kMostBytes}).value();
  ASSERT_EQ(source->size(), 3);
  EXPECT_THAT(source->shard_begins(), ElementsAre(0, 2));
  EXPECT_EQ(sample(*source, 0), (std::pair(3, Bytes{1, 2})));
  EXPECT_EQ(sample(*source, 1), (std::pair(9, long_picture)));
  EXPECT_EQ(sample(*source, 2), (std::pair(0, Bytes{5})));
  EXPECT_THAT(source->where(1), HasSubstr("a.tar: record 1 (x/1.PNG)"));
  EXPECT_THAT(source->where(2), HasSubstr("b.tar: record 0 (0.jpeg)"));
}

TEST(TarShardsTest, TricksWithPathsAreRefused) {
  const TemporaryDirectory folder;
  const TarEntry label{"0.cls", text_bytes("1")};
  for (const std::string name : {"../0.jpg", "a/../../0.jpg", "/etc/0.jpg"})
    EXPECT_THAT(message_of(opened_tar(folder, made_tar({{name, {1}}, label}))),
                HasSubstr("one.tar: record 0 (" + name + "): the path is absolute or leaves its folder"));
  for (const char type : {'1', '2'})
    EXPECT_THAT(message_of(opened_tar(folder, made_tar({{"0.jpg", {}, type}, label}))),
                HasSubstr("(0.jpg): links are refused"));
  EXPECT_THAT(message_of(opened_tar(folder, made_tar({{"0.jpg", {}, '6'}, label}))), HasSubstr("not a regular file"));
}

TEST(TarShardsTest, WhatIsWrongIsNamed) {
  const TemporaryDirectory folder;
  const TarEntry picture{"0.jpg", Bytes(600, 1)};
  struct Case {
    std::vector<TarEntry> entries;
    std::string message;
  };
  for (const auto& wrong : std::vector<Case>{
           {{picture}, "record 0 (0): a sample without a label"},
           {{{"0.cls", text_bytes("1")}}, "record 0 (0): a sample without a picture"},
           {{picture, {"0.cls", text_bytes("1")}, {"1.jpg", {2}}}, "record 1 (1): a sample without a label"},
           {{picture, {"0.cls", text_bytes("cat")}}, "(0.cls): the label is not a whole number"},
           {{picture, {"0.cls", text_bytes("99999999999999999")}}, "(0.cls): the label is not a whole number"},
           {{picture, {"0.cls", text_bytes("10")}}, "label 10 is not in 0 ... 9: the data set has 10 classes"},
           {{picture, {"0.cls", text_bytes("-1")}}, "label -1 is not in 0 ... 9"},
           {{picture, {"0.png", {1}}, {"0.cls", text_bytes("1")}}, "a second picture of one sample"},
           {{picture, {"0.cls", text_bytes("1")}, {"0.cls", text_bytes("2")}}, "a second label of one sample"},
           {{picture, {"0.cls", text_bytes("1" + std::string(40, ' ') + "2")}}, "the label is not a whole number"},
           {{{".cls", text_bytes("1")}, picture}, "record 0 (0): a sample without a label"},
           {{}, "it has no sample"}})
    EXPECT_THAT(message_of(opened_tar(folder, made_tar(wrong.entries))), HasSubstr(wrong.message));
  EXPECT_THAT(message_of(opened_tar(folder, Bytes(2000, 'x'))), HasSubstr("not a tar file, or damaged"));

  const auto whole = made_tar({{"0.cls", text_bytes("1")}, picture});
  for (const std::size_t length : {200u, 512u, 900u, 1024u, 1300u, 1600u}) {
    const auto cut = opened_tar(folder, Bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length)));
    EXPECT_NE(message_of(cut), "no error") << length;
  }
}

TEST(TarShardsTest, AFileCutBetweenTwoSamplesIsTruncated) {
  const TemporaryDirectory folder;
  const TarEntry a{"0.jpg", Bytes(600, 1)}, b{"0.cls", text_bytes("1")};
  const auto cut = made_tar({a, b});  // a tar file ends with two blocks of zeros
  for (const std::size_t missing : {1024u, 600u}) {
    const Bytes bytes(cut.begin(), cut.end() - static_cast<std::ptrdiff_t>(missing));
    EXPECT_NE(message_of(opened_tar(folder, bytes)), "no error") << missing;
  }
  EXPECT_THAT(message_of(opened_tar(folder, Bytes(cut.begin(), cut.end() - 1024))),
              HasSubstr("one.tar: truncated: it has no end mark"));
}

TEST(TarShardsTest, NamesWithoutAnEndingAndHiddenOnesArePassedOver) {
  const TemporaryDirectory folder;
  const auto source = opened_tar(folder, made_tar({{"README", text_bytes("hello")},
                                                   {"./._0.jpg", Bytes(163, 9)},
                                                   {"./0.jpg", {1}},
                                                   {"./._0.cls", Bytes(163, 9)},
                                                   {"./0.cls", text_bytes("4")},
                                                   {"./.DS_Store", Bytes(99, 9)}}));
  ASSERT_TRUE(source) << source.error().message;
  ASSERT_EQ((*source)->size(), 1);
  EXPECT_EQ(sample(**source, 0), (std::pair(4, Bytes{1})));
}

TEST(TarShardsTest, AnEmptyOrLostPictureIsOneBadSample) {
  const TemporaryDirectory folder;
  const auto label = text_bytes("1");
  const auto tar = made_tar({{"0.jpg", {}}, {"0.cls", label}, {"1.jpg", {7}}, {"1.cls", label}});
  const auto source = opened_tar(folder, tar).value();
  ASSERT_EQ(source->size(), 2);
  EXPECT_EQ(sample(*source, 1), (std::pair(1, Bytes{7})));
  Bytes bytes;
  EXPECT_THAT(message_of(source->fetch(0, bytes)), HasSubstr("one.tar: record 0 (0.jpg): the picture is empty"));
  fs::resize_file(folder.path() / "one.tar", 4 * 512);
  EXPECT_THAT(message_of(source->fetch(1, bytes)), HasSubstr("one.tar: record 1 (1.jpg): truncated"));
}

TEST(ImageListTest, ReadsNumbersAndNames) {
  const TemporaryDirectory folder;
  put(folder.path() / "p" / "a,b.jpg", {1});
  put(folder.path() / "c.jpg", {2});
  write_file(folder.path() / "numbers.csv", text_bytes("\xEF\xBB\xBFpath,label\r\n\"p/a,b.jpg\",4\r\n\nc.jpg,0\n"));
  const auto numbers = ImageList::open({folder.path() / "numbers.csv", {}, 5, kMostBytes}).value();
  ASSERT_EQ(numbers->size(), 2);
  EXPECT_EQ(sample(*numbers, 0), (std::pair(4, Bytes{1})));
  EXPECT_EQ(sample(*numbers, 1), (std::pair(0, Bytes{2})));
  EXPECT_TRUE(listed_classes(folder.path() / "numbers.csv").value().empty());

  write_file(folder.path() / "names.csv", text_bytes("c.jpg,\"the \"\"dog\"\"\"\nc.jpg,cat\nc.jpg,cat"));
  const auto classes = listed_classes(folder.path() / "names.csv").value();
  EXPECT_THAT(classes, ElementsAre("cat", "the \"dog\""));
  const auto names = ImageList::open({folder.path() / "names.csv", classes, 0, kMostBytes}).value();
  EXPECT_EQ(names->classes(), 2);
  EXPECT_EQ(names->label(0), 1);
  EXPECT_EQ(names->label(2), 0);
}

/// A heading must not become a class: labels would be names, and one class too many.
TEST(ImageListTest, AnyHeadingIsPassedOver) {
  const TemporaryDirectory folder;
  const auto file = folder.path() / "a.csv";
  put(folder.path() / "taken", {1});
  for (const std::string heading : {"path,label", "\"path\",\"label\"", "filename,class", "Image, Label"}) {
    write_file(file, text_bytes(heading + "\nc.jpg, 4\nd.jpg,1\n"));
    EXPECT_TRUE(listed_classes(file).value().empty()) << heading;
    const auto list = ImageList::open({file, {}, 5, kMostBytes}).value();
    ASSERT_EQ(list->size(), 2) << heading;
    EXPECT_EQ(list->label(0), 4);
  }
  for (const std::string first : {"c.jpg,dog", "c/d,dog", "taken,dog"}) {  // pictures
    write_file(file, text_bytes(first + "\nd.jpg,cat\n"));
    EXPECT_THAT(listed_classes(file).value(), ElementsAre("cat", "dog")) << first;
  }
}

TEST(ImageListTest, ANumberThatIsTooLargeIsNoName) {
  const TemporaryDirectory folder;
  const auto file = folder.path() / "a.csv";
  for (const std::string number : {"99999999999", "-3"}) {
    write_file(file, text_bytes("c.jpg,4\nd.jpg," + number + "\n"));
    EXPECT_TRUE(listed_classes(file).value().empty());
    EXPECT_THAT(message_of(ImageList::open({file, {}, 5, kMostBytes})),
                HasSubstr("a.csv:2: label " + number + " is not in 0 ... 4"));
  }
}

TEST(ImageListTest, WhatIsWrongIsNamedWithItsLine) {
  const TemporaryDirectory folder;
  const auto file = folder.path() / "a.csv";
  const auto open = [&](const std::string& text, const std::vector<std::string>& classes = {}) {
    write_file(file, text_bytes(text));
    return message_of(ImageList::open({file, classes, 5, kMostBytes}));
  };
  EXPECT_THAT(open("a.jpg,1\nb.jpg\n"), HasSubstr("a.csv:2: expected a line \"path,label\""));
  EXPECT_THAT(open("\"a.jpg,1\n"), HasSubstr("a.csv:1: expected"));
  EXPECT_THAT(open("a.jpg,5\n"), HasSubstr("a.csv:1: label 5 is not in 0 ... 4"));
  EXPECT_THAT(open("a.jpg,cat\n"), HasSubstr("label cat is not in 0 ... 4"));
  EXPECT_THAT(open("a.jpg,cow\n", {"ape", "cat"}), HasSubstr("a.csv:1: the training split has no class 'cow'"));
  EXPECT_THAT(open("path,label\n"), HasSubstr("it lists no picture"));
  EXPECT_THAT(open("a.jpg,1\n" + std::string(1 << 20, 'x')), HasSubstr("a.csv: a line has more than 65536 bytes"));
  EXPECT_THAT(message_of(ImageList::open({folder.path() / "none.csv", {}, 5, kMostBytes}), core::Errc::io),
              HasSubstr("none.csv"));
}

Bytes batch_file(const BatchFileHeader& header, const std::vector<std::int32_t>& labels, std::uint8_t first) {
  const auto head = to_bytes(header);
  Bytes bytes(head.begin(), head.end());
  for (const auto label : labels)
    for (int shift = 0; shift < 32; shift += 8)
      bytes.push_back(static_cast<std::uint8_t>(static_cast<std::uint32_t>(label) >> shift));
  for (std::int64_t i = 0; i < header.images * header.image_bytes(); ++i)
    bytes.push_back(static_cast<std::uint8_t>(first + i));
  return bytes;
}

TEST(BatchFilesTest, ImagesAreFoundInTheirFiles) {
  const TemporaryDirectory folder;
  write_file(folder.path() / "a", batch_file({{1, 2, 2}, 3}, {300, 1, 2}, 0));
  write_file(folder.path() / "b", batch_file({{1, 2, 2}, 1}, {7}, 100));
  const auto source = BatchFiles::open({{folder.path() / "a", folder.path() / "b"}, 1000}).value();
  ASSERT_EQ(source->size(), 4);
  EXPECT_EQ(source->raw_shape(), (RawShape{1, 2, 2}));
  EXPECT_THAT(source->shard_begins(), ElementsAre(0, 3));
  EXPECT_EQ(sample(*source, 0), (std::pair(300, Bytes{0, 1, 2, 3})));
  EXPECT_EQ(sample(*source, 2), (std::pair(2, Bytes{8, 9, 10, 11})));
  EXPECT_EQ(sample(*source, 3), (std::pair(7, Bytes{100, 101, 102, 103})));
  EXPECT_THAT(source->where(3), EndsWith("b: record 0"));
}

TEST(BatchFilesTest, WhatIsWrongIsNamed) {
  const TemporaryDirectory folder;
  const auto good = batch_file({{1, 2, 2}, 3}, {0, 1, 2}, 0);
  const auto open = [&](const Bytes& bytes) {
    write_file(folder.path() / "a", bytes);
    return message_of(BatchFiles::open({{folder.path() / "a"}, 3}));
  };
  EXPECT_THAT(open(Bytes(20, 0)), HasSubstr("truncated"));
  EXPECT_THAT(open(Bytes(40, 0)), HasSubstr("not a batch file of version 1"));
  EXPECT_THAT(open(Bytes(good.begin(), good.end() - 1)),
              HasSubstr("do not fit a header that says 3 images of 1 x 2 x 2"));
  auto absurd = good;
  absurd[29] = 0x20;  // images: thousands of thousand millions
  EXPECT_THAT(open(absurd), HasSubstr("the header says 35184372088835 images of 1 x 2 x 2"));
  absurd = good;
  absurd[12] = 0;
  EXPECT_THAT(open(absurd), HasSubstr("the header says 3 images of 0 x 2 x 2"));
  EXPECT_THAT(open(batch_file({{1, 2, 2}, 2}, {0, 3}, 0)), HasSubstr("a: record 1: label 3 is not in 0 ... 2"));
  write_file(folder.path() / "a", good);
  write_file(folder.path() / "b", batch_file({{1, 4, 1}, 1}, {0}, 0));
  EXPECT_THAT(message_of(BatchFiles::open({{folder.path() / "a", folder.path() / "b"}, 3})),
              HasSubstr("b: images of 1 x 4 x 1, and the first file's are 1 x 2 x 2"));
  const auto source = BatchFiles::open({{folder.path() / "a"}, 3}).value();
  fs::resize_file(folder.path() / "a", good.size() - 1);
  Bytes bytes;
  EXPECT_THAT(message_of(source->fetch(2, bytes)), HasSubstr("a: record 2: truncated"));
}

TEST(RecordFilesTest, ReadsThePapersRecords) {
  const TemporaryDirectory folder;
  Bytes file;
  for (std::uint8_t i = 0; i < 3; ++i) {
    file.insert(file.end(), 784, i);
    for (int c = 0; c < 10; ++c) file.push_back(c == 4 + i ? 255 : 0);
  }
  ASSERT_THAT(file, SizeIs(3 * 794));
  write_file(folder.path() / "a", file);
  const auto source = RecordFiles::open({{folder.path() / "a"}, {1, 28, 28}, 10}).value();
  ASSERT_EQ(source->size(), 3);
  EXPECT_EQ(sample(*source, 2), (std::pair(6, Bytes(784, 2))));

  file[784 + 4] = 0;        // record 0: no class
  file[794 + 784 + 9] = 1;  // record 1: two
  write_file(folder.path() / "a", file);
  Bytes bytes;
  EXPECT_THAT(message_of(source->fetch(0, bytes)), HasSubstr("a: record 0: expected exactly one byte of the last 10"));
  EXPECT_THAT(message_of(source->fetch(1, bytes)), HasSubstr("a: record 1"));
  file.pop_back();
  write_file(folder.path() / "a", file);
  EXPECT_THAT(message_of(RecordFiles::open({{folder.path() / "a"}, {1, 28, 28}, 10})),
              HasSubstr("2381 bytes are not a whole number of records of 794 bytes"));
  EXPECT_THAT(message_of(source->fetch(2, bytes)), HasSubstr("a: record 2: truncated"));
}

TEST(SyntheticImagesTest, AreOfAnyShapeAndRepeatable) {
  const SyntheticOptions options{{3, 11, 20}, 37, 100, 5, true};
  const SyntheticImages source(options), again(options);
  auto test_options = options;
  test_options.train = false;
  const SyntheticImages test(test_options);
  std::set<Bytes> different;
  for (std::int64_t i = 0; i < 100; ++i) {
    const auto one = sample(source, i);
    EXPECT_EQ(one.first, i % 37);
    EXPECT_THAT(one.second, SizeIs(3 * 11 * 20));
    EXPECT_EQ(one, sample(again, i));
    different.insert(one.second);
    different.insert(sample(test, i).second);
  }
  EXPECT_THAT(different, SizeIs(200));
  // Samples of a class differ in noise only, below 64.
  const auto one = sample(source, 3).second, other = sample(test, 3).second;
  for (std::size_t i = 0; i < one.size(); ++i) EXPECT_LT(std::abs(one[i] - other[i]), 64);
}

}  // namespace
}  // namespace troupe::data
