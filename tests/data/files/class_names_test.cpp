#include "data/files/class_names.hpp"

#include <gtest/gtest.h>

#include "data/config.hpp"
#include "tests/data/made_pictures.hpp"
#include "tests/folder.hpp"

namespace troupe::data {
namespace {

TEST(ClassNames, EveryLineIsAName) {
  const tests::Folder folder;
  EXPECT_EQ(read_class_names(folder.path(), 2).value(), std::vector<std::string>{});
  folder.write("classes.txt", "hot dog\r\ncat\n");
  EXPECT_EQ(read_class_names(folder.path(), 2).value(), (std::vector<std::string>{"hot dog", "cat"}));
  folder.write("classes.txt", "dog\ncat");
  EXPECT_EQ(read_class_names(folder.path(), 2).value(), (std::vector<std::string>{"dog", "cat"}));
}

TEST(ClassNames, AFileThatDoesNotFitIsAnErrorThatNamesIt) {
  const tests::Folder folder;
  const auto error = [&](const std::string& text, std::int32_t classes) {
    const auto path = folder.write("classes.txt", text);
    const auto names = read_class_names(folder.path(), classes);
    if (names) return std::string("accepted");
    EXPECT_EQ(names.error().code, core::Errc::data);
    EXPECT_TRUE(names.error().message.starts_with(path + ": ")) << names.error().message;
    return names.error().message.substr(path.size() + 2);
  };
  EXPECT_EQ(error("a\nb\nc\n", 2), "it names 3 classes, and the data set has 2: set data.classes, or mend the file");
  EXPECT_EQ(error("a\n\nc\n", 3), "line 2 is empty: it is the name of class 1");
  EXPECT_EQ(error("", 2), "it names 0 classes, and the data set has 2: set data.classes, or mend the file");
}

TEST(ClassNames, ShardsHaveThoseOfTheFileBesideThem) {
  const tests::Folder folder;
  const auto png = made_png({20, 20});
  const auto tar = made_tar({{"0.png", png}, {"0.cls", text_bytes("1")}});
  for (const char* name : {"train-0.tar", "test-0.tar"}) folder.write(name, std::string(tar.begin(), tar.end()));
  DataConfig config;
  config.name = "shards";
  config.path = folder.path();
  config.classes = 2;
  config.crop = 16;
  EXPECT_TRUE(open_dataset(config, Split::test).value()->class_names().empty());
  folder.write("classes.txt", "dog\ncat\n");
  EXPECT_EQ(open_dataset(config, Split::test).value()->class_names(), (std::vector<std::string>{"dog", "cat"}));
  config.classes = 3;
  const auto refused = open_dataset(config, Split::train);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("classes.txt"), std::string::npos) << refused.error().message;
}

}  // namespace
}  // namespace troupe::data
